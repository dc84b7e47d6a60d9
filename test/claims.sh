#!/usr/bin/env bash
# claims.sh [--check] [FOLDER]: makes docs/claims.md of the tree in FOLDER (default: this tree): the rows of test/claims.txt, each with the
# tests that carry its name. Nothing but these sources decides its bytes. `./dev fmt` calls it.
#   --check  writes nothing; a page that differs is a finding. `./dev lint` calls it so.
# One finding per line; exit code 1 if there is one. A test carries rows in one of these ways:
#   gtest, Go  the name begins with them: TEST(verdict, S15_S29_through_a_library), func TestF1_killed_around_every_write
#   chainsaw   metadata.name begins with them: s3-refused-label
#   others     a comment at the top of *.sh and bench/*.cpp: # Rows of docs/claims.md: S5, T1.
# Lanes and their sets are read from test/CMakeLists.txt.
set -euo pipefail
export LC_ALL=C
check=''
if [ "${1:-}" = --check ]; then check=1; shift; fi
cd "${1:-$(dirname "$0")/..}"
page=$(mktemp)
trap 'rm -f "$page"' EXIT
mapfile -t sources < <(find test bench -name node_modules -prune -o \
  \( -name '*.cpp' -o -name '*_test.go' -o -name chainsaw-test.yaml -o -name '*.sh' \) -print | sort)
