#!/usr/bin/env bash
# Installs the Debian packages that a step needs: packages.sh build | test. Does nothing when all are there.
set -euo pipefail

build=(g++ cmake ninja-build ccache mold pkg-config
  libboost1.81-dev libtomlplusplus-dev libfmt-dev libspdlog-dev libcli11-dev nlohmann-json3-dev libsimdjson-dev
  libpcre2-dev libsodium-dev prometheus-cpp-dev)
test=(catch2 libcpp-httplib-dev clang-format clang-19 libclang-rt-19-dev abigail-tools binutils python3-venv python3-pip)

case "${1:-}" in
build) wanted=("${build[@]}") ;;
test) wanted=("${build[@]}" "${test[@]}") ;;
*)
  echo "usage: packages.sh build|test" >&2
  exit 2
  ;;
esac

missing=()
for package in "${wanted[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q "ok installed" || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

if [ "$(id -u)" -eq 0 ]; then
  sudo=()
elif command -v sudo >/dev/null; then
  sudo=(sudo)
else
  echo "these packages are missing and this user can neither install them nor use sudo: ${missing[*]}" >&2
  exit 3
fi
echo "installing: ${missing[*]}"
"${sudo[@]}" apt-get update -qq
DEBIAN_FRONTEND=noninteractive "${sudo[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
