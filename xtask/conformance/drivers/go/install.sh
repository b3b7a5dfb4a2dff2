#!/bin/sh
# install.sh COMMAND: builds the driver of that folder.
set -eu
cd "$(dirname "$0")"
go build -o "bin/$1" "./$1"
echo "installed"
