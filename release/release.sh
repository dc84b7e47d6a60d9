#!/usr/bin/env bash
# release.sh: everything that people install, in one folder. `release.sh --help` says how it is used.
#
# The same commit, packages and options give the same bytes in every folder: entries of archives are sorted, belong to root and have the time of
# the commit. image/build.sh makes the image in the same way.
set -euo pipefail
export LC_ALL=C TZ=UTC
umask 022
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
here=$root/release

usage() {
  cat <<'H'
usage: ./dev release [--out FOLDER] [--base-url URL] [--image REPOSITORY] [--arch amd64|all] [--push REGISTRY] [--check]
Makes everything that people install, and puts it into FOLDER (default dist). FOLDER is replaced as a whole, when all of it is made.
  quartermaster-VERSION-linux-amd64.tar.gz          one executable for any Linux on amd64, completion, man page
  kubectl-quartermaster-VERSION-linux-amd64.tar.gz  the same as a plugin of kubectl; krew.yaml is its krew manifest
  quartermaster-VERSION.tgz                         the Helm chart
  install.yaml                                      the chart with its defaults, for kubectl apply --server-side -f
  quartermaster-cluster-plugin-VERSION.tgz          the package for Alauda Container Platform
  quartermaster-VERSION-amd64.tar, .spdx.json       the image as an OCI archive, and what is in it
  quartermaster-simulation-VERSION-amd64.tar, .spdx.json   the image of simulated nodes (simulate.nodes of the chart)
  quartermaster-with-simulation-VERSION-amd64.tar   both images, for kind, minikube and k3s
  quartermaster-VERSION-linux-amd64.spdx.json       what is in the executable
  SHA256SUMS, .sig                                  checksums of all these files, and their signature with the key of QM_SIGNING_KEY
  --out       allowed is a folder that is not there, is empty, or was made by this command
  --base-url  where the files will be downloaded from, for krew.yaml: https://HOST/PATH, without the name of a file
  --image     the image's name in a registry, for install.yaml, without a tag (default quartermaster)
  --arch      all: the executable, the plugin of kubectl and the image for arm64, too. They are compiled here, and started once under
              user-mode emulation
  --push      also push the images and the chart to REGISTRY, HOST[:PORT][/PATH], and print the digest of each (release/push.sh --help)
  --check     only say whether this machine can make it
SOURCE_DATE_EPOCH, when set, replaces the time of the last commit. The last line on stdout is FOLDER.
It fails where apt has a newer version of a package that goes into the executable or the image. QM_ALLOW_OLD_PACKAGES=1 allows them.
Exit codes: 0 done, 1 failed, 2 wrong usage.
H
}
say() { printf 'release: %s\n' "$*" >&2; }
die() { say "$1"; exit "${2:-1}"; }
wrong() { die "$1 (see ./dev release --help)" 2; }

out=$root/dist url='' repository=quartermaster architectures=amd64 registry='' check=''
while (($#)); do
  case $1 in
    -h|--help) usage; exit 0 ;;
    --out=*|--base-url=*|--image=*|--arch=*|--push=*) set -- "${1%%=*}" "${1#*=}" "${@:2}" ;;
    --out|--base-url|--image|--arch|--push) (($# >= 2)) && [[ -n $2 ]] || wrong "$1 needs a value" ;;&
    --out) out=$2; shift 2 ;;
    --base-url) url=${2%/}; shift 2 ;;
    --image) repository=$2; shift 2 ;;
    --arch) architectures=$2; shift 2 ;;
    --push) registry=$2; shift 2 ;;
    --check) check=1; shift ;;
    *) wrong "unknown argument '$1'" ;;
  esac
