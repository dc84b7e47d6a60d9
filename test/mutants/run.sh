#!/usr/bin/env bash
# run.sh: puts faults into the product, one after the other, and says which test sees each. --help lists the options.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. cluster/go.sh
mkdir -p ../build/mutants
go build -o ../build/mutants/mutants ./mutants
cd ..
exec build/mutants/mutants "$@"
