#!/usr/bin/env bash
# disk.sh: the system of the virtual machine: Debian 12 with its cloud kernel. `disk.sh --help` says how it is used.
#
# Packages are unpacked, not installed: none of their scripts runs. That takes seconds, and leaves out what a node does not need at its start.
set -euo pipefail
export LC_ALL=C
umask 022
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

usage() {
  cat <<'H'
usage: disk.sh
Makes a root disk, a kernel and an initramfs of Debian's packages, and prints their folder. A second call takes a second. It needs root
and, the first time, a Debian mirror: that of /etc/apt. Nothing of this machine's packages is changed.
Everything is kept in ${XDG_CACHE_HOME:-~/.cache}/quartermaster.
Exit codes: 0 done, 1 failed, 2 wrong usage.
H
}
say() { printf 'machine: %s\n' "$*" >&2; }
die() { say "$1"; exit "${2:-1}"; }

case ${1:-} in
  '') ;;
  -h|--help) usage; exit 0 ;;
  *) die "unknown argument '$1' (see --help)" 2 ;;
esac

# What a node has, what the scripts in guest/ and test/nvml/node.sh call, and what the initramfs is made with.
idle=(modprobe@.service systemd-modules-load.service kmod-static-nodes.service systemd-binfmt.service proc-sys-fs-binfmt_misc.automount
  sys-fs-fuse-connections.mount sys-kernel-config.mount sys-kernel-debug.mount sys-kernel-tracing.mount systemd-random-seed.service
  systemd-update-utmp.service systemd-update-utmp-runlevel.service systemd-repart.service systemd-pcrphase.service
  systemd-pcrphase-sysinit.service systemd-logind.service systemd-journal-flush.service systemd-sysusers.service
  cryptsetup.target veritysetup.target integritysetup.target getty.target remote-fs.target systemd-ask-password-wall.path
  systemd-ask-password-console.path fstrim.timer systemd-tmpfiles-clean.timer dpkg-db-backup.timer) # of systemd's, as no one waits for them
packages=(usr-is-merged base-files base-passwd bash coreutils dash findutils grep hostname libc-bin mawk mount procps sed util-linux
  systemd systemd-sysv dbus kmod iproute2 nftables runc containernetworking-plugins jq busybox-static cpio)
kernel=linux-image-cloud-amd64
modules=(virtio_pci virtio_blk virtio_net ext4) # before there is a root disk to load others from

key=$({ cat "${BASH_SOURCE[0]}"; cd "$here/guest" && find . -name '*.service' -print0 | sort -z | xargs -0 cat; } | sha256sum | cut -c1-12)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/quartermaster
done=$cache/machine-$key
if [[ -f $done/packages ]]; then echo "$done"; exit 0; fi
((EUID == 0)) || die "not root: the files of the disk belong to root"
mkdir -p "$cache"
exec 9>"$cache/.machine.lock"; flock 9
if [[ -f $done/packages ]]; then echo "$done"; exit 0; fi
work=$(mktemp -d "$cache/.machine.XXXXXX")
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir -p "$work/out"

# ---- packages of this machine's own mirrors, with lists of our own: as if nothing were installed ----

apt=(-qq -o Dir::State="$work/apt/state" -o Dir::State::status="$work/apt/state/status" -o Dir::Cache="$work/apt/cache"
  -o APT::Sandbox::User=root -o Acquire::Languages=none)
mkdir -p "$work/apt/state/lists/partial" "$work/apt/cache/archives/partial"
: >"$work/apt/state/status"
say "fetching Debian's packages"
apt-get "${apt[@]}" update >&2 || die "apt-get update failed: is a Debian mirror reachable?"
image=$(apt-cache "${apt[@]}" depends "$kernel" | sed -nE 's/^ *Depends: (linux-image-[0-9].*)/\1/p') || image=
[[ -n $image ]] || die "apt has no package $kernel"
{ apt-get "${apt[@]}" install --download-only --yes --no-install-recommends "${packages[@]}" &&
  (cd "$work/apt/cache/archives" && apt-get "${apt[@]}" download "$image"); } >"$work/log" 2>&1 ||
  { cat "$work/log" >&2; die "apt has not all packages (above)"; }

