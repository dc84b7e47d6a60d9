#!/usr/bin/env bash
# run.sh: ./dev try as people see it, from the first step to Ctrl-C. `run.sh --help` says how it is used.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../cluster/lane.sh"

usage() {
  cat <<'H'
usage: run.sh [--k8s 1.37] [-run REGEX]
Runs try.sh until it shows the console and the commands, types each of them, asks why each waiting pod waits, sends what Ctrl-C sends, and
looks for what is left. Prints `go test -v` output; exit code 0 when all passed, 1 when a test failed, 2 on wrong usage. Half a minute.
H
}

read_options "--k8s -run" "$@"
[[ $k8s == "${k8s_minors[0]}" ]] || wrong "--k8s '$k8s': ./dev try has the newest alone, ${k8s_minors[0]}"
build_cluster etcd,kwok,helm,sim
[[ -x $root/build/release/quartermaster ]] || "$root/dev" build release quartermaster
run_tests try
