#!/usr/bin/env bash
# run.sh [--nightly] [--k8s 1.37|1.36|1.30] [--operator FILE]: install, enrol, upgrade and remove in two combinations of the switches, in all eight
# with --nightly; nothing may be left.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../../cluster/lane.sh"
usage() { echo "usage: run.sh [--nightly] [--k8s 1.37|1.36|1.30] [--operator FILE]"; }
own_option() { if [[ $1 == --nightly ]]; then export QM_NIGHTLY=1; taken=1; fi; }
read_options "--k8s --operator" "$@"
find_operator
[[ -n $operator ]] || die "no operator: ./dev build release"
build_cluster etcd,kwok,helm,sim
export QM_OPERATOR=$operator
run_tests faults/removal
