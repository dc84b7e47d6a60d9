#!/usr/bin/env bash
# run.sh: the fault tests on a real control plane. `run.sh --help` says how it is used.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../cluster/lane.sh"

usage() {
  cat <<'H'
usage: run.sh [--short|--nightly] [-run REGEX] [--k8s 1.37|1.36|1.30] [--operator FILE] [--previous REVISION] [--clusters NAME]
       run.sh --list | --down NAME
Prints `go test -v` output; exit code 0 when all passed, 1 when a test failed, 2 on wrong usage.
  --short      the form for every change (default)
  --nightly    full sweeps, five-minute freezes, a million events: about an hour, and 200 schedules of TestUsage_random: 6 hours, or a
               part of that with QM_USAGE_CLUSTERS=N, which runs them on N clusters side by side
  -run REGEX   only tests whose name matches: '^TestF1_'
  --operator   the program under test (default: build/release/quartermaster, else build/dev/quartermaster)
  --previous   the version from which upgrade_test.go upgrades, built from git (default: $QM_PREVIOUS, else the program under test)
  --clusters   use the clusters NAME-calm, -storm, -pair, -extender, -dedicated and -usage, start them when they are not there, and leave them up
  --down       end the clusters of that NAME
  --list       the names of the tests
QM_SET=short|long|all chooses a set (default: short; lane.sh says what is in it); -run wins over it.
H
}

clusters='' verb=test previous=''
own_option() {
  taken=1
  case $1 in
    --short) unset QM_NIGHTLY ;;
    --nightly) export QM_NIGHTLY=1 ;;
    --clusters) needs_value "$@"; clusters=$2 taken=2 ;;
    --down) needs_value "$@"; clusters=$2 verb=down taken=2 ;;
    --previous) needs_value "$@"; previous=$2 taken=2 ;;
    --list) verb=list ;;
    *) taken=0 ;;
  esac
}
read_options "--k8s -run --operator" "$@"

# There may be usage-1 and more, which QM_USAGE_CLUSTERS had.
down() {
  local lane folder=${QUARTERMASTER_CLUSTERS:-${XDG_STATE_HOME:-$HOME/.local/state}/quartermaster/clusters}
  for lane in calm storm pair extender dedicated usage; do "$root/test/cluster/cluster.sh" down --name "$1-$lane" 2>/dev/null || true; done
  for lane in "$folder/$1"-usage-*; do [[ ! -d $lane ]] || "$root/test/cluster/cluster.sh" down --name "${lane##*/}" 2>/dev/null || true; done
}
if [[ $verb == down ]]; then down "$clusters"; exit 0; fi

select_tests
compile faults
if [[ $verb == list ]]; then QM_OPERATOR=/bin/true "$binary" -test.list .; exit 0; fi
if [[ -n $previous ]]; then
  revision=$(git -C "$root" rev-parse --verify --quiet "$previous^{commit}") || die "--previous: git knows no revision '$previous'"
  export QM_PREVIOUS=${XDG_CACHE_HOME:-$HOME/.cache}/quartermaster/previous/$revision
  [[ -d $QM_PREVIOUS ]] || git clone --quiet --shared --no-checkout "$root" "$QM_PREVIOUS"
  git -C "$QM_PREVIOUS" checkout --quiet "$revision"
  "$QM_PREVIOUS/dev" build release quartermaster
fi
# One test needs the scheduler of the version before, and it is long.
case $set_name$run in short) chosen='^$' ;; *) chosen=${run:-.} ;; esac
older=$([[ $k8s != "${k8s_minors[0]}" ]] || ! QM_OPERATOR=/bin/true "$binary" -test.list "$chosen" 2>/dev/null | grep one_minor_older >/dev/null || echo ,scheduler-1.36)
build_cluster "etcd,kwok,helm,sim$older"

export QM_K8S=$k8s QM_FAULTS_KEEP=1
if [[ -n $clusters ]]; then export QM_FAULTS_PREFIX=$clusters
else
  export QM_FAULTS_PREFIX=faults-$$
  trap 'down "$QM_FAULTS_PREFIX"' EXIT
  trap 'exit 130' INT TERM
fi
limit=$([[ -n ${QM_NIGHTLY:-}${QM_USAGE_SCHEDULES:-} ]] && echo 10h || echo 45m)  # 200 schedules of TestUsage_random take 6 hours
"$binary" -test.v -test.parallel 64 -test.timeout "$limit" "${selection[@]}"
