#!/usr/bin/env bash
# The Python environment of the tests (NumPy references, the official OpenAI client): build/test-venv, made once.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=build/test-venv
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/python" -c 'import numpy, openai' 2>/dev/null ||
  "$venv/bin/pip" install -q --disable-pip-version-check "numpy>=1.24,<3" "openai>=1.60,<3"
