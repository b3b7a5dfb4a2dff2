#!/bin/sh
# install.sh LANGUAGE: installs the copied examples of grpc-api in that language, as docs/grpc.md tells users to.
set -eu
cd "$(dirname "$0")/../grpc-api/examples/$1"
case $1 in
  go)
    go build -o bin/ ./service ./watch ./operate
    ;;
  node)
    if cmp -s package-lock.json node_modules/installed-lock.json; then echo "already installed"; exit 0; fi
    npm ci --no-audit --no-fund --ignore-scripts
    cp package-lock.json node_modules/installed-lock.json
    ;;
  python)
    if cmp -s requirements.txt venv/installed.txt; then echo "already installed"; exit 0; fi
    rm -rf venv
    python3 -m venv venv
    venv/bin/pip install --quiet --no-deps --disable-pip-version-check --requirement requirements.txt
    cp requirements.txt venv/installed.txt
    ;;
esac
echo "installed"