rc=0
awk -v page="$page" '
  function finding(text) { print "claims: " text; bad = 1 }
  function out(text) { print text >page }
  # carry ROW FILE TEST: remembers TEST in the cell of ROW, after those of the same file. Without TEST the file itself is one.
  function carry(row, file, test,    cell, shown) {
    if (!(row in promise)) {
      finding(file ": " test (test ? " has " : "has ") row " in its name or rows, which test/claims.txt does not have")
      return
    }
    cell = tests[row]
    if (last[row] != file) {
      shown = file; sub(/^test\//, "", shown)
      cell = cell (cell ? "<br>" : "") "[" shown "](../" file ")"
    }
    if (test) cell = cell (last[row] == file ? ", " : ": ") "`" test "`"
    cell = cell set_of(file, test)
    tests[row] = cell; last[row] = file
  }
  # carried NAME FILE TEST: the rows that NAME begins with.
  function carried(name, file, test,    row) {
    while (match(name, /^[SFTO][0-9]+b?(_|$)/)) {
      row = substr(name, 1, RLENGTH); sub(/_$/, "", row)
      carry(row, file, test)
      name = substr(name, RLENGTH + 1)
    }
  }
  # set_of FILE TEST: "" for what each `./dev test` runs, which is what is in no lane, too.
  function set_of(file, test,    i, in_lane, set) {
    if (file ~ /\.cpp$/) return ""
    if (test ~ /_long$/) return " (long)"
    set = " (long)"
    for (i = 1; i <= lanes; i++) {
      if (index(file, "test/" folder[i] "/") != 1) continue
      in_lane = 1
      if (only[i] && test !~ only[i]) continue
      if (kind[i] == "short") return ""
      if (kind[i] == "ci") set = " (ci)"
    }
    return in_lane ? set : ""
  }
  function section(letter, title, text,    i) {
    out("\n## " title "\n\n" text "\n\n| row | promise | tests |\n|---|---|---|")
    for (i = 1; i <= count; i++)
      if (substr(order[i], 1, 1) == letter && order[i] in tests)
        out("| " order[i] " | " promise[order[i]] " | " tests[order[i]] " |")
  }

  FILENAME == "test/claims.txt" {
    if ($0 ~ /^(#|$)/) next
    if ($0 !~ /^[SFTO][0-9]+b? [^|]+\.( \| [^|]+\.)?$/) finding("test/claims.txt:" FNR ": is not NAME PROMISE. or NAME PROMISE. | REASON.")
    if ($1 in promise) finding("test/claims.txt:" FNR ": " $1 " is there twice")
    order[++count] = $1; line[$1] = FNR
    split(substr($0, length($1) + 2), part, " [|] ")
    promise[$1] = part[1]
    if (part[2]) reason[$1] = part[2]
    next
  }
  FILENAME == "test/CMakeLists.txt" {  # lane(NAME VERSION SET ... [SCRIPT FOLDER/run.sh] ... [-run "REGEX"] ...), both(NAME ...)
    if ($1 !~ /^(lane|both)\(/ || / SCRIPT go_test\.sh /) next
    kind[++lanes] = $1 ~ /^both/ ? "short" : $3
    folder[lanes] = $1; sub(/.*\(/, "", folder[lanes])
    if (match($0, / SCRIPT [^ ]+\//)) folder[lanes] = substr($0, RSTART + 8, RLENGTH - 9)
    if (match($0, / -run "?[^ "]+/)) { only[lanes] = substr($0, RSTART + 6, RLENGTH - 6); sub(/^"/, "", only[lanes]) }
    next
  }
  FNR == 1 { open = "" }
  /^(#|\/\/) Rows of docs\/claims\.md: / {
    words = $0; gsub(/.*: |[.,]/, "", words)
    number = split(words, word, " ")
    for (i = 1; i <= number; i++) carry(word[i], FILENAME, "")
  }
  FILENAME ~ /\.cpp$/ && (open || /^TEST(_F|_P)?\(/) {  # clang-format puts a long name on a line of its own
    open = open $0
    if (open !~ /\)/) next
    sub(/^[^(]*\( */, "", open); sub(/\).*/, "", open)
    split(open, part, /, */); open = ""
    carried(part[2], FILENAME, part[1] "." part[2])
  }
  FILENAME ~ /\.go$/ && /^func Test/ {
    name = $2; sub(/\(.*/, "", name)
    test = name; sub(/^Test/, "", name)
    if (name ~ /^[A-Za-z]+_[SFTO][0-9]/) sub(/^[A-Za-z]+_/, "", name)  # TestOracles_O3_finds_...
    carried(name, FILENAME, test)
  }
  FILENAME ~ /\.yaml$/ && /^  name: / && !(FILENAME in named) {
    named[FILENAME] = 1
    name = toupper($2); gsub(/-/, "_", name)
    carried(name, FILENAME, $2)
  }

  END {
    out("<!-- textlint-disable readable -->\n\n# Claims\n\nWhat does Quartermaster promise, what does it survive, and which tests show it?\n")
    out("- The name of a test begins with its rows: `F1_killed_around_every_write` is about F1.")
    out("- Each `./dev test` runs those without a mark. Those with (ci) are in `./dev test --ci` and `--all`, those with (long) in\n" \
        "  `--all` alone ([three sets](../CONTRIBUTING.md#three-sets)). Results are not on this page.")
    out("- `./dev fmt` makes this page of [test/claims.txt](../test/claims.txt) and of the names of tests. `./dev lint` fails\n" \
        "  if it is out of date.")
    section("S", "What the product does (S)", "Many rows are what another product does, so that its users lose nothing.")
    section("F", "What goes wrong, and what then holds (F)",
            "[test/faults](../test/faults/README.md) says how faults are made and judged.")
    section("T", "Targets of speed and size (T)",
            "[performance.md](performance.md) has the figures and the targets, and names those that are missed. Benches are not\n" \
            "tests: `./dev bench` runs them.")
    section("O", "What is asked after a fault (O)", "Most tests of faults ask these questions at their end.")
    out("\n## Not claimed\n\nThese rows have no test of their own.\n\n| row | promise | why it has no test |\n|---|---|---|")
    for (i = 1; i <= count; i++) {
      row = order[i]; place = "test/claims.txt:" line[row] ": "
      if (row in reason) out("| " row " | " promise[row] " | " reason[row] " |")
      if (row in reason && row in tests) finding(place row " has a test, so take its reason away")
      if (!(row in reason) && !(row in tests)) finding(place "no test has " row " in its name; write why after \" | \"")
    }
    exit bad
  }' test/claims.txt test/CMakeLists.txt "${sources[@]}" || rc=1
if [ -z "$check" ]; then
  cp "$page" docs/claims.md
elif ! cmp -s "$page" docs/claims.md; then
  echo "claims: docs/claims.md is not what test/claims.sh makes: ./dev fmt"; rc=1
fi
exit $rc
