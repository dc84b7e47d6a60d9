#!/bin/bash
# build.sh: build the programs of the test cluster from their Go modules, into ${XDG_CACHE_HOME:-~/.cache}/quartermaster.
#
# Versions and checksums are those of the go.mod and go.sum files in this folder; checksum verification stays on.
# Programs that are built already are skipped: a stamp holds a hash of go.mod, go.sum and the link flags. A program is built
# under a temporary name and renamed, so no one sees a half-built one. A lock per folder keeps two callers from building twice.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/layout.sh"

go_wanted=1.26.8            # fetched as a Go module when `go` on the PATH is older than go_least or is not there
go_least=1.26
chainsaw_toolchain=go1.25.8 # chainsaw v0.2.14 does not compile with Go 1.26

usage() {
  cat <<EOF
Usage: build.sh [--k8s ${k8s_minors[0]}|${k8s_minors[1]}|all|none] [--tools LIST|all|none] [--real-node] [--list]

  --k8s     Kubernetes programs to build: ${k8s_programs[*]} (default ${k8s_minors[0]})
  --tools   comma list of ${tool_names[*]} (default all)
  --real-node  also what a real node takes: kubelet and kube-proxy of those Kubernetes versions, ${real_node_units[*]}
  --list    say what is built and what is not, build nothing

Cold, on two cores: Kubernetes about 7 minutes a version, chainsaw 3, the other tools 3 together.
KUBEBUILDER_ASSETS, when set, brings ${assets_programs[*]}; those are then not built.
EOF
}

die() { echo "build.sh: $1" >&2; exit "${2:-1}"; }
say() { echo "build: $*" >&2; }

k8s=${k8s_minors[0]} tools=all real_node= list=
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

# estimate PROGRAM: the measured time of a cold build on two cores. The first program of a module also builds what the others share.
estimate() {
  case $1 in
    kube-apiserver) echo "5 min" ;;  kube-controller-manager) echo "2 min" ;;  kube-scheduler) echo "15 s" ;;
    kubectl) echo "40 s" ;;          etcd) echo "40 s" ;;                      etcdctl) echo "10 s" ;;
    kwok|helm) echo "1 min" ;;       chainsaw) echo "3 min" ;;                 kubelet) echo "1 min" ;;
    promtool|prometheus) echo "a few min" ;;
    containerd|coredns) echo "1 min" ;;  kube-scheduler-1.35) echo "2 min" ;;    *) echo "20 s" ;;
  esac
}

# link_flags UNIT: /version, `helm version` and Helm's .Capabilities read these; without them a server reports `v0.0.0-master`.
link_flags() {
  local v major minor flags="-s -w" p
  v=$(unit_version "$1"); IFS=. read -r major minor _ <<<"${v#v}"
  case $1 in
    1.*|kubelet-*|scheduler-*) for p in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
           flags+=" -X $p.gitVersion=$v -X $p.gitMajor=$major -X $p.gitMinor=$minor -X $p.gitTreeState=clean"
         done ;;
    containerd) flags+=" -X github.com/containerd/containerd/v2/version.Version=$v" ;;
    kwok) flags+=" -X sigs.k8s.io/kwok/pkg/consts.Version=$v" ;;
    helm) minor=$(module_version "$(unit_folder helm)" k8s.io/client-go); minor=${minor#v0.}; minor=${minor%%.*}
          flags+=" -X helm.sh/helm/v3/internal/version.version=$v"
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

stamp_of() { # UNIT FLAGS: our own program's stamp covers its sources too
  local dir; dir=$(unit_folder "$1")
  { echo "$2"; cat "$dir/go.mod" "$dir/go.sum"
    if [[ $1 == sim || $1 == node || $1 == coredns ]]; then find "$dir" -type f \( -name '*.go' -o -name '*.yaml' \) ! -name '*_test.go' -print0 | sort -z | xargs -0 cat; fi
  } | sha256sum | cut -d' ' -f1
}

# at_least HAVE WANT: version order.
at_least() { [[ $(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n1) == "$2" ]]; }

# find_go: sets go_bin. Debian 12's Go 1.19 cannot read `toolchain` lines, but it can download a module: the toolchain is one.
# It is copied out of the module cache, because Go before 1.21 unpacks it without the execute bits.
find_go() {
  local have arch home dir
  have=$(go env GOVERSION 2>/dev/null || true)
  if [[ -n $have ]] && at_least "${have#go}" "$go_least"; then go_bin=go; return; fi
  home=$cache_root/go-$go_wanted
  if [[ ! -x $home/bin/go ]]; then
    [[ -n $have ]] || die "no 'go' on the PATH: install Go of any version from 1.19 on (Debian: apt-get install golang-go) and run this again"
    case $(uname -m) in x86_64) arch=amd64 ;; aarch64) arch=arm64 ;; *) die "no Go toolchain known for $(uname -m)" ;; esac
    say "$have is older than $go_least: fetching Go $go_wanted as a module, about 1 min"
    mkdir -p "$cache_root"
    dir=$(cd / && GO111MODULE=on GOFLAGS=-mod=mod go mod download -json "golang.org/toolchain@v0.0.1-go$go_wanted.linux-$arch" |
          sed -n 's/^\t"Dir": "\(.*\)",\{0,1\}$/\1/p')
    [[ -n $dir ]] || die "Go $go_wanted could not be fetched (see above)"
    rm -rf "$home.new"; cp -r "$dir" "$home.new"; chmod -R u+w "$home.new"
    chmod +x "$home.new"/bin/* "$home.new"/pkg/tool/*/*
    rm -rf "$home"; mv "$home.new" "$home"
  fi
  go_bin=$home/bin/go
  unset GOROOT # of the older one
}

