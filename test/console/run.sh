#!/usr/bin/env bash
# run.sh: the console on a real API server, asked with real tokens of two namespaces. `run.sh --help` says how it is used.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../cluster/lane.sh"

usage() {
  cat <<'H'
usage: run.sh [--k8s 1.37|1.36|1.30] [-run REGEX]
Prints `go test -v` output; exit code 0 when all passed, 1 when a test failed, 2 on wrong usage. Half a minute.
The program under test is $QM_OPERATOR, else build/release/quartermaster, else build/dev/quartermaster.
  QM_OIDC=FOLDER  with the programs dex and oauth2-proxy (README.md): people sign in by them, too, in the set `long`. Two minutes more.
H
}

read_options "--k8s -run" "$@"
if [[ -n ${QM_OIDC:-} ]]; then
  for program in dex oauth2-proxy; do
    [[ -f $QM_OIDC/$program && -x $QM_OIDC/$program ]] || wrong "QM_OIDC: no program $QM_OIDC/$program that can be started"
  done
  QM_OIDC=$(readlink -f "$QM_OIDC"); export QM_OIDC
fi
build_cluster etcd,helm,sim
run_tests console/server
