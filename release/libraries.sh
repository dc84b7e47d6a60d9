#!/usr/bin/env bash
# libraries.sh: the static libraries of the portable executable. `libraries.sh --help` says how it is used.
#
# Debian has static libraries of OpenSSL, nghttp2, yaml-cpp, C and C++, but none of fmt, spdlog and simdjson. Its libcurl.a needs Kerberos, which has no
# static library. So these four are compiled here, from Debian's source packages, in the very versions whose headers our objects were compiled
# with. apt checks their signatures. docs/decisions/011 says why.
set -euo pipefail
export LC_ALL=C
umask 022

usage() {
  cat <<'H'
usage: release/libraries.sh [--arch amd64|arm64]
Compiles the static libraries of the portable executable and prints their folder, which has lib/*.a and versions. A second call takes a
second. For another architecture than this machine's it also unpacks Debian's packages into sysroot/, which `dpkg-query --admindir
sysroot/var/lib/dpkg` lists. The packages of this machine stay as they are.
Everything is kept in ${XDG_CACHE_HOME:-~/.cache}/quartermaster.
Exit codes: 0 done, 1 failed, 2 wrong usage.
H
}
say() { printf 'libraries: %s\n' "$*" >&2; }
die() { say "$1"; exit "${2:-1}"; }

arch=amd64
while (($#)); do
  case $1 in
    -h|--help) usage; exit 0 ;;
    --arch) arch=${2:-}; shift 2 || die "--arch needs a value: amd64 or arm64" 2 ;;
    *) die "unknown argument '$1' (see --help)" 2 ;;
  esac
done
case $arch in
  amd64) triple=x86_64-linux-gnu machine=-march=x86-64-v2 ;;
  arm64) triple=aarch64-linux-gnu machine=--target=aarch64-linux-gnu ;;
  *) die "--arch '$arch' cannot be built; allowed are amd64 and arm64" 2 ;;
esac

sources=(curl fmtlib spdlog simdjson)
headers=(libcurl4-openssl-dev libfmt-dev libspdlog-dev libsimdjson-dev)
static=(libssl-dev libnghttp2-dev libyaml-cpp-dev libc6-dev libstdc++-12-dev)
# Of arm64, besides: what a compiler and CMake look for, and what the program needs when it runs, which apt completes.
sysroot_headers=(linux-libc-dev libgcc-12-dev libboost1.81-dev libcrypt-dev nlohmann-json3-dev libprotozero-dev libcli11-dev)
sysroot_runtime=(libstdc++6 libssl3 libnghttp2-14 libyaml-cpp0.7 libcurl4 libfmt9 libspdlog1.10 libsimdjson14 ca-certificates base-files)

# versions PACKAGE...: "package version source source-version" of what is installed here.
versions() {
  # shellcheck disable=SC2016  # dpkg-query's own variables
  dpkg-query --show --showformat '${Package}\t${Version}\t${source:Package}\t${source:Version}\n' "$@"
}
source_version() { versions "$1" | cut -f4; }

list=$(versions "${headers[@]}" "${static[@]}" libboost1.81-dev) || die "a package is missing (above): ./dev setup --build-only installs it"
key=$({ echo "$list"; cat "${BASH_SOURCE[0]}"; clang-19 --version | sed -n 1p; } | sha256sum | cut -c1-12)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/quartermaster
done=$cache/portable-$arch-$key
if [[ -f $done/versions ]]; then echo "$done"; exit 0; fi
mkdir -p "$cache"
exec 9>"$cache/.portable-$arch.lock"; flock 9
if [[ -f $done/versions ]]; then echo "$done"; exit 0; fi
work=$(mktemp -d "$cache/.portable-$arch.XXXXXX")
trap 'rm -rf "$work"' EXIT
out=$work/out
mkdir -p "$out/lib"

# ---- packages of this machine's own mirrors, with lists of our own ----

# private_apt ARGUMENT...: apt-get that reads the machine's sources and writes nothing outside $work.
private_apt() {
  apt-get -qq -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$work/apt/sources" -o Dir::State="$work/apt/state" \
    -o Dir::State::status="$work/apt/state/status" -o Dir::Cache="$work/apt/cache" -o APT::Sandbox::User=root \
    -o APT::Architecture="$arch" -o APT::Architectures::="$arch" -o Acquire::Languages=none "$@"
}
read_lists() {
  local file
  mkdir -p "$work/apt/sources" "$work/apt/state/lists/partial" "$work/apt/cache/archives/partial"
  : >"$work/apt/state/status"
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources}; do
    [[ -f $file ]] || continue
    case $file in
      *.sources) sed -E 's/^Types:.*/Types: deb deb-src/; /^Architectures:/d' "$file" >"$work/apt/sources/${file##*/}" ;;
      *) sed -nE 's/\[([^]]*)\barch=[^] ]*/[\1/; s/^deb(-src)?[[:space:]](.*)/deb \2\ndeb-src \2/p' "$file" >"$work/apt/sources/${file##*/}" ;;
    esac
  done
  private_apt update >&2 || die "apt-get update failed: is a Debian mirror reachable?"
}

