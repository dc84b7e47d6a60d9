#!/usr/bin/env bash
# check.sh ARCH PROGRAM: fails where PROGRAM needs a library, a loader, or a symbol of a glibc newer than 2.31.
set -euo pipefail
export LC_ALL=C
arch=${1:?usage: check.sh amd64|arm64 PROGRAM} program=${2:?usage: check.sh amd64|arm64 PROGRAM}
newest=2.31
bad() { printf 'check: %s %s\n' "$program" "$1" >&2; exit 1; }

case $arch in amd64) machine=X86-64 ;; arm64) machine=AArch64 ;; *) echo "check: no architecture '$arch'; there are amd64, arm64" >&2; exit 2 ;; esac
readelf --file-header --wide "$program" | grep -q "Machine:.*$machine" || bad "is not for $arch"
needed=$(readelf --dynamic --wide "$program" | sed -nE 's/.*\(NEEDED\).*\[(.*)\]/\1/p')
[[ -z $needed ]] || bad "needs a library of the machine: ${needed//$'\n'/, }"
! readelf --program-headers --wide "$program" | grep -q INTERP || bad "needs a loader of the machine"
versions=$(readelf --version-info --wide "$program" | grep -oE 'GLIBC_[0-9.]+' | sort -Vu || true)
for version in $versions; do
  [[ $(printf '%s\n%s\n' "${version#GLIBC_}" "$newest" | sort -V | tail -n1) == "$newest" ]] || bad "needs $version; the newest allowed is GLIBC_$newest"
done
printf 'check: %s needs no library and no loader\n' "$program" >&2
