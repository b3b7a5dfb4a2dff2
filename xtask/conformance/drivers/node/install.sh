#!/bin/sh
# install.sh CLIENT: installs the client of that folder from its lock file.
set -eu
cd "$(dirname "$0")/$1"
if cmp -s package-lock.json node_modules/installed-lock.json; then echo "already installed"; exit 0; fi
npm ci --no-audit --no-fund --ignore-scripts
cp package-lock.json node_modules/installed-lock.json
