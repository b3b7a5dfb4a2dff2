#!/bin/sh
# install.sh CLIENT: compiles the driver of that folder, and copies the client's jars beside it.
set -eu
cd "$(dirname "$0")/$1"
# Maven's local repository does not bear two writers, and several clients may be installed at the same time.
exec 9>../.lock
if command -v flock >/dev/null; then flock 9; fi
if cat pom.xml ../src/*.java | cmp -s - target/installed.txt; then echo "already installed"; exit 0; fi
rm -rf target
mvn --batch-mode --quiet compiler:compile dependency:copy-dependencies
cat pom.xml ../src/*.java >target/installed.txt
echo "installed"
