#!/usr/bin/env bash
# sign.sh: checksums of the files of a release, and their signature. `sign.sh --help` says how it is used.
set -euo pipefail
export LC_ALL=C

usage() {
  cat <<'H'
usage: release/sign.sh FOLDER | --check
Writes FOLDER/SHA256SUMS: the checksums of all files of FOLDER. QM_SIGNING_KEY names a file with a private key of ed25519, in PEM. With it
FOLDER/SHA256SUMS.sig is the signature of SHA256SUMS (RFC 8032, 64 bytes); without it, a line says that there is none.
  --check  only say whether the key can be used
A new key:  openssl genpkey -algorithm ed25519 -out signing.key
Its public key, for those who check:  openssl pkey -in signing.key -pubout -out signing.pub
Exit codes: 0 done, 1 failed, 2 wrong usage.
H
}
say() { printf 'sign: %s\n' "$*" >&2; }
die() { say "$1"; exit "${2:-1}"; }

(($# == 1)) || die "one argument is allowed, FOLDER or --check (see release/sign.sh --help)" 2
[[ $1 != -h && $1 != --help ]] || { usage; exit 0; }
key=${QM_SIGNING_KEY:-}
if [[ -n $key ]]; then
  [[ -r $key ]] || die "QM_SIGNING_KEY: no file $key can be read"
  key=$(readlink -f "$key")
  kind=$(openssl pkey -in "$key" -passin pass: -noout -text 2>/dev/null | sed -n 1p) || true
  [[ $kind == 'ED25519 Private-Key:'* ]] ||
    die "QM_SIGNING_KEY: $key is no private key of ed25519 without a password; openssl genpkey -algorithm ed25519 -out FILE makes one"
fi
[[ $1 != --check ]] || exit 0

cd "$1"
rm -f SHA256SUMS SHA256SUMS.sig
sums=$(sha256sum -- *)
printf '%s\n' "$sums" >SHA256SUMS
if [[ -n $key ]]; then
  openssl pkeyutl -sign -rawin -inkey "$key" -in SHA256SUMS -out SHA256SUMS.sig || die "openssl does not sign SHA256SUMS (above)"
else
  say "the files are not signed: QM_SIGNING_KEY names no key"
fi
