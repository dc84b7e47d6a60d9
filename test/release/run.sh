#!/usr/bin/env bash
# run.sh: what `./dev release` makes. `run.sh --help` says how it is used.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../cluster/lane.sh"

usage() {
  cat <<'H'
usage: run.sh [--k8s 1.36] [-run REGEX] [--cluster NAME]
Runs `./dev release` twice, in two folders, and uses what it makes: the executable in an empty root, in shells and in man, install.yaml and
the chart on a cluster. Prints `go test -v` output; exit code 0 when all passed, 1 when a test failed, 2 on wrong usage, 77 and one line
when this machine can make no release (it takes Debian 12 on amd64), or where QM_SET is `short`. Two to three minutes.
  -run REGEX      only tests whose name matches
  --cluster NAME  use this cluster (made by an earlier run), start it when it is not there, and leave it up
H
}

cluster_variable=QM_RELEASE_CLUSTER
read_options "--k8s -run --cluster" "$@"
select_tests
if [[ $set_name == short && -z $run ]]; then echo "not run: it compiles the tree once more, and is in the sets 'long' and 'all' (QM_SET)"; exit 77; fi
export QM_SET=all
QM_RELEASE=$root/build/test/dist
export QM_ALLOW_OLD_PACKAGES=1 # test/release/scripts tests that others fail
mkdir -p "$root/build/test"
export QM_SIGNING_KEY=$root/build/test/signing.key
openssl genpkey -algorithm ed25519 -out "$QM_SIGNING_KEY"
"$root/dev" release --check || exit 77
arch=amd64
[[ -z ${QM_NIGHTLY:-} ]] || arch=all # half an hour more, where nothing is cached
"$root/dev" release --out "$QM_RELEASE" --arch "$arch"
export QM_RELEASE
build_cluster etcd,helm
. "$root/test/cluster/go.sh" # the tests build krew
run_tests release
