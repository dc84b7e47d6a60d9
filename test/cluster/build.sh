#!/bin/bash
# build.sh: build the programs of the test cluster from their Go modules, into ${XDG_CACHE_HOME:-~/.cache}/quartermaster.
#
# Versions and checksums are those of the go.mod and go.sum files; checksum verification stays on. All programs of a module are made by one
# `go build`, because they share most packages. Programs that are built already are skipped: a stamp holds a hash of go.mod, go.sum, the
# flags, and the sources where they are ours. Programs are built under another name and renamed, so no one sees a half-built one. A lock
# per folder keeps two callers from building twice.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/layout.sh"
source "$cluster_src/go.sh"

chainsaw_toolchain=go1.25.8 # chainsaw v0.2.14 does not compile with Go 1.26

usage() {
  cat <<EOF
Usage: build.sh [--k8s $(IFS='|'; echo "${k8s_minors[*]}")|all|none] [--tools LIST|all|none] [--real-node] [--list]

  --k8s     Kubernetes programs to build: ${k8s_programs[*]} (default ${k8s_minors[0]})
  --tools   comma list of ${tool_names[*]} (default all)
  --real-node  also what a real node takes: kubelet and kube-proxy of those Kubernetes versions, ${real_node_units[*]}
  --list    say what is built and what is not, build nothing

README.md says how long this takes. KUBEBUILDER_ASSETS, when set, brings ${assets_programs[*]}; those are then not built.
EOF
}

die() { echo "build.sh: $1" >&2; exit "${2:-1}"; }
say() { echo "build: $*" >&2; }

k8s=${k8s_minors[0]} tools=all real_node='' list=''
while (($#)); do
  case $1 in
    --k8s)   [[ $# -ge 2 ]] || die "--k8s needs a version: ${k8s_minors[*]}, all or none" 2; k8s=$2; shift 2 ;;
    --tools) [[ $# -ge 2 ]] || die "--tools needs a list of: ${tool_names[*]}" 2; tools=$2; shift 2 ;;
    --real-node) real_node=yes; shift ;;
    --list)  list=yes; shift ;;
    -h|--help) usage; exit 0 ;;
    *) die "unknown argument '$1' (try --help)" 2 ;;
  esac
done

units=()
case $k8s in
  all) units+=("${k8s_minors[@]}") ;;
  none) ;;
  *) [[ " ${k8s_minors[*]} " == *" $k8s "* ]] || die "--k8s $k8s is not one of: ${k8s_minors[*]}, all, none" 2
     units+=("$k8s") ;;
esac
case $tools in
  all) units+=("${tool_names[@]}") ;;
  none) ;;
  *) for t in ${tools//,/ }; do
       [[ " ${tool_names[*]} " == *" $t "* ]] || die "--tools $t is not one of: ${tool_names[*]}, all, none" 2
       units+=("$t")
     done ;;
esac
if [[ -n $real_node ]]; then
  for t in "${units[@]}"; do if [[ $t == 1.* ]]; then units+=("kubelet-$t"); fi; done
  units+=("${real_node_units[@]}")
fi

# link_flags UNIT: /version, `helm version` and Helm's .Capabilities read these; without them a server reports `v0.0.0-master`. All programs of
# a module are linked with the same flags, and those that do not have a variable ignore it.
link_flags() {
  local v minor flags="-s" p
  v=$(unit_version "$1")
  case $1 in
    containerd) flags+=" -X github.com/containerd/containerd/v2/version.Version=$v" ;;
    chainsaw|prometheus|coredns) ;;
    *)
      v=$(module_version "$(unit_folder "$1")" k8s.io/kubernetes); minor=${v#v1.}; minor=${minor%%.*}
      for p in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
        flags+=" -X $p.gitVersion=$v -X $p.gitMajor=1 -X $p.gitMinor=$minor -X $p.gitTreeState=clean"
      done
      [[ $(unit_folder "$1") == "$test_src" ]] || { echo "$flags"; return; }
      flags+=" -X sigs.k8s.io/kwok/pkg/consts.Version=$(unit_version kwok) -X helm.sh/helm/v3/internal/version.version=$(unit_version helm)"
      for p in lint/rules chartutil; do
        flags+=" -X helm.sh/helm/v3/pkg/$p.k8sVersionMajor=1 -X helm.sh/helm/v3/pkg/$p.k8sVersionMinor=$minor"
      done ;;
  esac
  echo "$flags"
}

build_tags() { # UNIT: what our tests need of it
  case $1 in
    containerd) echo no_btrfs,no_devmapper,no_zfs,no_aufs ;;
    prometheus) echo remove_all_sd,enable_kubernetes_sd ;;
  esac
}

