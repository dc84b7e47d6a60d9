#!/usr/bin/env bash
# simulation.sh: the image of the simulated nodes, and one archive of it and the operator's image. `simulation.sh --help` says how it is used.
#
# The image has KWOK and test/sim, which are built from Go modules as for ./dev setup, the licences of these modules, and nothing else. The
# chart runs it with simulate.nodes.
set -euo pipefail
export LC_ALL=C TZ=UTC
umask 022
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/image/archive.sh"
. "$root/test/cluster/layout.sh"

usage() {
  cat <<'H'
usage: ./dev image --simulation
Makes the operator's image (./dev image --help), and then two more archives in build/image:
  quartermaster-simulation-VERSION-amd64.tar        KWOK and the simulator, which the chart runs with simulate.nodes; .spdx.json lists them
  quartermaster-with-simulation-VERSION-amd64.tar   both images with their whole names, for clusters without a registry:
      kind load image-archive FILE     minikube image load FILE     k3s ctr images import FILE
The last line on stdout is `PATH sha256:DIGEST MIB`: the second archive, the digest of the image quartermaster-simulation, the size.
H
}
die() { printf 'image: %s\n' "$1" >&2; exit 1; }
case ${1:-} in
  -h|--help) usage; exit 0 ;;
  '') ;;
  *) printf "image: unknown argument '%s' (see image/simulation.sh --help)\n" "$1" >&2; exit 2 ;;
esac

arch=amd64 version=$(<"$root/VERSION")
epoch=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct)}
created=$(date --utc --date="@$epoch" +%Y-%m-%dT%H:%M:%SZ)
revision=$(git -C "$root" rev-parse HEAD 2>/dev/null) || revision=
[[ -z $revision || -z $(git -C "$root" status --porcelain 2>/dev/null) ]] || revision+=-dirty
out=$root/build/image name=quartermaster-simulation
operator=$out/quartermaster-$version-$arch.tar
[[ -f $operator ]] || die "no $operator: ./dev image makes it"
command -v go >/dev/null || die "Go is not on the PATH: ./dev image --simulation says what to install"
"$cluster_src/build.sh" --k8s none --tools kwok,sim >&2 || die "KWOK and the simulator do not build (above)"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/programs" # other checkouts build into the same folder
programs=()
for unit in kwok sim; do
  program=$work/programs/$unit
  cp "$(program_path $unit $unit)" "$program"
  ! readelf --program-headers "$program" | grep -q INTERP || die "$program needs a loader, and the image has none"
  programs+=("$program")
done
exec 9>"$out/.lock"; flock 9
rootfs=$work/rootfs papers=$work/rootfs/usr/share/doc/$name
mkdir -p "$rootfs/etc" "$rootfs/tmp" "$papers"
for program in "${programs[@]}"; do install -m 755 "$program" "$rootfs/${program##*/}"; done

# What nodes and pods do, as on the test cluster.
stages=$(unit_home kwok)/stage
{ printf 'apiVersion: config.kwok.x-k8s.io/v1alpha1\nkind: KwokConfiguration\n'
  echo "options: {nodePlayStageParallelism: 4, podPlayStageParallelism: 8, nodeLeaseParallelism: 1, podsOnNodeSyncParallelism: 4}" # of its workers
  for file in "$stages"/node/fast/node-initialize.yaml "$stages"/node/heartbeat-with-lease/node-heartbeat-with-lease.yaml \
      "$stages"/pod/fast/pod-*.yaml "$cluster_src"/stages/*.yaml; do
    echo ---; cat "$file"
  done; } >"$rootfs/etc/kwok.yaml"
printf 'root:x:0:0:root:/:/nologin\nquartermaster:x:65532:65532:quartermaster:/tmp:/nologin\n' >"$rootfs/etc/passwd"

# The Go modules in the two programs: a line `path version`. A replaced module is the one that takes its place.
modules=$(go version -m "${programs[@]}" | awk '$1 == "dep" { if (m) print m; m = $2 " " $3 } $1 == "=>" { m = $2 " " $3 } END { print m }' | sort -u)
cache=$(go env GOMODCACHE)
while read -r module release; do
  folder=$cache/$(sed 's/[A-Z]/!\L&/g' <<<"$module@$release")
  [[ -d $folder ]] || die "the module $module $release is not in $cache: test/cluster/build.sh fetches it"
  while read -r file; do install -D -m 644 "$file" "$papers/$module/${file##*/}"; done < \
    <(find "$folder" -maxdepth 1 -type f \( -iname 'licen[cs]e*' -o -iname 'copying*' -o -iname 'notice*' \) | sort)