done
[[ -z $url || $url =~ ^https?://[A-Za-z0-9._~:/?#@!=%+,-]+$ ]] || wrong "--base-url '$url' is no URL; allowed is https://HOST/PATH"
[[ $repository =~ ^[a-z0-9][a-zA-Z0-9.:/_-]*$ && ! ${repository##*/} =~ : ]] ||
  wrong "--image '$repository' is no name of an image; allowed is REGISTRY/NAME without a tag"
case $architectures in amd64) ;; all) architectures="amd64 arm64" ;; *) wrong "--arch '$architectures' cannot be made; allowed are amd64 and all" ;; esac
[[ -z $registry ]] || "$here/push.sh" --check "$out" "$registry" 2>/dev/null ||
  wrong "--push '$registry' is no registry; allowed is HOST[:PORT][/PATH] in small letters, without https://, and a port from 1 to 65535"
case $out in /*) ;; *) out=$PWD/$out ;; esac
# ours FOLDER: all in it is what its SHA256SUMS lists, that file and its signature.
ours() {
  [[ -d $1 && -z $(cd "$1" && { ls -A; for _ in 1 2; do cut -c67- SHA256SUMS 2>/dev/null; printf '%s\n' SHA256SUMS SHA256SUMS.sig; done; } | sort | uniq -u) ]]
}
[[ ! -e $out || -d $out && -z $(ls -A "$out") ]] || ours "$out" ||
  wrong "--out $out holds something else; allowed is a folder that is not there, is empty, or was made by this command"
"$root/image/build.sh" --check 2>/dev/null || { "$root/image/build.sh" --check 2>&1 | sed 's/^image: //' >&2; exit 1; }
epoch=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct)}
# What goes into the executable: compiled here from the sources of these packages (libraries.sh), and as the packages have it.
compiled=(libcurl4-openssl-dev libfmt-dev libspdlog-dev libsimdjson-dev)
linked=(libssl-dev libnghttp2-dev libyaml-cpp-dev libc6-dev libstdc++-12-dev libboost1.81-dev nlohmann-json3-dev libprotozero-dev libcli11-dev)
"$root/image/updates.sh" --release ca-certificates "${compiled[@]}" "${linked[@]}" || exit
"$here/sign.sh" --check
[[ -z $check ]] || { say "this machine can make the release"; exit 0; }

version=$(<"$root/VERSION")
helm=$(find "${XDG_CACHE_HOME:-$HOME/.cache}/quartermaster" -path '*/kubernetes-v*/bin/helm' 2>/dev/null | sort -V | sed -n '$p')
[[ -n $helm ]] || die "no helm: ./dev release builds it"
revision=$(git -C "$root" rev-parse HEAD 2>/dev/null) || revision=
[[ -z $revision || -z $(git -C "$root" status --porcelain 2>/dev/null) ]] || revision+=-dirty

new=$out.new.$$ work=$(mktemp -d)
trap 'rm -rf "$work" "$new"' EXIT
mkdir -p "$new"

# pack FILE FOLDER: FOLDER's content as a compressed archive.
pack() {
  (cd "$2" && tar --create --format=ustar --sort=name --owner=0 --group=0 --numeric-owner --mode=go-w --mtime="@$epoch" -- *) | gzip -9 --no-name >"$new/$1"
}

# ---- the executable ----

# executable ARCH: its archive, the plugin of kubectl and the list of what is in it.
executable() {
  local arch=$1 program=$root/build/release/portable/quartermaster emulator=() admin=() libraries tree work=$work/$1 name=quartermaster-$version-linux-$1
  libraries=$("$here/libraries.sh" --arch "$arch")
  if [[ $arch == arm64 ]]; then
    program=$root/build/arm64/portable/quartermaster emulator=(qemu-aarch64-static) admin=(--admindir="$libraries/sysroot/var/lib/dpkg")
  fi
  [[ -x $program ]] || die "no program ${program#"$root/"}: ./dev release builds it"
  [[ $arch == amd64 ]] || "$root/image/updates.sh" --release "${admin[@]}" "${linked[@]}" || exit
  say "the executable for $arch"
  "$here/check.sh" "$arch" "$program"
  tree=$work/program/$name
  mkdir -p "$tree/completion" "$tree/man" "$work/plugin"
  llvm-strip-19 --strip-all -o "$tree/quartermaster" "$program"
  chmod 755 "$tree/quartermaster"
  for shell in bash zsh fish; do "${emulator[@]}" "$tree/quartermaster" completion $shell >"$tree/completion/quartermaster.$shell"; done
  "${emulator[@]}" "$tree/quartermaster" man --date "$(date --utc --date="@$epoch" +%F)" >"$tree/man/quartermaster.1"
  cp "$root/LICENSE" "$tree/"
  sed "s/VERSION/$version/g" "$here/README.txt" >"$tree/README"
  cat "$here/third-party.txt" - >"$tree/THIRD-PARTY" < <(
    for package in openssl:libssl-dev nghttp2:libnghttp2-dev yaml-cpp:libyaml-cpp-dev glibc:libc6-dev gcc-12:libstdc++-12-dev boost:libboost1.81-dev \
      nlohmann-json:nlohmann-json3-dev protozero:libprotozero-dev cli11:libcli11-dev; do
      printf '\n==== %s ====\n\n' "${package%%:*}"
      cat "/usr/share/doc/${package#*:}/copyright"
    done
    for source in "$libraries"/copyright/*; do printf '\n==== %s ====\n\n' "${source##*/}"; cat "$source"; done
    echo
    cat "$root/console/page/dist/assets/third-party.txt")
  pack "$name.tar.gz" "$work/program"

  # The plugin of kubectl, without links, which krew refuses.
  cp "$tree/quartermaster" "$work/plugin/kubectl-quartermaster"
  cp "$tree/LICENSE" "$tree/THIRD-PARTY" "$work/plugin/"
  pack "kubectl-$name.tar.gz" "$work/plugin"

  # Four libraries are compiled from the sources of this machine's packages; the others come compiled, for ARCH.
  # shellcheck disable=SC2016  # dpkg-query's own variables
  { grep -E '^lib(curl4-openssl|fmt|spdlog|simdjson)-dev' "$libraries/versions" | cut -f3,4
    dpkg-query "${admin[@]}" --show --showformat '${source:Package}\t${source:Version}\n' "${linked[@]}"; } | sort -u >"$work/sources"
  jq -n --rawfile sources "$work/sources" --slurpfile page "$root/console/page/package-lock.json" --arg name "$name" --arg version "$version" --arg revision "$revision" \
    --arg created "$(date --utc --date="@$epoch" +%Y-%m-%dT%H:%M:%SZ)" --arg sha256 "$(sha256sum <"$tree/quartermaster" | cut -c1-64)" \
    --arg sha1 "$(sha1sum <"$tree/quartermaster" | cut -c1-40)" -f "$here/sbom.jq" >"$new/$name.spdx.json"
}
for arch in $architectures; do executable "$arch"; done

say "the manifest for krew"
{
  sed -e "s/@VERSION@/$version/; /^ *- selector:/,\$d" -e "${url:+/^# The uri/d}" "$here/krew.yaml"
  for arch in $architectures; do
    file=kubectl-quartermaster-$version-linux-$arch.tar.gz
    sed -e "/^ *- selector:/,\$!d" -e "s/@ARCH@/$arch/; s|@URI@|${url:+$url/}$file|; s|@SHA256@|$(sha256sum <"$new/$file" | cut -c1-64)|" "$here/krew.yaml"
  done
} >"$new/krew.yaml"

# ---- what a cluster gets ----

# chart FILE FOLDER: the chart in FOLDER as helm packs it, and then with the times of the commit.
chart() {
  local packed
  mkdir "$work/helm" "$work/chart"
  "$helm" package "$2" --destination "$work/helm" >/dev/null || die "helm does not pack $2"
  packed=("$work"/helm/*.tgz)
  tar --extract --touch --file "${packed[0]}" --directory "$work/chart"
  pack "$1" "$work/chart"
  rm -r "$work/helm" "$work/chart"
}
say "the chart"
chart "quartermaster-$version.tgz" "$root/charts/quartermaster"

say "install.yaml"
# Without MutatingAdmissionPolicy, so that it fits every version from 1.30: the webhook fills in pods then.
{
  echo "# Quartermaster $version with the chart's defaults: kubectl apply --server-side -f install.yaml"
  printf -- '---\napiVersion: v1\nkind: Namespace\nmetadata:\n  name: quartermaster\n'
  "$helm" template quartermaster "$root/charts/quartermaster" --namespace quartermaster --no-hooks --kube-version 1.30.0 \
    --set "image.repository=$repository" || die "helm does not render the chart"
} >"$new/install.yaml"

say "the package for Alauda Container Platform"
"$root/charts/cluster-plugin/package.sh" "$work/cluster-plugin"
chart chart.tgz "$work/cluster-plugin/quartermaster"
rm -r "$work/cluster-plugin/quartermaster"
mv "$new/chart.tgz" "$work/cluster-plugin/quartermaster-$(awk '$1 == "version:" { print $2; exit }' "$root/charts/cluster-plugin/module-plugin.yaml").tgz"
pack "quartermaster-cluster-plugin-$version.tgz" "$work/cluster-plugin"

for arch in $architectures; do
  say "the image for $arch"
  image=$("$root/image/build.sh" --release --arch "$arch" 2>"$work/log") || { cat "$work/log" >&2; die "the image could not be made"; }
  grep '^updates: ' "$work/log" >&2 || true
  image=${image%% sha256:*}
  cp "$image" "${image%.tar}.spdx.json" "$new/"
done

say "the image of simulated nodes"
"$root/image/simulation.sh" >/dev/null 2>"$work/log" || { cat "$work/log" >&2; die "the image of simulated nodes could not be made"; }
cp "$root/build/image/quartermaster-simulation-$version-amd64".{tar,spdx.json} "$root/build/image/quartermaster-with-simulation-$version-amd64.tar" "$new/"

"$here/sign.sh" "$new"
touch --date="@$epoch" "$new"/*
old=$out.old.$$
[[ ! -e $out ]] || mv "$out" "$old"
mv "$new" "$out"
rm -rf "$old"
say "$(find "$out" -type f | wc -l) files of $(du --apparent-size -sm "$out" | cut -f1) MiB"
[[ -z $registry ]] || "$here/push.sh" "$out" "$registry"
echo "$out"
