#!/usr/bin/env bash
# run.sh: the end-to-end tests, which are data: a folder a test, chainsaw-test.yaml in it. `run.sh --help` says how it is used.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../cluster/lane.sh"

usage() {
  cat <<'H'
usage: run.sh [--kubeconfig FILE] [--k8s 1.37|1.36|1.30] [--operator FILE] [TEST...]
  --kubeconfig  a test cluster where the operator and `sim plugins` run already; without it one is made and taken down:
                control plane, chart, simulated plugins, the operator under its ServiceAccount
  --operator    the program (default: build/release/quartermaster, else build/dev/quartermaster)
  TEST          folders here: 1-main-job; default those of the set QM_SET=short|long|all (default: short), one after the other.
                Folders that end in -long are only in the sets long, which has no others, and all.
Exit codes: 0 all passed, 1 one failed, 2 wrong usage.
H
}

kubeconfig='' tests=()
own_option() {
  case $1 in
    --kubeconfig) needs_value "$@"; kubeconfig=$(readlink -f "$2") || wrong "no file $2"; taken=2 ;;
    -*) ;;
    *) [[ -d $here/$1 ]] || wrong "no test '$1'"; tests+=("$here/$1"); taken=1 ;;
  esac
}
read_options "--k8s --operator" "$@"
if ((${#tests[@]} == 0)); then
  for test in "$here"/[0-9]*; do
    [[ $test == *-long ]] && kind=long || kind=short
    case ${QM_SET:-short} in all|"$kind") tests+=("$test") ;; short|long) ;; *) wrong "QM_SET '$QM_SET' is not one of: short, long, all" ;; esac
  done
fi
"$root/test/cluster/build.sh" --k8s "$([[ -n $kubeconfig ]] && echo none || echo "$k8s")" --tools etcd,kwok,helm,chainsaw,sim
cache=${XDG_CACHE_HOME:-$HOME/.cache}/quartermaster
chainsaw=$(find "$cache" -path '*/chainsaw-*/bin/chainsaw' | sort -V | tail -n1)

work=$(mktemp -d) name='' started=()
leave() {
  local rc=$? pid
  trap - EXIT
  for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; wait "$pid" 2>/dev/null || true; done
  [[ $rc == 0 ]] || tail -n 15 "$work"/*.log 2>/dev/null || true
  [[ -z $name ]] || "$root/test/cluster/cluster.sh" down --name "$name" 2>/dev/null
  rm -rf "$work"
  exit "$rc"
}
trap leave EXIT
trap 'exit 130' INT TERM

free_port() { local p; while p=$((32000 + RANDOM % 700)); { exec 3<>"/dev/tcp/127.0.0.1/$p"; } 2>/dev/null; do exec 3>&-; done; echo "$p"; }
soon() { local end=$((SECONDS + $1)); shift; until "$@" >/dev/null 2>&1; do ((SECONDS < end)) || return 1; sleep 0.1; done; }

find_operator
if [[ -z $kubeconfig ]]; then
  [[ -n $operator ]] || die "no operator: ./dev build release"
  name=e2e-$$
  kubeconfig=$("$root/test/cluster/cluster.sh" up --name "$name" --k8s "$k8s" | tail -n1)
  eval "$("$root/test/cluster/cluster.sh" env --name "$name")"
  helm install quartermaster "$root/charts/quartermaster" -n quartermaster --create-namespace --set replicaCount=0 >"$work/helm.log" 2>&1 || die "the chart does not install"
  sim plugins --kubeconfig "$kubeconfig" >"$work/sim.log" 2>&1 & started+=($!)
  account=$("$root/test/cluster/cluster.sh" sa-kubeconfig --name "$name" --namespace quartermaster --serviceaccount quartermaster | tail -n1)
  address=127.0.0.1:$(free_port)
  POD_NAMESPACE=quartermaster "$operator" controller --kubeconfig "$account" --metrics-address "$address" >"$work/operator.log" 2>&1 & started+=($!)
  soon 20 curl -fs "http://$address/readyz" || die "the operator is not ready after 20 s"
fi
PATH=$(dirname "$(find "$cache" -path '*/kubernetes-*/bin/kubectl' | sort -V | tail -n1)"):$PATH
kubectl --kubeconfig "$kubeconfig" apply -f "$here/policy.yaml" >/dev/null
# In the order of their names, which chainsaw does not keep by itself. A namespace per test would cost five seconds at its end, and no
# test needs one.
passed=0 failed=()
for test in "${tests[@]}"; do
  if KUBECONFIG=$kubeconfig QUARTERMASTER=$operator "$chainsaw" test --namespace default --no-color --quiet "$test" >"$work/test.txt" 2>&1; then passed=$((passed + 1))
  else failed+=("$(basename "$test")"); cat "$work/test.txt"; fi
  grep -E '^ *--- (PASS|FAIL): chainsaw/' "$work/test.txt" || true

done
echo "$passed passed, ${#failed[@]} failed ${failed[*]}"
[[ ${#failed[@]} -eq 0 ]]
