# shellcheck shell=bash
# What both forms of ./dev try share: steps with their times, and that everything they started goes with them. It is sourced; `name` is the
# cluster's.
work=$(mktemp -d) started=() begin=$(date +%s.%N) steps=()
exec 6>&2 # what people see while a step writes elsewhere
declare -A part=() # of a process: what it is called, as its log is
bold() { printf '\033[1m%s\033[0m' "$*"; }
now() { date +%s.%N; }
since() { awk -v a="$1" -v b="$(now)" 'BEGIN { printf "%.1f", b - a }'; }
tell() { :; }
# start NAME COMMAND...: in the background, with its log in $work/NAME.log. It ends with this script, however that ends.
start() {
  local name=$1; shift
  setpriv --pdeathsig TERM "$@" >"$work/$name.log" 2>&1 6>&- </dev/null &
  started+=($!) part[$!]=$name
}
cleanup() {
  trap '' INT TERM HUP
  trap - EXIT
  local pid
  # Ctrl-C has reached them, too, so some are gone, and others end with an error: neither may end the cleaning.
  for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
  for pid in "${started[@]}"; do wait "$pid" 2>/dev/null || true; done
  # It prints the last lines of a component that had ended by itself.
  test/cluster/cluster.sh down --name "$name" 2>&1 9>&- | grep -v ' is down$' >&6 || true
  rm -rf "$work"
}
stop() { # stop CODE
  printf '\ntaking it down\n' >&6
  cleanup
  printf 'nothing of it is left\n' >&6
  exit "$1"
}
# leave CODE: prints the end of a failed part's log, and what `tell` says, and cleans up. Ctrl-C within $(...) ends bash with 2, without its trap;
# nothing here ends with 2 otherwise.
leave() {
  [ "$1" -ne 2 ] || stop 130
  [ "$1" -eq 0 ] || { tail -n 5 "$work"/*.log; tell; } >&6 2>&1 || true
  cleanup
  exit "$1"
}
trap 'leave $?' EXIT
trap 'stop 130' INT
trap 'stop 143' TERM HUP
step() {  # step TEXT COMMAND...: one line with how long it took
  local text=$1 t; shift; t=$(now)
  printf '  %-68s' "$text" >&2
  if "$@" >"$work/step.log" 2>&1 9>&-; then
    printf '%6s s\n' "$(since "$t")" >&2; steps+=("$(printf '%-68s %6s s' "$text" "$(since "$t")")")
  else printf 'failed\n' >&2; cat "$work/step.log" >&2; exit 1; fi
}
wait_for() {  # wait_for SECONDS COMMAND...: until it succeeds
  local end=$((SECONDS + $1)); shift
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $end ] || { echo "still not true after the time allowed: $*"; return 1; }
    sleep 0.2
  done
}
free_port() { local p; while p=$((20000 + RANDOM % 12000)); ss -ltn | grep -q ":$p "; do :; done; echo "$p"; }
times() { # of all steps
  echo; bold "Time"; echo
  printf '  %s\n' "${steps[@]}"
  printf '  %-68s %6s s\n' total "$(since "$begin")"
}
# keep: until Ctrl-C, or until a part ends by itself. It costs nothing while it waits.
keep() {
  local ended=''
  wait -n -p ended "${started[@]}" || true
  [ -n "$ended" ] || exit 1
  printf '\nthe part "%s" has ended by itself; its last lines:\n' "${part[$ended]}" >&2
  tail -n 15 "$work/${part[$ended]}.log" >&2
  cleanup
  exit 1
}
