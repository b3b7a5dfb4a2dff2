#!/bin/sh
# install.sh CLIENT: compiles the driver of that folder, and copies the client's jars beside it.
set -eu
cd "$(dirname "$0")/$1"
if cat pom.xml ../src/*.java | cmp -s - target/installed.txt; then echo "already installed"; exit 0; fi
rm -rf target
mvn --batch-mode --quiet compiler:compile dependency:copy-dependencies
cat pom.xml ../src/*.java >target/installed.txt
echo "installed"
