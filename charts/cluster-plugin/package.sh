#!/usr/bin/env bash
# package.sh: the chart in the form that the Alauda Container Platform accepts. `package.sh --help` says how it is used.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
usage() {
  cat <<'H'
usage: package.sh FOLDER [ARCHIVE]
Creates FOLDER, which must not exist, and writes into it:
  quartermaster/      the chart, with module-plugin.yaml, scripts/plugin-config.yaml and the list of images in values.yaml. Next:
                      helm package --version VERSION, helm push to oci://REGISTRY/accelerators/charts, violet create, package, push
  images.txt          the images to push, a line each: where the original is (a registry's, or the file below), and its name in yours
  images/             ARCHIVE, the image of the operator that `./dev image` makes; it must be of the same version
  moduleconfig.yaml   the object that the platform makes of both. Read it, or apply it where violet is not available
H
}
case ${1:-} in
  -h|--help) usage; exit 0 ;;
  ''|-*) echo "package.sh: it needs a folder to write (see --help)" >&2; exit 2 ;;
esac
[[ $# -le 2 ]] || { echo "package.sh: a folder and an archive, not $# words (see --help)" >&2; exit 2; }
out=$1 archive=${2:-}
[[ ! -e $out ]] || { echo "package.sh: $out is there already" >&2; exit 1; }

version=$(awk '$1 == "version:" { print $2; exit }' "$here/module-plugin.yaml")
if [[ -n $archive ]]; then
  # An OCI archive names its version in index.json. That of another version would be packed under our tag.
  tag=$(tar -xOf "$archive" index.json 2>/dev/null | grep -o '"org.opencontainers.image.ref.name": *"[^"]*"' | cut -d'"' -f4) || true
  [[ v$tag == "$version" ]] || { echo "package.sh: $archive is of version '${tag:-none}', not ${version#v}: ./dev image makes it" >&2; exit 1; }
fi
mkdir -p "$out"
cp -r "$here/../quartermaster" "$out/quartermaster"
cp -r "$here/module-plugin.yaml" "$here/scripts" "$out/quartermaster/"
sed -i "s/^version: .*/version: $version/" "$out/quartermaster/Chart.yaml"
# `global: {}` is the last line of values.yaml. The list of images replaces it.
sed -i '/^global: {}$/d' "$out/quartermaster/values.yaml"
grep -v '^#' "$here/images.yaml" >>"$out/quartermaster/values.yaml"

awk -v file="${archive:+images/$(basename "${archive:-.}")}" '
  $1 == "repository:" { repository = $2; registry = $4 }
  $1 == "tag:" { name = repository ":" $2; print (registry == "" ? (file == "" ? "-" : file) : registry "/" name), name }
' "$here/images.yaml" >"$out/images.txt"
if [[ -n $archive ]]; then
  mkdir "$out/images"
  cp "$archive" "$out/images/"
fi

# ModuleConfig: the ModulePlugin of one version, with the fields of plugin-config.yaml except mustUpgrade.
{
  sed -n '1,/^spec:/p' "$here/module-plugin.yaml" | sed \
    -e 's/^kind: ModulePlugin/kind: ModuleConfig/' \
    -e "s/^  name: quartermaster\$/  name: quartermaster-$version/" \
    -e "s|^    cpaas.io/module-type: plugin\$|&\n    cpaas.io/module-version: $version|"
  echo "  version: $version"
  sed -e '1,/^spec:/d' "$here/module-plugin.yaml"
  sed -e '/^mustUpgrade:/d' -e 's/^./  &/' "$here/scripts/plugin-config.yaml"
} >"$out/moduleconfig.yaml"