# stamp_of UNIT FLAGS: the stamp of our own programs covers their sources too.
stamp_of() {
  local dir sources=(); dir=$(unit_folder "$1")
  case $1 in sim) sources=("$dir/sim") ;; node) sources=("$dir/cluster/node") ;; coredns) sources=("$dir/coredns") ;; esac
  { echo "$2 $go_flags"; cat "$dir/go.mod" "$dir/go.sum"
    ((${#sources[@]} == 0)) ||
      find "${sources[@]}" -type f \( -name '*.go' -o -name '*.yaml' \) ! -name '*_test.go' -print0 | sort -z | xargs -0 cat
  } | sha256sum | cut -d' ' -f1
}

# built_name PACKAGE: what `go build` calls its program.
built_name() { basename "${1%/v[0-9]}"; }

# with_progress STALE: reads what `go build -v` writes, and says every ten seconds how far it is. STALE has lines "bytes package", of what is
# to be compiled. The time left is that of the bytes left, at the pace so far; the programs are linked after that.
with_progress() {
  local line rc began=$SECONDS last=$SECONDS done=0 all=0 bytes=0 sum=0 left size package
  local -A sizes
  while read -r size package; do sizes[$package]=$size; sum=$((sum + size)) all=$((all + 1)); done <"$1"
  while true; do
    rc=0; IFS= read -r -t 2 line || rc=$?
    if ((rc == 0)); then
      if [[ -n ${sizes[$line]:-} ]]; then bytes=$((bytes + sizes[$line])) done=$((done + 1))
      elif [[ $line != *[!a-zA-Z0-9./_-]* ]]; then : # a package that was expected in the build cache, or a program's
      else echo "$line" >&2; fi
    elif ((rc <= 128)); then break; fi # the end, not the time
    ((SECONDS - last >= 10)) || continue
    last=$SECONDS
    if ((bytes == 0)); then continue; fi
    left=$(((SECONDS - began) * (sum - bytes) / bytes))
    if ((left >= 90)); then left="about $(((left + 30) / 60)) min left"
    elif ((done < all)); then left="about $left s left"
    else left="linking"; fi
    say "compiled $done of $all packages in $((SECONDS - began)) s, $left"
  done
}

# build_home UNIT...: the programs of these units, which have one folder in the cache and so one module. The caller holds its lock.
build_home() {
  local dir home flags stamp unit program package started toolchain=local programs=() packages=() stamps=() i
  dir=$(unit_folder "$1") home=$(unit_home "$1") flags=$(link_flags "$1")
  for unit; do
    stamp=$(stamp_of "$unit" "$flags")
    while read -r program package; do
      if from_assets "$program"; then say "$program: from KUBEBUILDER_ASSETS ($KUBEBUILDER_ASSETS/$program)"; continue; fi
      if [[ -x $home/bin/$program && $(cat "$home/stamps/$program" 2>/dev/null) == "$stamp" ]]; then
        [[ -z $list ]] || say "$program $(unit_version "$unit"): $home/bin/$program"
      elif [[ -n $list ]]; then say "$program $(unit_version "$unit"): not built"
      else programs+=("$program") packages+=("$package") stamps+=("$stamp"); fi
    done < <(unit_packages "$unit")
  done
  ((${#programs[@]})) || return 0

  started=$SECONDS
  say "building ${programs[*]} in $(basename "$home")"
  [[ $1 != chainsaw ]] || toolchain=$chainsaw_toolchain
  rm -rf "$home/.new"; mkdir -p "$home/bin" "$home/stamps" "$home/.new"
  (
    cd "$dir"
    export GOTOOLCHAIN=$toolchain GOGC=off GOMEMLIMIT=1500MiB # for the compiler: a quarter less CPU
    # shellcheck disable=SC2016 # Go's variables
    go list -deps -tags "$(build_tags "$1")" -ldflags "$flags" \
      -f '{{if and .Stale (ne .Name "main")}}{{$p := .}}{{range .GoFiles}}{{$p.ImportPath}} {{$p.Dir}}/{{.}}{{"\n"}}{{end}}{{end}}' "${packages[@]}" 9>&- |
      awk NF >"$home/.new/.files"
    awk '{ print $2 }' "$home/.new/.files" | xargs -r stat -L -c %s | paste -d' ' - "$home/.new/.files" |
      awk '{ bytes[$2] += $1 } END { for (p in bytes) print bytes[p], p }' >"$home/.new/.stale"
    nice -n 10 go build -v -tags "$(build_tags "$1")" -ldflags "$flags" -o "$home/.new/" "${packages[@]}" 2>&1 9>&- | with_progress "$home/.new/.stale"
  ) || die "${programs[*]} did not build (see above)"
  for ((i = 0; i < ${#programs[@]}; i++)); do
    program=${programs[i]}
    cp "$home/.new/$(built_name "${packages[i]}")" "$home/bin/.$program"; mv "$home/bin/.$program" "$home/bin/$program"
    echo "${stamps[i]}" >"$home/stamps/$program"
  done
  if [[ " ${programs[*]} " == *" kwok "* ]]; then # what KWOK's nodes and pods do is data in its own module
    dir=$(cd "$dir" && go list -m -f '{{.Dir}}' sigs.k8s.io/kwok)
    cp -r "$dir/kustomize/stage" "$home/.new/stage"; chmod -R u+w "$home/.new/stage"; rm -rf "$home/stage"; mv "$home/.new/stage" "$home/stage"
  fi
  rm -rf "$home/.new"
  say "built ${#programs[@]} programs in $((SECONDS - started)) s"
}

for unit in "${units[@]}"; do [[ -f $(unit_folder "$unit")/go.mod ]] || die "no go.mod in $(unit_folder "$unit")"; done
while ((${#units[@]})); do
  home=$(unit_home "${units[0]}") here=() others=()
  for unit in "${units[@]}"; do if [[ $(unit_home "$unit") == "$home" ]]; then here+=("$unit"); else others+=("$unit"); fi; done
  units=("${others[@]}")
  mkdir -p "$home"
  exec 9>"$home/.lock"
  if ! flock -n 9; then say "another build of $(basename "$home") is under way, waiting for it"; flock 9; fi
  build_home "${here[@]}"
  exec 9>&-
done
