#!/usr/bin/env bash
# claims.sh JUNIT.xml [FILE]: requirements (S..), faults (F..) and performance targets (T..), the tests that carry their number, and the
# results. Prints the table and writes it to FILE (docs/claims.md) with commit and date, so that each row has a test that people can run.
# "partly run (3 of 5)": the others need a longer run (--nightly), another day's third, or a version that is not installed.
set -euo pipefail
cd "$(dirname "$0")/.."
junit=${1:?usage: claims.sh JUNIT.xml [FILE]}
into=${2:-docs/claims.md}
[ -f "$junit" ] || { echo "claims: no $junit: run ./dev test first" >&2; exit 1; }
# Names from ctest itself, and from the output of the Go tests it ran ("--- PASS: TestF10_... (1.2s)").
results() {
  grep -oE '<testcase name="[^"]+"[^>]*status="[^"]+"' "$junit" | sed -E 's/<testcase name="([^" ]+)[^"]*".*status="([^"]+)".*/\1 \2/'
  awk '/<testcase name="/ { match($0, /name="[^"]+"/); suite = substr($0, RSTART + 6, RLENGTH - 7) }
       match($0, /--- (PASS|FAIL|SKIP): Test[A-Za-z0-9_]+/) { split(substr($0, RSTART + 4, RLENGTH - 4), w, ": ")
         print suite "/" substr(w[2], 5), (w[1] == "PASS") ? "run" : (w[1] == "FAIL") ? "fail" : "notrun" }' "$junit"
}
# A lane that has a test twice reports it twice: the last result counts.
table=$(results | awk '!($1 in last) { order[++n] = $1 } { last[$1] = $2 } END { for (i = 1; i <= n; ++i) print order[i], last[order[i]] }' |
  awk '
    { name = $1; status = ($2 == "run") ? "passed" : ($2 == "fail") ? "FAILED" : "not run"
      rest = name
      while (match(rest, /(^|[._\/])[SFTO][0-9]+b?(_|$|\.)/)) {
        row = substr(rest, RSTART, RLENGTH); gsub(/[._\/]/, "", row)
        tests[row] = tests[row] (tests[row] ? "<br>" : "") "`" name "`"; count[row]++
        if (status == "passed") good[row]++
        if (status == "FAILED") failed[row] = 1
        rest = substr(rest, RSTART + RLENGTH - 1)
      } }
    END { for (row in tests) {
        result = (row in failed) ? "FAILED" : !good[row] ? "not run" : (good[row] < count[row]) ? "partly run (" good[row] " of " count[row] ")" : "passed (" count[row] ")"
        printf "%s %05d|%s|%s|%s\n", substr(row,1,1), substr(row,2)+0, row, tests[row], result } }' |
  sort | cut -d'|' -f2-)
commit=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)
[ -z "$(git status --porcelain -- . ':!docs/claims.md' 2>/dev/null)" ] || commit="$commit with changes"
{
  echo "# Claims"; echo
  echo "Commit $commit, $(date -u +%F)."; echo
  echo "Requirement rows (S), faults (F) and targets (T) that a test carries in its name, from the last \`./dev test --claims\`."
  echo "A row that is not here is not claimed."; echo
  echo "| row | tests | result |"; echo "|---|---|---|"
  printf '%s\n' "$table" | awk -F'|' '{ printf "| %s | %s | %s |\n", $1, $2, $3 }'
} > "$into"
printf '%s\n' "$table" | sed 's/<br>/ /g; s/`//g' | awk -F'|' '{ n = split($2, t, " "); printf "%-6s %-14s %d test%s: %s%s\n", $1, $3, n, (n == 1) ? "" : "s", t[1], (n > 1) ? " ..." : "" }'