say "unpacking them"
mkdir -p "$root"/usr/{bin,sbin,lib,lib64}
for folder in bin sbin lib lib64; do ln -s "usr/$folder" "$root/$folder"; done
for file in "$work"/apt/cache/archives/*.deb; do
  dpkg-deb --fsys-tarfile "$file" | tar --extract --preserve-permissions --keep-directory-symlink --directory "$root"
  # shellcheck disable=SC2016  # dpkg-deb's own variables
  dpkg-deb --showformat '${Package} ${Version}\n' --show "$file" >>"$work/out/packages"
done

# ---- what their scripts would have done ----

mkdir -p "$root"/{dev,proc,sys,run,tmp,root,node,etc/systemd/system/multi-user.target.wants}
chmod 1777 "$root/tmp"
rm -rf "$root"/var/{run,lock}
ln -s /run "$root/var/run"; ln -s /run/lock "$root/var/lock"
for name in passwd group; do cp "$root/usr/share/base-passwd/$name".m* "$root/etc/$name"; done
[[ -e $root/bin/sh ]] || ln -s dash "$root/bin/sh"
[[ -e $root/usr/bin/awk ]] || ln -s mawk "$root/usr/bin/awk"
echo machine-1 >"$root/etc/hostname"
printf '127.0.0.1 localhost\n192.0.2.15 machine-1\n' >"$root/etc/hosts"
printf 'passwd: files\ngroup: files\nhosts: files\n' >"$root/etc/nsswitch.conf"
: >"$root/etc/resolv.conf" # no server answers there
sha256sum <<<machine-1 | cut -c1-32 >"$root/etc/machine-id"
rm -rf "$root"/usr/share/{doc,man,info,locale,i18n,zoneinfo} "$root"/var/lib/systemd/catalog
ln -sf /lib/systemd/system/multi-user.target "$root/etc/systemd/system/default.target"
for file in "$here"/guest/*.service; do
  cp "$file" "$root/etc/systemd/system/"
  ln -s "../${file##*/}" "$root/etc/systemd/system/multi-user.target.wants/"
done
for unit in "${idle[@]}"; do ln -sf /dev/null "$root/etc/systemd/system/$unit"; done
chroot "$root" systemd-sysusers
ldconfig -r "$root"

# ---- kernel and initramfs ----

release=${image#linux-image-}
mv "$root/boot/vmlinuz-$release" "$work/out/vmlinuz"
rm -rf "${root:?}/boot"
chroot "$root" depmod "$release"
mkdir -p "$root/initramfs"/{bin,dev,proc,sys,new,modules}
cp "$root/usr/bin/busybox" "$root/initramfs/bin/busybox"
for module in "${modules[@]}"; do chroot "$root" modprobe --set-version "$release" --show-depends "$module"; done |
  awk '$1 == "insmod" && !seen[$2]++ { print $2 }' >"$work/modules"
{ cat <<'INIT'
#!/bin/busybox sh
busybox=/bin/busybox
$busybox mount -t devtmpfs none /dev
INIT
  while read -r file; do
    cp "$root$file" "$root/initramfs/modules/"
    echo "\$busybox insmod /modules/${file##*/}"
  done <"$work/modules"
  cat <<'INIT'
until [ -b /dev/vda ]; do $busybox sleep 0.1; done
$busybox mount -t ext4 -o noatime /dev/vda /new
$busybox umount /dev
exec $busybox switch_root /new /lib/systemd/systemd
INIT
} >"$root/initramfs/init"
chmod 755 "$root/initramfs/init"
chroot "$root" sh -c 'cd /initramfs && find . | cpio --quiet -o -H newc' >"$work/out/initramfs"
rm -rf "$root/initramfs"

mke2fs -q -t ext4 -O ^has_journal -d "$root" "$work/out/root.img" 4G >&2
find "$cache" -maxdepth 1 -name 'machine-*' -mtime +7 -exec rm -rf {} + # of versions of this file that are gone
mv "$work/out" "$done"
say "$(wc -l <"$done/packages") packages, $(du -m "$done/root.img" | cut -f1) MiB"
echo "$done"
