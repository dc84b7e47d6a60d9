#!/usr/bin/env bash
# bench/run.sh micro|sync|idle|admission|webhook|enrolment|extender|agents|usage|short [--json FILE] [...]: called by ./dev bench, which builds what is needed.
set -euo pipefail
cd "$(dirname "$0")/.."
name=$1; shift
export GOGC=100 # Go's default, which the test cluster would otherwise raise: peers and API server as people run them
micro() {
  local bench
  for bench in build/release/*_bench; do
    printf '\n%s\n' "$(basename "$bench")"
    "$bench" --benchmark_min_time="$1" --benchmark_counters_tabular=true 2>/dev/null
  done
}
case $name in
  micro) micro 0.5 ;;
  sync) bench/sync/run.sh sync "$@" ;;
  idle) bench/sync/run.sh idle "$@" ;;
  admission) bench/admission/run.sh "$@" ;;
  webhook) bench/webhook/run.sh "$@" ;;
  enrolment) bench/enrolment/run.sh "$@" ;;
  extender) bench/extender/run.sh "$@" ;;
  agents) bench/agents/run.sh "$@" ;;
  usage) bench/usage/run.sh "$@" ;;
  short) micro 0.05; bench/webhook/run.sh --short; bench/sync/run.sh sync --short "$@" ;;
esac
