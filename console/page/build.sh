#!/usr/bin/env bash
# build.sh: makes console/page/dist, the page of the console, unless it is newer than all its sources. `./dev build` calls it.
# It needs npm and gzip, and a registry (or npm's cache) for what package-lock.json names.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
fail() { printf 'console/page: %s\n' "$*" >&2; exit 1; }

exec 9<build.sh; flock 9 # two builds of one checkout share the folder
[[ ! -f dist/assets.cpp || -n $(find source package.json package-lock.json build.mjs -newer dist/assets.cpp -print -quit) ]] || exit 0
command -v npm >/dev/null || fail "npm is not on the PATH, and the page is built with it: apt-get install nodejs npm"
if [[ ! node_modules/.package-lock.json -nt package-lock.json ]]; then
  npm ci --prefer-offline --silent --no-audit --no-fund --ignore-scripts >/dev/null ||
    fail "npm could not install what console/page/package-lock.json names: is an npm registry reachable?"
fi
npm run --silent build || fail "the page does not build (above)"
