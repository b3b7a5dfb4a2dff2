#!/bin/sh
# Builds the Rust driver, with the client's own (old) dependencies, into target/ beside this file.
set -eu
cd "$(dirname "$0")"
if ! pkg-config --exists openssl; then
  echo "needs the OpenSSL development files and pkg-config (Debian: libssl-dev, pkg-config)" >&2
  exit 1
fi
cargo build --locked --target-dir target
