#!/usr/bin/env bash
# push.sh: the images and the chart of a release into a registry. `push.sh --help` says how it is used.
set -euo pipefail
export LC_ALL=C
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

usage() {
  cat <<'H'
usage: release/push.sh FOLDER REGISTRY
Pushes what ./dev release has put into FOLDER, with skopeo and helm: each image as REGISTRY/NAME:VERSION (of arm64, VERSION-arm64), and the
chart as an OCI artifact REGISTRY/charts/quartermaster:VERSION. REGISTRY is HOST[:PORT][/PATH]. One on this machine (localhost, 127.0.0.1)
is asked by plain HTTP. Sign in before with `skopeo login HOST` and `helm registry login HOST`.
Prints a line for each, on stdout: image or chart, its name, and its digest: NAME:VERSION@sha256:DIGEST.
Exit codes: 0 done, 1 failed, 2 wrong usage.
H
}
say() { printf 'push: %s\n' "$*" >&2; }
wrong() { say "$1 (see release/push.sh --help)"; exit 2; }
die() { say "$1"; exit 1; }
[[ ${1:-} != -h && ${1:-} != --help ]] || { usage; exit 0; }
check=''
[[ ${1:-} != --check ]] || check=1 # of ./dev release, before minutes of compiling: is REGISTRY one? FOLDER does not count
[[ -z $check ]] || shift
(($# == 2)) || wrong "it takes a folder and a registry"
folder=$1 registry=${2%/}
label='[a-z0-9]([a-z0-9-]*[a-z0-9])?'
[[ $registry =~ ^$label(\.$label)*(:([1-9][0-9]{0,4}))?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$ ]] && ((${BASH_REMATCH[5]:-1} <= 65535)) ||
  wrong "'$2' is no registry; allowed is HOST[:PORT][/PATH] in small letters, without https://, and a port from 1 to 65535"
[[ -z $check ]] || exit 0
version=$(<"$root/VERSION")
chart=$folder/quartermaster-$version.tgz
[[ -f $chart ]] || die "no $chart: ./dev release makes it"
command -v skopeo >/dev/null || die "no skopeo on the PATH: ./dev release --push installs it"
helm=$(find "${XDG_CACHE_HOME:-$HOME/.cache}/quartermaster" -path '*/kubernetes-v*/bin/helm' 2>/dev/null | sort -V | sed -n '$p')
[[ -n $helm ]] || die "no helm: ./dev release builds it"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
plain=() verify=--dest-tls-verify=true
if [[ $registry =~ ^(localhost|127\.[0-9.]+)(:|/|$) ]]; then plain=(--plain-http) verify=--dest-tls-verify=false; fi
push_image() { # push_image NAME ARCH TAG
  local file=$folder/$1-$version-$2.tar
  skopeo copy --quiet --insecure-policy --preserve-digests "$verify" --digestfile "$work/digest" "oci-archive:$file" "docker://$registry/$1:$3" ||
    die "$file was not pushed as $registry/$1:$3"
  printf 'image %s:%s@%s\n' "$registry/$1" "$3" "$(<"$work/digest")"
}
pushed=0
for name in quartermaster quartermaster-simulation; do
  [[ ! -f $folder/$name-$version-amd64.tar ]] || { push_image $name amd64 "$version"; pushed=$((pushed + 1)); }
  [[ ! -f $folder/$name-$version-arm64.tar ]] || push_image $name arm64 "$version-arm64"
done
((pushed)) || die "no image in $folder: ./dev release makes it"
"$helm" push "$chart" "oci://$registry/charts" "${plain[@]}" >"$work/helm" 2>&1 || { cat "$work/helm" >&2; die "the chart was not pushed to oci://$registry/charts"; }
digest=$(sed -n 's/^Digest: //p' "$work/helm")
[[ $digest =~ ^sha256:[0-9a-f]{64}$ ]] || die "helm named no digest"
printf 'chart %s/charts/quartermaster:%s@%s\n' "$registry" "$version" "$digest"
