#!/usr/bin/env bash
# The Python environment of the tests (NumPy references): build/test-venv, made once.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=build/test-venv
if [ ! -x "$venv/bin/python" ]; then
  python3 -m venv "$venv"
fi
"$venv/bin/python" -c 'import numpy' 2>/dev/null || "$venv/bin/pip" install -q "numpy>=1.24,<3"
