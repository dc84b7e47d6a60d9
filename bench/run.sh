#!/usr/bin/env bash
# bench/run.sh NAME [--short] [--json FILE] [--record] [...]: called by ./dev bench, which builds what is needed. NAME is that of a bench, "short"
# for what the CI runs, or "all" for every bench, one after the other. Exit code 1: a program could not run, or a figure is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
name=$1; shift
export GOGC=100 # Go's default, which the test cluster would otherwise raise: peers and API server as people run them
bench() {
  local bench=$1; shift
  case $bench in
    micro) . bench/programs.sh; build micro; build/bench-go/micro "$@" ;;
    sync|idle) bench/sync/run.sh "$bench" "$@" ;;
    *) "bench/$bench/run.sh" "$@" ;;
  esac
}
case $name in
  short) bench micro --short; bench webhook --short; bench sync --short "$@" ;;
  all)
    failed=''
    for each in micro sync idle admission webhook enrolment extender agents usage share card node; do
      form=()
      [ "$each" != extender ] || [[ " $* " == *" --short "* ]] || form=(--long)
      printf '\n== %s, %s ==\n' "$each" "$(date +%H:%M:%S)"
      rc=0; bench "$each" "${form[@]}" "$@" || rc=$?
      case $rc in 0|77) ;; *) failed+=" $each" ;; esac # 77: not on this machine, and a line has said so
    done
    [ -z "$failed" ] || { echo "bench: failed:$failed" >&2; exit 1; } ;;
  *) bench "$name" "$@" ;;
esac
