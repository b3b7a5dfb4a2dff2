#!/bin/sh
# generate.sh [--check]: writes the stubs of the Python and Go examples, or fails if they are not what the .proto says.
#
# Needs python3 and go. The protocol compiler comes with PyPI's grpcio-tools, Go's plugins are built from the versions in
# go.mod; both are kept in target/stubs of the repository. Node needs no stubs: it reads the .proto when it starts.
set -eu
examples=$(cd "$(dirname "$0")" && pwd)
tools=$examples/../../target/stubs
mkdir -p "$tools"
tools=$(cd "$tools" && pwd)

pins=$(cat "$examples/python/requirements.txt" "$examples/python/requirements-stubs.txt")
if [ "$pins" != "$(cat "$tools/venv/installed.txt" 2>/dev/null)" ]; then
  rm -rf "$tools/venv"
  python3 -m venv "$tools/venv"
  "$tools/venv/bin/pip" install --quiet --no-deps --disable-pip-version-check \
    --requirement "$examples/python/requirements-stubs.txt"
  echo "$pins" >"$tools/venv/installed.txt"
fi
(cd "$examples/go" && go build -o "$tools/bin/" google.golang.org/protobuf/cmd/protoc-gen-go google.golang.org/grpc/cmd/protoc-gen-go-grpc)

made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
mkdir "$made/python" "$made/go"
# The .proto names no Go package: whoever generates chooses one.
go=Meureka/v1/registry.proto=example.com/eureka/eurekav1
PATH=$tools/bin:$PATH "$tools/venv/bin/python" -m grpc_tools.protoc --proto_path="$examples/../proto" \
  --python_out="$made/python" --pyi_out="$made/python" --grpc_python_out="$made/python" \
  --go_out="$made/go" --go_opt=module=example.com/eureka --go_opt=$go \
  --go-grpc_out="$made/go" --go-grpc_opt=module=example.com/eureka --go-grpc_opt=$go \
  eureka/v1/registry.proto

stale=
for stubs in python/eureka/v1 go/eurekav1; do
  if [ "${1:-}" = --check ]; then
    diff -r --exclude=__pycache__ "$made/$stubs" "$examples/$stubs" >&2 || stale="$stale $stubs"
  else
    rm -rf "${examples:?}/$stubs"
    mkdir -p "$examples/$stubs"
    cp "$made/$stubs"/* "$examples/$stubs"
  fi
done
if [ -n "$stale" ]; then
  echo "not what the .proto says:$stale; run grpc-api/examples/generate.sh" >&2
  exit 1
fi
