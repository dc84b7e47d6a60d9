#!/usr/bin/env bash
# build.sh: an image of the operator as an OCI archive, without a container engine. `build.sh --help` says how it is used.
#
# The image has build/release/quartermaster, the libraries that the loader names for it and the CA certificates of Debian, and nothing else
# that runs. docs/decisions/010 says why no tool builds it. The same program, packages and commit give the same bytes in every folder: all
# entries are sorted, belong to root and have the time of the commit.
# https://github.com/opencontainers/image-spec/blob/main/image-layout.md, https://spdx.github.io/spdx-spec/v2.3/
set -euo pipefail
export LC_ALL=C TZ=UTC
umask 022
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
here=$root/image
. "$here/archive.sh"

usage() {
  cat <<'H'
usage: ./dev image [--arch amd64|arm64] [--release] [--check]
       ./dev image --simulation     also the image of simulated nodes (./dev image --simulation --help)
Makes an image of the program (built first) and of the Debian 12 libraries that it needs, as an OCI archive. It needs no container engine,
no root and, once the packages of `./dev setup` are there, no network. The last line on stdout is
  PATH sha256:DIGEST MIB
with the digest of the image's manifest, as a registry shows it, and the size of the archive. Next to PATH, the file PATH with
.spdx.json in place of .tar lists every file and every package. build/image/rootfs has the same files unpacked.
  --arch     of the machines that will run it (default amd64). arm64 is compiled here with Debian's libraries for arm64, which are fetched
             once, and the image is started under user-mode emulation
  --release  fail where apt has a newer version of a package that goes in, unless QM_ALLOW_OLD_PACKAGES is 1. Else a line says so
  --check    only say whether this machine can make the image
SOURCE_DATE_EPOCH, when set, replaces the time of the last commit. Exit codes: 0 done, 1 failed, 2 wrong usage.
H
}
say() { printf 'image: %s\n' "$*" >&2; }
die() { say "$1"; exit "${2:-1}"; }
wrong() { die "$1 (see ./dev image --help)" 2; }

arch=amd64 release='' check=''
while (($#)); do
  case $1 in
    -h|--help) usage; exit 0 ;;
    --arch) (($# >= 2)) || wrong "--arch needs a value: amd64 or arm64"; arch=$2; shift 2 ;;
    --arch=*) arch=${1#*=}; shift ;;
    --release) release=--release; shift ;;
    --check) check=1; shift ;;
    *) wrong "unknown argument '$1'" ;;
  esac
done
[[ $arch == amd64 || $arch == arm64 ]] || wrong "--arch '$arch' cannot be built; allowed are amd64 and arm64"
system=$(. /etc/os-release 2>/dev/null && echo "${ID:-} ${VERSION_ID:-}") || true
[[ $system == "debian 12" ]] ||
  die "this machine runs '${system:-an unknown system}', and the libraries come from packages of Debian 12: use one, or an engine with image/Dockerfile"
machine=$(dpkg --print-architecture)
[[ $machine == amd64 ]] || die "this machine is $machine; allowed is amd64"
epoch=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct 2>/dev/null)} ||
  die "no commit to take the time from: this is no git checkout, so set SOURCE_DATE_EPOCH to seconds since 1970"