build_unit() { # one module folder; the caller holds its lock
  local unit=$1 dir home flags stamp program package started
  dir=$(unit_folder "$unit") home=$(unit_home "$unit") flags=$(link_flags "$unit"); stamp=$(stamp_of "$unit" "$flags")
  [[ -n $list ]] || mkdir -p "$home/bin" "$home/stamps"
  while read -r program package; do
    if from_assets "$program"; then say "$program: from KUBEBUILDER_ASSETS ($KUBEBUILDER_ASSETS/$program)"; continue; fi
    if [[ -x $home/bin/$program && $(cat "$home/stamps/$program" 2>/dev/null) == "$stamp" ]]; then
      [[ -z $list ]] || say "$program $(unit_version "$unit"): $home/bin/$program"
      continue
    fi
    if [[ -n $list ]]; then say "$program $(unit_version "$unit"): not built"; continue; fi
    say "building $program $(unit_version "$unit"), about $(estimate "$program") on 2 cores from cold"
    [[ -n ${go_bin:-} ]] || find_go
    started=$SECONDS
    rm -f "$home/.$program".*
    (cd "$dir" && GOWORK=off CGO_ENABLED=0 GOTOOLCHAIN=$([[ $unit == chainsaw ]] && echo "$chainsaw_toolchain" || echo local) \
       nice -n 10 "$go_bin" build -trimpath -buildvcs=false -tags "$(build_tags "$unit")" -ldflags "$flags" -o "$home/.$program.new" "$package" 9>&-) ||
      die "$program $(unit_version "$unit") did not build (see above)"
    mv "$home/.$program.new" "$home/bin/$program"; echo "$stamp" >"$home/stamps/$program"
    say "built $program $(unit_version "$unit") in $((SECONDS - started)) s, $(du -m "$home/bin/$program" | cut -f1) MiB"
  done < <(unit_packages "$unit")
  if [[ $unit == kwok && -z $list && ! -d $home/stage ]]; then # what KWOK's nodes and pods do is data in its own module
    [[ -n ${go_bin:-} ]] || find_go
    dir=$(cd "$dir" && GOWORK=off "$go_bin" list -m -f '{{.Dir}}' sigs.k8s.io/kwok)
    rm -rf "$home/.stage.new"; cp -r "$dir/kustomize/stage" "$home/.stage.new"; chmod -R u+w "$home/.stage.new"; mv "$home/.stage.new" "$home/stage"
  fi
}

for unit in "${units[@]}"; do
  [[ -f $(unit_folder "$unit")/go.mod ]] || die "no go.mod in $(unit_folder "$unit")"
  if [[ -n $list ]]; then build_unit "$unit"; continue; fi
  home=$(unit_home "$unit"); mkdir -p "$home"
  exec 9>"$home/.lock"
  if ! flock -n 9; then say "another build of $(basename "$home") is under way, waiting for it"; flock 9; fi
  build_unit "$unit"
  exec 9>&-
done
