# shellcheck shell=bash
# archive.sh: an OCI image of a folder, as files. It is sourced by scripts that set arch, version, revision, created and epoch.
# https://github.com/opencontainers/image-spec/blob/main/image-layout.md
oci=application/vnd.oci.image

# pack FOLDER: a tar archive of what is in it, on stdout. All entries are sorted, belong to root and have the time of the commit.
pack() { (cd "$1" && tar --create --format=ustar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$epoch" -- *); }
# blob LAYOUT MEDIA-TYPE: keeps stdin as a blob and prints its descriptor.
blob() {
  local digest
  cat >"$1/blob"
  digest=$(sha256sum <"$1/blob" | cut -c1-64)
  jq -cn --arg type "$2" --arg digest "sha256:$digest" --argjson size "$(stat -c %s "$1/blob")" '{mediaType: $type, digest: $digest, size: $size}'
  mv "$1/blob" "$1/blobs/sha256/$digest"
}
# write_layout ROOT LAYOUT TITLE DESCRIPTION CONFIG AUTHOR: an image with the files of ROOT and the jq object CONFIG, into the folder LAYOUT. It
# prints the descriptor of the manifest.
write_layout() {
  local files=$1 layout=$2 labels diff_id layer config manifest
  mkdir -p "$layout/blobs/sha256"
  labels=$(jq -cn --arg title "$3" --arg description "$4" --arg version "$version" --arg revision "$revision" --arg created "$created" '
    {title: $title, description: $description, version: $version, revision: $revision, created: $created,
     licenses: "Apache-2.0"} | with_entries(select(.value != "") | .key |= "org.opencontainers.image." + .)')
  diff_id=sha256:$(pack "$files" | sha256sum | cut -c1-64)
  layer=$(pack "$files" | gzip -9 --no-name | blob "$layout" $oci.layer.v1.tar+gzip)
  config=$(jq -cn --arg arch "$arch" --arg created "$created" --arg diff_id "$diff_id" --arg author "$6" --argjson labels "$labels" "
    {architecture: \$arch, os: \"linux\", created: \$created, config: ($5 + {Labels: \$labels}),
     rootfs: {type: \"layers\", diff_ids: [\$diff_id]}, history: [{created: \$created, created_by: \$author}]}" | blob "$layout" $oci.config.v1+json)
  manifest=$(jq -cn --arg type $oci.manifest.v1+json --argjson config "$config" --argjson layer "$layer" --argjson labels "$labels" '
    {schemaVersion: 2, mediaType: $type, config: $config, layers: [$layer], annotations: $labels}' | blob "$layout" $oci.manifest.v1+json)
  write_index "$layout" "$(jq -cn --argjson manifest "$manifest" --arg version "$version" '[$manifest + {annotations: {"org.opencontainers.image.ref.name": $version}}]')"
  printf '%s\n' "$manifest"
}
# write_index LAYOUT MANIFESTS: what is in it, a JSON list of descriptors.
write_index() {
  jq -cn --arg type $oci.index.v1+json --argjson manifests "$2" --arg arch "$arch" '
    {schemaVersion: 2, mediaType: $type, manifests: [$manifests[] | {mediaType, digest, size, platform: {architecture: $arch, os: "linux"}, annotations}]}' \
    >"$1/index.json"
  echo '{"imageLayoutVersion":"1.0.0"}' >"$1/oci-layout"
}