[[ $epoch =~ ^[0-9]{1,10}$ ]] && ((10#$epoch <= 8589934591)) || # what a tar archive can say
  wrong "SOURCE_DATE_EPOCH is '$epoch'; allowed are seconds since 1970, 8589934591 at most"
[[ -z $check ]] || { say "this machine can make the image"; exit 0; }

# Of another architecture: its packages are unpacked in a folder, and its programs start under an emulator.
preset=release sysroot='' emulator=()
[[ $arch == amd64 ]] || preset=$arch emulator=(qemu-aarch64-static)
program=$root/build/$preset/quartermaster
[[ -x $program ]] || die "no program build/$preset/quartermaster: build it with ./dev build $preset quartermaster"
for tool in jq gzip llvm-strip-19 "${emulator[@]}"; do command -v $tool >/dev/null || die "no $tool on the PATH: ./dev image --arch $arch installs it"; done
[[ $arch == amd64 ]] || sysroot=$(readlink -f "$("$root/release/libraries.sh" --arch "$arch")/sysroot")
packaged() { dpkg-query ${sysroot:+--admindir="$sysroot/var/lib/dpkg"} "$@"; }
version=$(<"$root/VERSION")
created=$(date --utc --date="@$epoch" +%Y-%m-%dT%H:%M:%SZ)
revision=$(git -C "$root" rev-parse HEAD 2>/dev/null) || revision=
[[ -z $revision || -z $(git -C "$root" status --porcelain 2>/dev/null) ]] || revision+=-dirty

out=$root/build/image name=quartermaster-$version-$arch
mkdir -p "$out"
exec 9>"$out/.lock"; flock 9
rootfs=$out/rootfs layout=$out/layout
rm -rf "$rootfs" "$layout"
mkdir -p "$rootfs" "$layout/blobs/sha256"

# ---- the files ----

declare -A owner=() # path in the image -> Debian package, or quartermaster

# place SOURCE PATH MODE OWNER: a file, whatever links lead to it.
place() { install -D -m "$3" "$(readlink -f "$sysroot$1")" "$rootfs$2"; owner[$2]=$4; }
# write PATH TEXT: a file of our own.
write() { mkdir -p "$(dirname "$rootfs$1")"; printf '%s\n' "$2" >"$rootfs$1"; owner[$1]=quartermaster; }

# find_packages FILE...: sets package_of[FILE]. dpkg knows some files as /lib/..., although /lib is a link to /usr/lib.
declare -A package_of=()
find_packages() {
  local line file
  while read -r line; do
    file=${line##*: }
    [[ $file == /usr/* ]] || file=/usr$file
    package_of[$file]=${line%%[:,]*}
  done < <(packaged --search "$@" "${@/#\/usr/}" 2>/dev/null)
}

# Where Debian keeps a library: with the links of Debian's own root, /lib is /usr/lib.
real_path() { local file; file=$(readlink -f "$sysroot$1"); file=${file#"$sysroot"/}; printf '/usr/%s\n' "${file#usr/}"; }
loader() {
  if [[ $arch == amd64 ]]; then env -u LD_LIBRARY_PATH -u LD_PRELOAD ldd "$program"
  else "${emulator[@]}" -L "$sysroot" "$sysroot/lib/ld-linux-aarch64.so.1" --list "$program" | sed "s#$sysroot##"; fi
}
# What NVIDIA's library and the control program of MPS name to the loader besides the C library and libm: empty since glibc 2.34, and needed
# all the same. The runtime brings the driver into the container, but not these.
of_driver=(libdl.so.2 libpthread.so.0 librt.so.1)
# place_libraries: what the loader finds for the program, each under its own name, with a link of the name that is asked for.
place_libraries() {
  local listed file real files
  listed=$(loader) || die "the loader cannot read $program"
  ! grep 'not found' <<<"$listed" || die "a library of $program is missing (above)"
  ln -s usr/lib "$rootfs/lib"
  if [[ $arch == amd64 ]]; then mkdir -p "$rootfs/usr/lib64"; ln -s usr/lib64 "$rootfs/lib64"; fi
  mapfile -t files < <(sed -nE 's/^\s+(.* => )?(\/\S+) \(0x.*/\2/p' <<<"$listed")
  for file in "${files[@]}"; do [[ $file != */libc.so.6 ]] || files+=("${of_driver[@]/#/"${file%/*}/"}"); done
  # shellcheck disable=SC2046  # paths of libraries have no blanks
  find_packages $(for file in "${files[@]}"; do real_path "$file"; done)
  for file in "${files[@]}"; do
    real=$(real_path "$file")
    [[ -n ${package_of[$real]:-} ]] || die "$real is from no Debian package: the image takes libraries from packages only"
    place "$file" "$real" 644 "${package_of[$real]}"
    case $file in
      */ld-linux-*) chmod 755 "$rootfs$real"; ln -sr "$rootfs$real" "$rootfs/usr/${file#/}" ;;
      *) [[ ${file##*/} == "${real##*/}" ]] || ln -s "${real##*/}" "$rootfs${real%/*}/${file##*/}" ;;
    esac
  done
}

# place_authorities: those of the package. The bundle of this machine may have others, such as a company's.
place_authorities() {
  local bundle=/etc/ssl/certs/ca-certificates.crt file
  mkdir -p "$rootfs${bundle%/*}"
  while read -r file; do sed -e '$a\' "$sysroot$file"; done < <(packaged --listfiles ca-certificates | grep '\.crt$' | sort) >"$rootfs$bundle"
  [[ -s $rootfs$bundle ]] || die "package ca-certificates has no certificates"
  owner[$bundle]=ca-certificates
}

# place_package_papers: what licences ask for, and what scanners of images look for.
place_package_papers() {
  local package file
  place /etc/os-release /etc/os-release 644 base-files
  for package in $(printf '%s\n' "${owner[@]}" | sort -u); do
    [[ $package != quartermaster ]] || continue
    place "/usr/share/doc/$package/copyright" "/usr/share/doc/$package/copyright" 644 "$package"
    write "/var/lib/dpkg/status.d/$package" "$(packaged --status "$package")"
    owner[/var/lib/dpkg/status.d/$package]=$package
  done
  for file in Apache-2.0 $(grep -rhoE '/usr/share/common-licenses/[A-Za-z0-9.-]*[A-Za-z0-9]' "$rootfs/usr/share/doc" | sed 's#.*/##' | sort -u); do
    [[ ! -f $sysroot/usr/share/common-licenses/$file ]] || place "/usr/share/common-licenses/$file" "/usr/share/common-licenses/$file" 644 base-files
  done
}

llvm-strip-19 --strip-all -o "$rootfs/quartermaster" "$program"
chmod 755 "$rootfs/quartermaster"
owner[/quartermaster]=quartermaster
place_libraries
place_authorities
write /etc/passwd "root:x:0:0:root:/:/nologin
quartermaster:x:65532:65532:quartermaster:/:/nologin"
write /etc/group "root:x:0:
quartermaster:x:65532:"
write /etc/nsswitch.conf "passwd: files
group: files
hosts: files dns"
place_package_papers
mapfile -t packages < <(printf '%s\n' "${owner[@]}" | sort -u | grep -vx quartermaster)
"$here/updates.sh" $release ${sysroot:+"--admindir=$sysroot/var/lib/dpkg"} "${packages[@]}" || exit

# ---- the list of them ----

# bill: the SPDX document. Input: a line "path package sha1 sha256" per file, and a line "name version source source-version" per package.
bill() {
  local path paths files versions
  paths=$(printf '%s\n' "${!owner[@]}" | sort)
  files=$(paste <(while read -r path; do printf '%s\t%s\n' "$path" "${owner[$path]}"; done <<<"$paths") \
    <(cd "$rootfs" && sed 's#^/##' <<<"$paths" | xargs -d '\n' sha1sum | cut -c1-40) \
    <(cd "$rootfs" && sed 's#^/##' <<<"$paths" | xargs -d '\n' sha256sum | cut -c1-64))
  # shellcheck disable=SC2016  # dpkg-query's own variables
  versions=$(packaged --show --showformat '${Package}\t${Version}\t${source:Package}\t${source:Version}\n' "${packages[@]}" | sort -u)
  jq -n --arg files "$files" --arg packages "$versions" --slurpfile page "$root/console/page/package-lock.json" --arg version "$version" --arg revision "$revision" --arg arch "$arch" \
    --arg created "$created" --arg own "$bill_path" --arg code "$(cut -f3 <<<"$files" | sort | tr -d '\n' | sha1sum | cut -c1-40)" \
    --arg content "$(sha256sum <<<"$files" | cut -c1-64)" -f "$here/sbom.jq"
}
bill_path=/usr/share/doc/quartermaster/sbom.spdx.json
mkdir -p "$(dirname "$rootfs$bill_path")"
bill >"$rootfs$bill_path"

find "$rootfs" -type d -exec chmod u=rwx,g=rx,o=rx {} + # also where the folder above hands its group down
mkdir "$rootfs/tmp"
chmod 1777 "$rootfs/tmp"
if [[ $arch != amd64 ]]; then
  "${emulator[@]}" -L "$rootfs" "$rootfs/quartermaster" version >/dev/null || die "the program does not start under ${emulator[0]}"
fi

# ---- the archive ----

image=$(write_layout "$rootfs" "$layout" quartermaster "Kubernetes operator for accelerators" '
  {User: "65532:65532", Entrypoint: ["/quartermaster"], WorkingDir: "/", Env: ["PATH=/", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"]}' image/build.sh)

pack "$layout" >"$out/$name.tar.new"
cp "$rootfs$bill_path" "$out/$name.spdx.json.new"
for file in tar spdx.json; do mv "$out/$name.$file.new" "$out/$name.$file"; done
rm -rf "$layout"
say "$(find "$rootfs" -type f | wc -l) files of $(du --apparent-size -sm "$rootfs" | cut -f1) MiB; they are listed in $out/$name.spdx.json"
echo "$out/$name.tar $(jq -r .digest <<<"$image") $((($(stat -c %s "$out/$name.tar") + 1048575) / 1048576))"
