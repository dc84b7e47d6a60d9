#!/usr/bin/env bash
# compile.sh [PACKAGE...]: vets and compiles the Go tests, all of them or those of packages such as ./chart/server, whose tests become
# build/test/chart/server.test. Where nothing has changed it ends at once: the stamp of a program is a hash of all sources, the versions and
# the flags. A lock keeps two lanes from doing the same work.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
. cluster/go.sh
out=$PWD/../build/test
mkdir -p "$out"
exec 9>"$out/.lock"; flock 9
stamp=$({ go version; echo "$go_flags"
  find . ../charts/dashboards -name node_modules -prune -o -type f \( -name '*.go' -o -path './go.*' -o -path './sim/*.yaml' \) -print0 | sort -z |
    xargs -0 sha256sum; } | sha256sum | cut -d' ' -f1)

if (($#)); then packages=("$@"); else mapfile -t packages < <(find . -name '*_test.go' -exec dirname {} + | sort -u); fi
stale=()
for package in "${packages[@]}"; do [[ $(cat "$out/$package.stamp" 2>/dev/null) == "$stamp" ]] || stale+=("$package"); done
((${#stale[@]})) || exit 0

began=$SECONDS
export GOGC=off GOMEMLIMIT=1500MiB # for the compiler
(($#)) && vetted=("${stale[@]}") || vetted=(./...)
nice -n 10 go vet "${vetted[@]}" 9>&- || { echo "compile.sh: the tests do not compile" >&2; exit 1; }
# One call per folder that has packages, because the files are named after the last part of the package's path.
while read -r folder; do
  mapfile -t group < <(printf '%s\n' "${stale[@]}" | grep -E "^$folder/[^/]+\$")
  mkdir -p "$out/$folder"
  nice -n 10 go test -c -vet=off -o "$out/$folder/" "${group[@]}" 9>&- || { echo "compile.sh: the tests do not compile" >&2; exit 1; }
  for package in "${group[@]}"; do echo "$stamp" >"$out/$package.stamp"; done
done < <(dirname "${stale[@]}" | sort -u)
echo "compile.sh: the tests of ${#stale[@]} packages are compiled after $((SECONDS - began)) s" >&2
