#!/usr/bin/env bash
# From a fresh Debian 12 machine to an answer: packages, build, one prompt through the embedded tiny model.
set -euo pipefail
cd "$(dirname "$0")/.."

tools/packages.sh build
cmake --preset release -DDSV4_TESTS=OFF -DCMAKE_MESSAGE_LOG_LEVEL=WARNING
cmake --build --preset release

program=build/release/bin/dsv4
prompt="What is the capital of Norway?"
echo
echo "\$ $program run pipelines/cpu_tiny.toml --prompt \"$prompt\""
"$program" run pipelines/cpu_tiny.toml --prompt "$prompt"
cat <<EOF

Serve it (OpenAI API on http://127.0.0.1:8000):
  $program pipeline pipelines/cpu_tiny.toml
  curl http://127.0.0.1:8000/v1/chat/completions -H 'content-type: application/json' \\
    -d '{"messages": [{"role": "user", "content": "$prompt"}]}'

Next:
  $program run pipelines/cpu_tiny.toml --prompt "..." --json   one answer as a chat.completion object
  $program plan pipelines/cpu_tiny.toml                        what the pipeline file means
  $program --help                                              everything else
EOF
