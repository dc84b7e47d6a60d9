#!/usr/bin/env bash
# run.sh: the demo as people see it: from the first step to Ctrl-C. `run.sh --help` says how it is used.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../cluster/lane.sh"

usage() {
  cat <<'H'
usage: run.sh [--k8s 1.37|1.36|1.30]
Runs demo.sh, waits until it shows the cluster, sends what Ctrl-C sends, and looks for what is left. Prints `go test -v` output; exit
code 0 when all passed, 1 when a test failed, 2 on wrong usage. Half a minute.
H
}

read_options "--k8s" "$@"
build_cluster etcd,kwok,helm,sim
[[ -x $root/build/release/quartermaster ]] || "$root/dev" build release quartermaster
log=$(mktemp) demo='' failed=''
TMPDIR=$(mktemp -d); export TMPDIR
# A demo that Ctrl-C has not ended cleans up on SIGTERM.
trap '[[ -z $demo ]] || kill -- "-$demo" 2>/dev/null || true; rm -rf "$log" "$TMPDIR"' EXIT
check() { # check NAME COMMAND...
  local name=$1; shift
  echo "=== RUN   $name"
  if "$@"; then echo "--- PASS: $name (0.00s)"; else echo "--- FAIL: $name (0.00s)"; failed=1; fi
}

set -m # a process group of its own: a terminal sends Ctrl-C to all of it
"$here/demo.sh" --k8s "$k8s" >"$log" 2>&1 &
demo=$!
shows_nodes() {
  local end=$((SECONDS + 180))
  until grep -q 'until Ctrl-C' "$log"; do
    kill -0 "$demo" 2>/dev/null && ((SECONDS < end)) || { cat "$log"; return 1; }
    sleep 0.5
  done
  grep -Eq '^a100-0 +pgpu .* Ready ' "$log" && grep -Eq '^t4-0 .* UnknownMode ' "$log" || { cat "$log"; return 1; }
}
ends_by_ctrl_c() {
  local code=0
  kill -INT -- "-$demo"
  wait "$demo" || code=$?
  ((code == 130)) || { echo "exit code $code, want 130"; tail -5 "$log"; return 1; }
}
leaves_nothing() {
  ! "$root/test/cluster/cluster.sh" status 2>&1 | grep -w "demo-$demo" && ! kill -0 -- "-$demo" 2>/dev/null && rmdir "$TMPDIR"
}
check TestDemo_shows_the_nodes shows_nodes
check TestDemo_ends_by_Ctrl_C ends_by_ctrl_c
check TestDemo_leaves_nothing leaves_nothing
[[ -z $failed ]]
