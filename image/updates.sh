#!/usr/bin/env bash
# updates.sh: of which packages does apt have a newer version than the one that goes into an image or an executable? `updates.sh --help` says
# how it is used.
set -euo pipefail
export LC_ALL=C

usage() {
  cat <<'H'
usage: image/updates.sh [--release] [--admindir=FOLDER] PACKAGE...
Says in one line on stderr of which packages apt has a newer version than the installed one, and which of them no list of apt has. It sees
what the last `apt-get update` brought. A package that is not installed is skipped: installing it takes the newest.
  --release           fail then, unless QM_ALLOW_OLD_PACKAGES is 1
  --admindir=FOLDER   the installed versions are those of this folder of dpkg, such as SYSROOT/var/lib/dpkg. apt knows the newest versions of
                      this machine's architecture, so the number of a rebuild (+b1) does not count there
Exit codes: 0 nothing newer, or no release, 1 a release would take an old package, 2 wrong usage.
H
}
say() { printf 'updates: %s\n' "$*" >&2; }
wrong() { say "$1 (see image/updates.sh --help)"; exit 2; }

release='' admindir=''
while (($#)); do
  case $1 in
    -h|--help) usage; exit 0 ;;
    --release) release=1; shift ;;
    --admindir=*) admindir=${1#*=}; shift ;;
    -*) wrong "unknown argument '$1'" ;;
    *) break ;;
  esac
done
(($#)) || wrong "no package is named"
[[ -z $admindir || -f $admindir/status ]] || wrong "--admindir=$admindir is no folder of dpkg: it has no file status"
case ${QM_ALLOW_OLD_PACKAGES:-} in ''|1) ;; *) wrong "QM_ALLOW_OLD_PACKAGES is '$QM_ALLOW_OLD_PACKAGES'; allowed is 1" ;; esac

# rebuilt VERSION: without the number of a rebuild, where the architectures differ.
rebuilt() { [[ -z $admindir ]] && echo "$1" || sed -E 's/\+b[0-9]+$//' <<<"$1"; }

mapfile -t packages < <(printf '%s\n' "$@" | sort -u)
# "package candidate", with - where no source has one. dpkg's own list of what is installed is no source.
# https://manpages.debian.org/bookworm/apt/apt-cache.8.en.html ("policy")
policy=$(apt-cache policy "${packages[@]}") || { say "apt-cache does not answer (above)"; exit 1; }
candidates=$(awk '
  function print_last() { if (name != "") print name, (has_source ? candidate : "-") }
  /^[^ ].*:$/ { print_last(); name = $1; sub(/:$/, "", name); candidate = "-"; has_source = 0 }
  $1 == "Candidate:" { candidate = $2 }
  /^ +-?[0-9]+ / && $2 != "/var/lib/dpkg/status" && NF > 2 { has_source = 1 }
  END { print_last() }' <<<"$policy")

old=() unknown=()
for package in "${packages[@]}"; do
  # shellcheck disable=SC2016  # dpkg-query's own variables
  installed=$(dpkg-query ${admindir:+--admindir="$admindir"} --show --showformat '${db:Status-Abbrev} ${Version}\n' "$package" 2>/dev/null |
    awk '$1 == "ii" { print $2; exit }') || true
  [[ -n $installed ]] || continue
  candidate=$(awk -v name="$package" '$1 == name { print $2; exit }' <<<"$candidates")
  case ${candidate:--} in
    -) unknown+=("$package $installed") ;;
    *) ! dpkg --compare-versions "$(rebuilt "$installed")" lt "$(rebuilt "$candidate")" || old+=("$package $installed (apt has $candidate)") ;;
  esac
done

text=''
# sentence WORDS ITEM...: one part of the line.
sentence() {
  local words=$1 items; shift
  (($#)) || return 0
  items=$(printf ', %s' "$@")
  text+=${text:+; }$words${items:1}
}
sentence "old packages go in:" "${old[@]}"
sentence "no list of apt has:" "${unknown[@]}"
[[ -n $text ]] || exit 0
cure="apt-get update && apt-get upgrade, then build again"
[[ -z $admindir ]] || cure="delete ${admindir%/sysroot/*} and build again, which fetches the newest"
if [[ -z $release ]]; then
  say "$text; a release refuses them: $cure"
elif [[ -n ${QM_ALLOW_OLD_PACKAGES:-} ]]; then
  say "$text; allowed, because QM_ALLOW_OLD_PACKAGES is 1"
else
  say "$text; $cure, or set QM_ALLOW_OLD_PACKAGES=1"
  exit 1
fi