done <<<"$modules"
install -D -m 644 "$(go env GOROOT)/LICENSE" "$papers/go/LICENSE"
cp "$root/LICENSE" "$papers/LICENSE"

jq -n --arg modules "$modules" --arg version "$version" --arg created "$created" --arg name "$name" --arg go "$(go env GOVERSION)" \
  --arg id "$(cat "${programs[@]}" | sha256sum | cut -c1-64)" '
  def package($path; $release; $i): {name: $path, SPDXID: "SPDXRef-Package-\($i)", versionInfo: $release, downloadLocation: "NOASSERTION",
    filesAnalyzed: false, licenseConcluded: "NOASSERTION", licenseDeclared: "NOASSERTION", copyrightText: "NOASSERTION"};
  [$modules | split("\n")[] | split(" ")] | [["quartermaster.io/test/sim", $version], ["go", $go]] + . |
  [to_entries[] | package(.value[0]; .value[1]; .key)] as $packages |
  {spdxVersion: "SPDX-2.3", dataLicense: "CC0-1.0", SPDXID: "SPDXRef-DOCUMENT", name: "\($name)-\($version)",
   documentNamespace: "https://quartermaster.io/spdx/\($name)-\($version)-\($id)", creationInfo: {created: $created, creators: ["Tool: image/simulation.sh"]},
   packages: $packages, relationships: [$packages[] | {spdxElementId: "SPDXRef-DOCUMENT", relationshipType: "DESCRIBES", relatedSpdxElement: .SPDXID}]}' \
  >"$papers/sbom.spdx.json"
find "$rootfs" -type d -exec chmod u=rwx,g=rx,o=rx {} +
chmod 1777 "$rootfs/tmp"

image=$(write_layout "$rootfs" "$work/layout" $name "Simulated nodes for Quartermaster" '
  {User: "65532:65532", Entrypoint: ["/sim"], WorkingDir: "/tmp", Env: ["PATH=/", "HOME=/tmp"]}' image/simulation.sh)
pack "$work/layout" >"$work/$name.tar"
cp "$papers/sbom.spdx.json" "$out/$name-$version-$arch.spdx.json"

# Both in one archive. Each has its whole name, as nodes write it where no registry is named. manifest.json is for docker load.
both=$work/both
mkdir "$both"
tar --extract --file "$operator" --directory "$both"
cp -r "$work/layout/blobs" "$both/"
manifests=$(jq -cn --slurpfile operator "$both/index.json" --argjson simulation "$image" --arg version "$version" '
  def named($name): . + {annotations: {"io.containerd.image.name": "docker.io/library/\($name):\($version)", "org.opencontainers.image.ref.name": $version}};
  [($operator[0].manifests[0] | named("quartermaster")), ($simulation | named("quartermaster-simulation"))]')
write_index "$both" "$manifests"
jq -r '.[] | "\(.digest[7:]) \(.annotations["io.containerd.image.name"])"' <<<"$manifests" | while read -r digest tag; do
  jq -c --arg tag "${tag#docker.io/library/}" '{Config: ("blobs/sha256/" + .config.digest[7:]), RepoTags: [$tag],
    Layers: [.layers[] | "blobs/sha256/" + .digest[7:]]}' "$both/blobs/sha256/$digest"
done | jq -cs . >"$both/manifest.json"
joint=$out/quartermaster-with-simulation-$version-$arch.tar
pack "$both" >"$work/both.tar"
mv "$work/$name.tar" "$out/$name-$version-$arch.tar"
mv "$work/both.tar" "$joint"
printf 'image: both images are in %s\n' "$joint" >&2
echo "$joint $(jq -r .digest <<<"$image") $((($(stat -c %s "$joint") + 1048575) / 1048576))"
