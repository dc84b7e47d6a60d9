#!/usr/bin/env bash
# run.sh: real device plugins of others, started by our DaemonSets on a real kubelet. `run.sh --help` says how it is used.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../cluster/lane.sh"

usage() {
  cat <<'H'
usage: QM_PLUGINS=FOLDER run.sh [--k8s 1.37|1.36|1.30] [-run REGEX] [--operator FILE] [--record]
Prints `go test -v` output; exit code 0 when all passed, 1 when a test failed, 2 on wrong usage, 77 and one line when there is nothing to
run: no ready programs in the folder, or no right to make a real node. README.md names the programs. About five minutes.
  -run REGEX  only tests whose name matches
  --operator  the program under test (default: build/release/quartermaster, else build/dev/quartermaster)
  --record    write what the plugins say to recorded/, where it differs
The stand-in for the card is taken from QM_NVML, else from build/dev/nvml (./dev build dev nvml_standin nvml_smi).
H
}

own_option() {
  [[ $1 != --record ]] || { taken=1; export QM_RECORD=1; }
}

read_options "--k8s -run --operator" "$@"
[[ -n ${QM_PLUGINS:-} ]] || { echo "not run: QM_PLUGINS names no folder with ready programs (test/plugins/README.md)"; exit 77; }
for program in nvidia-device-plugin gpu-feature-discovery config-manager; do
  [[ -f $QM_PLUGINS/$program && -x $QM_PLUGINS/$program ]] || wrong "QM_PLUGINS: no program $QM_PLUGINS/$program that can be started"
done
QM_PLUGINS=$(readlink -f "$QM_PLUGINS"); export QM_PLUGINS
"$root/test/cluster/cluster.sh" node-check || exit 77
export QM_NVML=${QM_NVML:-$root/build/dev/nvml}
for program in libnvidia-ml.so.1 nvidia-smi; do
  [[ -e $QM_NVML/$program ]] || die "no $QM_NVML/$program: ./dev build dev nvml_standin nvml_smi"
done
"$root/test/plugins/features.sh" ${QM_RECORD:+--record}
build_cluster etcd,kwok,helm --real-node
. "$root/test/cluster/go.sh" # the tests call go
run_tests plugins
