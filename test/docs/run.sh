#!/usr/bin/env bash
# run.sh: every command of README.md and docs/*.md, run in the document's order. `run.sh --help` says how it is used.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=${here%/test/docs}
usage() {
  cat <<'H'
usage: run.sh [--k8s 1.37|1.36|1.30] [--operator FILE] [--list] [DOCUMENT...]
Runs the fenced blocks of README.md and docs/*.md on a cluster that it makes: control plane, KWOK's nodes, simulated plugins. All documents
and those of the set long are run on two clusters, half of them on each.
  sh, bash  each command has to end with 0, or with the code that the document's situation names
  console   the same after each `$ `; then each line that the document shows has to be in the answer, in that order. Numbers,
            blanks and random ends of pod names may differ, and `...` stands for any text
  yaml      an object: the API server accepts it (dry run); a `spec:` alone: as a part of the AcceleratorPolicy;
            a KubeSchedulerConfiguration: `lint scheduler-config` accepts it
  --operator  the program (default: build/release/quartermaster, else build/dev/quartermaster)
  --list      prints the commands and starts nothing
  DOCUMENT    as docs/cli.md; default all, or those of the set in QM_SET: short is what a newcomer reads first, long is the others
test/docs/NAME.sh is the situation that the document NAME.md assumes; not-run.txt names what cannot run here, and why.
Exit codes: 0 all is as written, 1 something is not, 2 wrong usage.
H
}
wrong() { echo "run.sh: $1 (see --help)" >&2; exit 2; }
die() { echo "run.sh: $1" >&2; exit 1; }
k8s=1.37 operator='' list='' documents=() everything=''
while (($#)); do
  case $1 in
    --k8s) [[ $# -ge 2 ]] || wrong "$1 needs a value"; k8s=$2; shift 2 ;;
    --operator) [[ $# -ge 2 ]] || wrong "$1 needs a value"; operator=$(readlink -f "$2"); shift 2 ;;
    --list) list=1; shift ;;
    -h|--help) usage; exit 0 ;;
    -*) wrong "unknown argument '$1'" ;;
    *) [[ -f $root/$1 ]] || wrong "no document '$1'"; documents+=("$1"); shift ;;
  esac
done
case $k8s in 1.37|1.36|1.30) ;; *) wrong "--k8s '$k8s' is not one of: 1.37, 1.36, 1.30" ;; esac
if ((${#documents[@]} == 0)); then
  everything=1
  for document in "$root"/README.md "$root"/docs/*.md; do
    document=${document#"$root"/}
    case $document in README.md|docs/ask-for-a-card.md|docs/install.md) kind=short ;; *) kind=long ;; esac
    case ${QM_SET:-all} in all|"$kind") documents+=("$document") ;; short|long) ;; *) wrong "QM_SET '$QM_SET' is not one of: short, long, all" ;; esac
  done
fi
for candidate in "$root/build/release/quartermaster" "$root/build/dev/quartermaster"; do [[ -n $operator || ! -x $candidate ]] || operator=$candidate; done
[[ -n $operator || -n $list ]] || die "no operator: ./dev build release"

if [[ -n $everything && -z $list ]]; then
  ! unlike=$(QM_SET=all "$here/run.sh" --list | grep '^not-run\.txt') || die "$unlike"
  [[ ${QM_SET:-} != short ]] || everything=''  # three are not worth a second cluster
fi

# All documents: every other one on a second cluster next to the first, because most of the time they wait.
if [[ -n $everything && -z $list ]]; then
  "$root/test/cluster/build.sh" --k8s "$k8s" --tools etcd,kwok,helm,sim
  halves=() rc=0 later=$(mktemp)
  trap '((${#halves[@]} == 0)) || kill "${halves[@]}" 2>/dev/null || true; cat "$later"; rm -f "$later"' EXIT
  trap 'exit 130' INT TERM
  even=() odd=()
  for i in "${!documents[@]}"; do if ((i % 2)); then odd+=("${documents[i]}"); else even+=("${documents[i]}"); fi; done
  "$here/run.sh" --k8s "$k8s" --operator "$operator" "${even[@]}" & halves+=($!)
  "$here/run.sh" --k8s "$k8s" --operator "$operator" "${odd[@]}" >"$later" 2>&1 & halves+=($!)
  for half in "${halves[@]}"; do wait "$half" || rc=1; done
  halves=()
  exit "$rc"
fi

# ---- what the lane knows while it reads ----

work=$(mktemp -d) failures=0 ran=0 left_out=0
not_run=() reasons=() used=()
while IFS= read -r line; do
  [[ -n $line && $line != '#'* ]] || continue
  [[ $line == *' # '* ]] || die "not-run.txt: a line is PATTERN # REASON: $line"
  not_run+=("${line%% # *}") reasons+=("${line#* # }") used+=('')
done <"$here/not-run.txt"
before_pattern=() before_code=() before_used=() exit_pattern=() exit_code=() exit_used=()
before() { before_pattern+=("$1") before_code+=("$2") before_used+=(''); }  # before PATTERN CODE: run before such a command
exits() { exit_pattern+=("$2") exit_code+=("$1") exit_used+=(''); }         # exits CODE PATTERN: how such a command ends
failed() { echo "$1"; failures=$((failures + 1)); }

# ---- a cluster, and programs that stand for what it lacks ----

export QUARTERMASTER_CLUSTERS=$work/clusters
leave() {
  local rc=$? file
  trap - EXIT
  for file in "$work"/*.pid; do [[ ! -f $file ]] || kill -- "-$(cat "$file")" 2>/dev/null || true; done
  [[ $rc == 0 || -n $list ]] || tail -n 15 "$work"/*.log 2>/dev/null || true
  [[ -n $list ]] || "$root/test/cluster/cluster.sh" down --all 2>/dev/null || true
  rm -rf "$work"
  exit "$rc"
}
trap leave EXIT
trap 'exit 130' INT TERM

# free_port: the next one below the range of outgoing connections that is not in use. Never the same twice in a row: the first is not in use
# yet when the second is looked for. Two runs that start together begin far apart.
echo $((32000 + $$ * 97 % 700)) >"$work/port"
free_port() {
  local p; p=$(cat "$work/port")
  while p=$((32000 + (p - 31999) % 700)); { exec 3<>"/dev/tcp/127.0.0.1/$p"; } 2>/dev/null; do exec 3>&-; done
  echo "$p" | tee "$work/port"
}
# soon SECONDS COMMAND...: until it is so; three times as long on a loaded machine.
soon() { local end=$((SECONDS + 3 * $1)); shift; until "$@" >/dev/null 2>&1; do ((SECONDS < end)) || { echo "not after the time allowed: $*" >&2; return 1; }; sleep 0.1; done; }
# background NAME COMMAND...: until the lane ends, or `end NAME`.
background() { local name=$1; shift; setsid "$@" >>"$work/$name.log" 2>&1 </dev/null & echo $! >"$work/$name.pid"; }
end() { [[ ! -f $work/$1.pid ]] || { kill -- "-$(cat "$work/$1.pid")" 2>/dev/null || true; rm -f "$work/$1.pid"; }; }

# start_operator: the process that the Deployment's pod would be: its ServiceAccount, its policy. It ends when there are no
# replicas.
start_operator() {
  local account address policy=()
  [[ $(kubectl get deploy -n quartermaster quartermaster -o jsonpath='{.spec.replicas}') == [1-9]* ]] || return 0
  account=$("$root/test/cluster/cluster.sh" sa-kubeconfig --namespace quartermaster --serviceaccount quartermaster | tail -n1)
  if kubectl get cm -n quartermaster quartermaster-policy -o jsonpath='{.data.policy\.yaml}' >"$work/policy.yaml" 2>/dev/null; then policy=(--policy "$work/policy.yaml"); fi
  address=127.0.0.1:$(free_port)
  echo "127.0.0.1:$(free_port)" >"$work/extender"
  POD_NAMESPACE=quartermaster background operator "$operator" controller --kubeconfig "$account" --metrics-address "$address" \
    --extender-address "$(cat "$work/extender")" "${policy[@]}"
  soon 20 curl -fs "http://$address/readyz"
  background replicas bash -c 'kubectl wait -n quartermaster deploy/quartermaster --for=jsonpath="{.spec.replicas}"=0 --timeout=1h; kill "$0"' \
    "$(cat "$work/operator.pid")"
}

# The programs of the documents. No pod runs here, so `helm` starts the operator itself; `quartermaster` gets a terminal where it asks;
# what watches is watched for two seconds.
make_programs() {
  mkdir -p "$work/bin"
  local real; real=$(command -v helm)
  cat >"$work/bin/helm" <<S
#!/usr/bin/env bash
set -euo pipefail
$(declare -f free_port soon background end start_operator)
root='$root' work='$work' operator='$operator'
'$real' "\$@"
case \$1 in install) start_operator ;; uninstall) end operator; end replicas ;; esac
S
  real=$(command -v kubectl)
  cat >"$work/bin/kubectl" <<S
#!/usr/bin/env bash
case " \$* " in *" -w "*) timeout 2 '$real' "\$@"; rc=\$?; [[ \$rc == 124 ]] && rc=0; exit \$rc ;; *) exec '$real' "\$@" ;; esac
S
  cat >"$work/bin/quartermaster" <<S
#!/usr/bin/env bash
case " \$* " in
  *" --yes "*) ;;
  " uninstall "*)
    said=\$(mktemp)
    { while [[ -e \$said ]]; do ! grep -qs 'Go on?' "\$said" || { echo y; break; }; sleep 0.1; done; } |
      { script -qefc "'$operator' \$*" "\$said"; rc=\$?; rm -f "\$said"; exit \$rc; }
    exit ;;
esac
exec '$operator' "\$@"
S
  cat >"$work/bin/dev" <<S
#!/usr/bin/env bash
$(declare -f free_port soon)
work='$work'
[[ \$1 == run ]] || exec '$root/dev' "\$@"
address=127.0.0.1:\$(free_port) words=("\${@:2}")
timeout 60 '$operator' "\${words[@]/127.0.0.1:8080/\$address}" & operator=\$!
soon 15 curl -fs "http://\$address/readyz"; rc=\$?
kill \$operator; wait; exit \$rc
S
  chmod +x "$work"/bin/*
  ln -s quartermaster "$work/bin/kubectl-quartermaster"
  mkdir "$work/place"
  ln -s "$root/charts" "$root/crds" "$root/test" "$work/place"
  ln -s "$work/bin/dev" "$work/place/dev"
}

start_cluster() {
  "$root/test/cluster/build.sh" --k8s "$k8s" --tools etcd,kwok,helm,sim
  "$root/test/cluster/cluster.sh" up --k8s "$k8s" >"$work/up"
  eval "$("$root/test/cluster/cluster.sh" env)"
  make_programs
  PATH=$work/bin:$PATH
  local profile
  sim nodes --profile a100=1,t4=1,cpu=1 2>"$work/nodes.log"
  for profile in a100 t4 cpu; do kubectl get node "$profile-0" -o json >"$work/$profile.json"; done
  kubectl delete nodes a100-0 t4-0 >/dev/null
  background plugins sim plugins --kubeconfig "$KUBECONFIG"
}

# What situations are made of.
clean() {  # clean: nothing of Quartermaster, and no node with cards; pods first, which nodes wait for
  end scheduler
  kubectl get ns lab >/dev/null 2>&1 || kubectl create ns lab
  kubectl delete pods,deployments -n default --all --now
  kubectl delete pods,deployments -n lab --all --now
  if has_crds; then quartermaster uninstall --yes --timeout 30; fi
  helm uninstall quartermaster -n quartermaster --ignore-not-found
  kubectl delete nodes -l kubernetes.io/hostname!=cpu-0
}
has_crds() { kubectl get crd acceleratorpolicies.quartermaster.io >/dev/null 2>&1; }  # `get apol` answers for a moment after they are gone
installed() {  # installed SPEC: by helm, with this policy besides
  if ! has_crds; then
    helm uninstall quartermaster -n quartermaster --ignore-not-found
    helm install quartermaster "$root/charts/quartermaster" -n quartermaster --create-namespace
  fi
  soon 20 policy "$1" || policy "$1"  # CRDs that were gone are served again a moment after they are made
}
policy() {  # policy SPEC
  kubectl apply -f - <<<"{apiVersion: quartermaster.io/v1alpha1, kind: AcceleratorPolicy, metadata: {name: default}, spec: $1}"
}
node() {  # node NAME PROFILE [MODE]
  jq --arg name "$1" --arg mode "${3:-}" 'del(.metadata.uid, .metadata.resourceVersion, .metadata.creationTimestamp, .metadata.managedFields) |
    .metadata.name = $name | .metadata.labels["kubernetes.io/hostname"] = $name |
    if $mode == "" then . else .metadata.labels["nvidia-device-enable"] = $mode end' "$work/$2.json" | kubectl create -f -
}
client_files() {  # what a kube-scheduler shows to the extender
  local file
  soon 20 kubectl get secret -n quartermaster quartermaster-extender-client
  for file in ca.crt tls.crt tls.key; do kubectl get secret -n quartermaster quartermaster-extender-client -o jsonpath="{.data.${file/./\\.}}" | base64 -d >$file; done
}
scheduler() {  # scheduler NAME: the kube-scheduler that a pod of the operator's Deployment would be
  client_files
  "$operator" render scheduler-config --address "https://$(cat "$work/extender")" --server-name quartermaster-extender.quartermaster.svc --ca ca.crt \
    --cert tls.crt --key tls.key --scheduler-name "$1" --kubeconfig "$KUBECONFIG" --kubernetes "$k8s" >"$work/scheduler.yaml"
  background scheduler kube-scheduler --config "$work/scheduler.yaml" --bind-address 127.0.0.1 --secure-port "$(free_port)"
}
sends_to_scheduler() { [[ $(kubectl get resourcerules default -o jsonpath='{.metadata.labels.quartermaster\.io/scheduler}') == Dedicated ]]; }
ready() {  # ready NODE MODE: it has left what it was, and is that
  soon 30 is "$1" actualMode "$2" && soon 20 is "$1" phase Ready
}
is() { [[ $(kubectl get anode "$1" -o jsonpath="{.status.$2}") == "$3" ]]; }  # is NODE FIELD VALUE, of its AcceleratorNode

# ---- reading and running ----

# same_shape SHOWN SAID: every line that the document shows is in the answer, in that order.
normal() {
  sed -E -e 's/\r//g; s/[0-9]+([.:][0-9]+)*/0/g; s/-[bcdfghjklmnpqrstvwxz0]{3,10}-[bcdfghjklmnpqrstvwxz0]{2,5}\b/-0/g' \
    -e 's/Go on\? \[y\/N\].*/Go on?/; s/(asked by [^ ]+) \([^)]*\)/\1/; s/[[:space:]]+/ /g; s/^ | $//g'
}
same_shape() {
  local wanted said=() at=0 pattern
  mapfile -t said < <(normal <"$2")
  while IFS= read -r wanted; do
    [[ -n $wanted ]] || continue
    pattern=${wanted//\\/\\\\} pattern=${pattern//\[/\\[} pattern=${pattern//\*/\\*} pattern=${pattern//\?/\\?} pattern=${pattern//.../*}
    # shellcheck disable=SC2053
    until ((at == ${#said[@]})) || [[ ${said[at]} == $pattern ]]; do at=$((at + 1)); done
    ((at < ${#said[@]})) || { echo "  the answer lacks: $wanted"; return 1; }
    at=$((at + 1))
  done < <(normal <"$1")
}

complete() { [[ $1 != *\\ ]] && [[ -z $(bash -n <<<"$1" 2>&1) ]]; }

# run_commands: the block's commands, in one shell. Index of each: line[], command[]; shown-N is what the document shows.
run_commands() {
  local i j rc script=$work/block.sh
  rm -f "$work"/[0-9]*.out "$work"/[0-9]*.rc
  { declare -f; declare -p work root operator here k8s; echo "cd '$work/place'"; } >"$script"
  for i in "${!command[@]}"; do
    for j in "${!not_run[@]}"; do
      # shellcheck disable=SC2053
      if [[ ${command[i]} == ${not_run[j]} ]]; then used[j]=1; [[ -z $list ]] || echo "$document:${line_of[i]}: not run (${reasons[j]}): ${command[i]}"; left_out=$((left_out + 1)); continue 2; fi
    done
    [[ -z $list ]] || { echo "$document:${line_of[i]}: ${command[i]}"; continue; }
    for j in "${!before_pattern[@]}"; do
      # shellcheck disable=SC2053
      if [[ -z ${before_used[j]} && ${command[i]} == ${before_pattern[j]} ]]; then before_used[j]=1; printf 'set -e\n{\n%s\n} >>%q 2>&1 </dev/null\nset +e\n' "${before_code[j]}" "$work/situation.log" >>"$script"; fi
    done
    printf '{\n%s\n} >%q 2>&1 </dev/null; echo $? >%q\n' "${command[i]}" "$work/$i.out" "$work/$i.rc" >>"$script"
    wanted[i]=0
    for j in "${!exit_pattern[@]}"; do
      # shellcheck disable=SC2053
      if [[ ${command[i]} == ${exit_pattern[j]} ]]; then exit_used[j]=1 wanted[i]=${exit_code[j]}; fi
    done
  done
  [[ -z $list ]] || return 0
  setsid timeout 240 bash "$script" >>"$work/situation.log" 2>&1 </dev/null &
  echo $! >"$work/block.pid"; wait $! || true; end block
  for i in "${!wanted[@]}"; do
    ran=$((ran + 1))
    rc=$(cat "$work/$i.rc" 2>/dev/null) || rc='none: it did not end, or what comes before it did not'
    if [[ $rc != "${wanted[i]}" ]]; then
      failed "$document:${line_of[i]}: exit code $rc, not ${wanted[i]}: ${command[i]}"
      sed 's/^/  | /' "$work/$i.out" 2>/dev/null | tail -n 12 || tail -n 5 "$work/situation.log"
    elif [[ -s $work/$i.shown ]] && ! same_shape "$work/$i.shown" "$work/$i.out"; then
      failed "$document:${line_of[i]}: answers something else than the document shows: ${command[i]}"
      sed 's/^/  | /' "$work/$i.out"
    fi
  done
}

run_block() {  # run_block KIND FIRST-LINE LINE...
  local kind=$1 number=$2 text='' line command=() line_of=() wanted=() file
  shift 2
  rm -f "$work"/*.shown
  case $kind in
    sh|bash|console)
      for line; do
        number=$((number + 1))
        if [[ $kind == console && -z $text ]]; then
          [[ $line == '$ '* ]] || { [[ ${#command[@]} == 0 ]] || echo "$line" >>"$work/$((${#command[@]} - 1)).shown"; continue; }
          line=${line#'$ '}
        fi
        if [[ -z $text ]]; then
          [[ $line =~ ^[[:space:]]*(#|$) ]] && continue
          line_of+=("$number") text=$line
        else text+=$'\n'$line; fi
        complete "$text" || continue
        command+=("$text") text=''
      done
      [[ -z $text ]] || command+=("$text")
      run_commands ;;
    yaml)
      file=$work/place/block-$number.yaml
      [[ -n $list ]] || printf '%s\n' "$@" >"$file"
      line_of=("$number")
      case $* in
        *'kind: KubeSchedulerConfiguration'*) # With the certificates that it leaves out.
          command=("sed -e \"s|caData: .*|caData: \$(base64 -w0 ca.crt)|; s|certData: .*|certData: \$(base64 -w0 tls.crt)|\" \\
  -e \"s|keyData: .*|keyData: \$(base64 -w0 tls.key)|\" block-$number.yaml | quartermaster lint scheduler-config -") ;;
        *'apiVersion: '*) command=("kubectl apply --dry-run=server -f block-$number.yaml") ;;
        spec:*) command=("kubectl patch apol default --type merge --dry-run=server --patch-file block-$number.yaml") ;;
        *) command=("yaml: $1") ;;
      esac
      run_commands ;;
    *) case $* in kubectl\ *|quartermaster\ *|helm\ *|./dev\ *|'$ '*) failed "$document:$number: a block with commands is not marked sh or console" ;; esac ;;
  esac
}

run_document() {
  local line number=0 indent='' kind='' first=0 block=() j situation
  before_pattern=() before_code=() before_used=() exit_pattern=() exit_code=() exit_used=()
  situation=$here/$(basename "$document" .md).sh
  # shellcheck disable=SC1090
  if [[ -f $situation && -z $list ]]; then
    rm -f "$work"/place/*.*
    echo "== $document" >>"$work/situation.log"
    pushd "$work/place" >/dev/null; source "$situation" >>"$work/situation.log" 2>&1; popd >/dev/null
  fi
  while IFS= read -r line; do
    number=$((number + 1))
    if [[ $first == 0 ]]; then
      [[ $line =~ ^(\ *)\`\`\`(.*)$ ]] || continue
      indent=${BASH_REMATCH[1]} kind=${BASH_REMATCH[2]} first=$number block=()
    elif [[ $line == "$indent\`\`\`" ]]; then run_block "$kind" "$first" "${block[@]}"; first=0
    else block+=("${line#"$indent"}"); fi
  done <"$root/$document"
  [[ -z $list ]] || return 0
  for j in "${!before_pattern[@]}"; do [[ -n ${before_used[j]} ]] || failed "$situation: no command of $document is like: ${before_pattern[j]}"; done
  for j in "${!exit_pattern[@]}"; do [[ -n ${exit_used[j]} ]] || failed "$situation: no command of $document is like: ${exit_pattern[j]}"; done
}

[[ -n $list ]] || start_cluster
for document in "${documents[@]}"; do
  began=$SECONDS
  run_document
  [[ -n $list ]] || echo "$document: $((SECONDS - began)) s"
done
if [[ -n $everything && ${QM_SET:-all} == all ]]; then
  for j in "${!not_run[@]}"; do [[ -n ${used[j]} ]] || failed "not-run.txt: no command is like: ${not_run[j]}"; done
fi
[[ -n $list ]] || echo "$ran commands ran, $left_out are in not-run.txt, $failures failures"
[[ $failures == 0 ]]