# unpack PACKAGE-FILE...: into the sysroot, with dpkg's lists of them. dpkg itself would start their scripts, which are for $arch.
unpack() {
  local file name info=$out/sysroot/var/lib/dpkg/info
  mkdir -p "$info"
  echo 1 >"$info/format" # names of lists have an architecture
  for file; do
    dpkg-deb --extract "$file" "$out/sysroot"
    name=$(dpkg-deb --field "$file" Package)
    [[ $(dpkg-deb --field "$file" Multi-Arch) != same ]] || name+=:$arch
    dpkg-deb --fsys-tarfile "$file" | tar --list --quoting-style=literal | sed -E 's#^\.##; s#(.)/$#\1#; s#^/$#/.#' >"$info/$name.list"
    { echo "Status: install ok installed"; dpkg-deb --field "$file"; echo; } >>"${info%/*}/status"
  done
  # A link to /lib/... leads out of the sysroot.
  while read -r file; do ln -sf --relative "$out/sysroot$(readlink "$file")" "$file"; done < <(find "$out/sysroot" -type l -lname '/*')
}

say "fetching the sources of ${sources[*]}"
read_lists
mkdir "$work/src"
for i in "${!sources[@]}"; do
  version=$(source_version "${headers[i]}")
  (cd "$work/src" && private_apt source "${sources[i]}=$version" >"$work/log" 2>&1) || { cat "$work/log" >&2
    die "no source of ${sources[i]} $version, which is the version of the installed ${headers[i]}: apt-get update && apt-get upgrade, then try again"; }
done

flags=("$machine" -O2 -DNDEBUG -fPIC -ffunction-sections -fdata-sections -ffile-prefix-map="$work/src=." -w)
if [[ $arch != "$(dpkg --print-architecture)" ]]; then
  say "fetching Debian's packages for $arch"
  packages=("${headers[@]}" "${static[@]}" "${sysroot_headers[@]}")
  { private_apt install --download-only --yes --no-install-recommends "${sysroot_runtime[@]}" &&
    (cd "$work/apt/cache/archives" && private_apt download "${packages[@]}"); } >"$work/log" 2>&1 ||
    { cat "$work/log" >&2; die "apt has not all packages for $arch (above)"; }
  unpack "$work"/apt/cache/archives/*.deb
  flags+=(--sysroot="$out/sysroot")
fi

# ---- compiling ----

say "compiling ${sources[*]}"
# archive NAME FOLDER FLAG... -- FILE...: one library of C++ sources.
archive() {
  local name=$1 folder=$2 own=() file objects=()
  shift 2
  while [[ $1 != -- ]]; do own+=("$1"); shift; done
  shift
  mkdir -p "$work/objects/$name"
  for file; do
    objects+=("$work/objects/$name/$(basename "$file").o")
    clang++-19 -std=c++20 "${flags[@]}" "${own[@]}" -I"$folder/include" -c "$folder/$file" -o "${objects[-1]}" || die "$name does not compile"
  done
  llvm-ar-19 rcsD "$out/lib/lib$name.a" "${objects[@]}"
}
# folder NAME: where apt-get unpacked the source.
folder() { local found=("$work/src/$1"-*/); printf '%s' "${found[0]%/}"; }

archive fmt "$(folder fmtlib)" -- src/format.cc src/os.cc
spdlog=$(folder spdlog)
mapfile -t files < <(cd "$spdlog" && printf '%s\n' src/*.cpp | grep -v bundled_fmtlib_format)
archive spdlog "$spdlog" -DSPDLOG_COMPILED_LIB -DSPDLOG_FMT_EXTERNAL -I"$(folder fmtlib)/include" -- "${files[@]}"
archive simdjson "$(folder simdjson)" -I"$(folder simdjson)/src" -- src/simdjson.cpp

# As our client uses it: HTTPS, proxies (HTTP, HTTPS, SOCKS), its own threads for the resolver. No CA file is compiled in (kube/authorities.hpp).
cross=()
[[ ! -d $out/sysroot ]] || cross=(-DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_C_COMPILER_TARGET="$triple"
  -DCMAKE_SYSROOT="$out/sysroot" -DCMAKE_FIND_ROOT_PATH="$out/sysroot" -DCMAKE_FIND_ROOT_PATH_MODE_PROGRAM=NEVER
  -DHAVE_POLL_FINE=1 -DHAVE_POLL_FINE_EXITCODE=0 -DHAVE_GLIBC_STRERROR_R=0 -DHAVE_POSIX_STRERROR_R=1)
cmake -G Ninja -S "$(folder curl)" -B "$work/curl" -DCMAKE_C_COMPILER=clang-19 -DCMAKE_C_FLAGS="${flags[*]}" -DCMAKE_BUILD_TYPE=None "${cross[@]}" \
  -DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld-19 -DBUILD_SHARED_LIBS=OFF -DBUILD_CURL_EXE=OFF -DBUILD_TESTING=OFF -DENABLE_MANUAL=OFF -DHTTP_ONLY=ON \
  -DCURL_USE_OPENSSL=ON -DENABLE_THREADED_RESOLVER=ON -DENABLE_UNIX_SOCKETS=ON -DCURL_ZLIB=OFF -DCURL_BROTLI=OFF -DCURL_ZSTD=OFF \
  -DUSE_LIBIDN2=OFF -DCURL_USE_LIBPSL=OFF -DCURL_USE_LIBSSH2=OFF -DCURL_USE_LIBSSH=OFF -DUSE_NGHTTP2=OFF -DCURL_USE_GSSAPI=OFF \
  -DCURL_CA_BUNDLE=none -DCURL_CA_PATH=none >"$work/log" 2>&1 && cmake --build "$work/curl" --parallel "${JOBS:-$(nproc)}" >>"$work/log" 2>&1 ||
  { tail -40 "$work/log" >&2; die "curl does not compile"; }
cp "$work/curl/lib/libcurl.a" "$out/lib/"
for i in "${!sources[@]}"; do install -D -m 644 "$(folder "${sources[i]}")/debian/copyright" "$out/copyright/${sources[i]}"; done
echo "$list" >"$out/versions"
mv "$out" "$done"
echo "$done"
