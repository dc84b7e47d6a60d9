#!/usr/bin/env bash
# run.sh: the agent for static pods on three simulated control-plane nodes. `run.sh --help` says how it is used.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../cluster/lane.sh"

usage() {
  cat <<'H'
usage: run.sh [--k8s 1.37|1.36|1.30] [-run REGEX] [--operator FILE]
Prints `go test -v` output; exit code 0 when all passed, 1 when a test failed, 2 on wrong usage. Needs root (mounts of its own).
About a minute; all of them take six.
  -run REGEX   only tests whose name matches
  --operator   the program under test (default: build/release/quartermaster, else build/dev/quartermaster)
H
}

read_options "--k8s -run --operator" "$@"
build_cluster etcd,helm
run_tests static_pod
