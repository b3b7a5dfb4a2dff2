#!/bin/sh
# Installs the three Python clients, pinned, into one virtual environment beside this file.
set -eu
cd "$(dirname "$0")"
# Two clients may be installed at the same time, and they share this environment.
exec 9>.lock
if command -v flock >/dev/null; then flock 9; fi
if cmp -s requirements.txt venv/installed.txt; then echo "already installed"; exit 0; fi
rm -rf venv
python3 -m venv venv
venv/bin/pip install --quiet --no-deps --disable-pip-version-check --requirement requirements.txt
cp requirements.txt venv/installed.txt
echo "installed"
