#!/usr/bin/env bash
# mutations.sh: can the fault tests fail? Runs the fake operator with one guard removed at a time. The test named next to the guard must
# fail, and must pass with all guards. Not part of the suite: run it after a change of the kit. About five minutes.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
clusters=mutations-$$
trap '"$here/run.sh" --down "$clusters"; rm -rf "$work"' EXIT
. "$here/../cluster/go.sh"
(cd "$here" && go build -o "$work/fakeoperator" ./fakeoperator)
bad=0
# expect pass|fail GUARD TEST: with GUARD -, no guard is removed.
expect() {
  local got=pass
  FAKE_BREAK=$2 "$here/run.sh" --clusters "$clusters" --operator "$work/fakeoperator" -run "^Test$3_" >"$work/log" 2>&1 || got=fail
  if [[ $got == "$1" ]]; then echo "ok    $3 without $2: $got"
  else echo "WRONG $3 without $2: $got, expected $1"; bad=1; cp "$work/log" "/tmp/mutation-$3-$2.log"; fi
}
for t in F1 F25 F20 F27 T17; do expect pass - "$t"; done
expect fail recovery F1      # knows only what it did itself since it started
expect fail repair F25       # looks once and never again
expect fail patience F20     # ends without a word at the first refusal
expect fail log-secrets F20  # writes its token to the log
expect fail fence F27        # goes on after it lost the lease
expect fail calm T17         # applies once a second what is there already
expect fail - F28            # client-go's leader election does not fence: a thawed leader writes before it looks at the clock
expect fail - F19            # client-go reads the token file once a minute, not when it is refused
exit $bad
