#!/usr/bin/env bash
# run.sh: Chromium opens the page of the console. `run.sh --help` says how it is used.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
root=$(cd ../../.. && pwd)

usage() {
  cat <<'H'
usage: run.sh [--use | --long | --speed | --installed REGEX]
Builds the page where it is not built, opens it in Chromium with answers for 10, 500 and 5,000 nodes, and uses it: every view, by keyboard,
in both themes and languages, with errors, live updates and names that carry HTML. Prints a line per test, with sizes and times. Exit code
0 when all passed, 1 when a test failed, 2 on wrong usage, 77 and one line when there is no Chromium (./dev setup installs it). About a minute.
  --use, --long            only those that use the page in their short form, or only what --use leaves out: more sizes, and a bad line
  --speed                  only those of sizes and times, which want a machine that does nothing else
  --installed REGEX        instead, the tests of installed.mjs with such names, on the console of QM_CONSOLE_URL (test/image starts one)
  QM_CHROMIUM=FILE         the browser (default /usr/bin/chromium)
  QM_SCREENSHOTS=write     also writes docs/images/console/*.png, with pngquant, which ./dev setup installs
  QM_CONSOLE_EXAMPLES=DIR  the examples of the API (default test/console/examples)
H
}
tests=(all.mjs)
unset QM_SET
case ${1:-} in
  '') ;;
  --use) tests=(use.mjs); export QM_SET=short ;;
  --long) tests=(use.mjs); export QM_SET=long ;;
  --speed) tests=(speed_test.mjs) ;;
  -h|--help) usage; exit 0 ;;
  --installed)
    [[ $# == 2 ]] || { echo "run.sh: --installed needs one REGEX (see --help)" >&2; exit 2; }
    [[ -n ${QM_CONSOLE_URL:-} ]] || { echo "run.sh: QM_CONSOLE_URL names no console (see --help)" >&2; exit 2; }
    tests=(--test-name-pattern="$2" installed.mjs) ;;
  *) echo "run.sh: unknown argument '$1' (see --help)" >&2; exit 2 ;;
esac

browser=${QM_CHROMIUM:-/usr/bin/chromium}
[[ -x $browser ]] || { echo "run.sh: no browser $browser: ./dev setup installs chromium" >&2; exit 77; }
[[ ${1:-} == --installed ]] || "$root/console/page/build.sh" # an installed console brings its own page
exec 9<run.sh; flock 9 # ctest of two presets
if [[ ! node_modules/.package-lock.json -nt package-lock.json ]]; then
  npm ci --prefer-offline --silent --no-audit --no-fund --ignore-scripts >/dev/null ||
    { echo "run.sh: npm could not install what test/console/page/package-lock.json names: is an npm registry reachable?" >&2; exit 1; }
fi
node --test-reporter=spec "${tests[@]}"
[[ ${QM_SCREENSHOTS:-} != write ]] || pngquant --force --ext .png --strip 96 "$root"/docs/images/console/*.png
