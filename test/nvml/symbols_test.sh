#!/usr/bin/env bash
# symbols_test.sh LIBRARY: what the library shows and what it needs, so that it loads into any program in any container.
set -euo pipefail
symbols=$(objdump -T "$1")
newer=$(grep -oE 'GLIBC_2\.[0-9]+' <<<"$symbols" | sort -uV | awk -F. '$2 > 31')
[[ -z $newer ]] ||
  { echo "FAILED: needs a C library newer than 2.31:"; grep -E "$(paste -sd'|' <<<"$newer")" <<<"$symbols"; exit 1; }
foreign=$(awk '$2 == "g" && $4 == ".text" && $NF !~ /^nvml/ {print $NF}' <<<"$symbols")
[[ -z $foreign ]] || { echo "FAILED: shows names that are not NVML's: $foreign"; exit 1; }
needed=$(objdump -p "$1" |
  awk '$1 == "NEEDED" && $2 !~ /^(lib(c|m|dl|pthread)\.so\.[0-9]|ld-linux-x86-64\.so\.2)$/ {print $2}')
[[ -z $needed ]] || { echo "FAILED: needs $needed"; exit 1; }
[[ $(objdump -p "$1" | awk '$1 == "SONAME" {print $2}') == libnvidia-ml.so.1 ]] ||
  { echo "FAILED: not the SONAME libnvidia-ml.so.1"; exit 1; }
echo "passed: $(grep -c ' nvml' <<<"$symbols") functions, C library" \
  "$(grep -oE 'GLIBC_2\.[0-9]+' <<<"$symbols" | sort -uV | tail -1) or later"
