#!/bin/sh
# SPDX-License-Identifier: MIT
#
# guest-image.sh - packs the initial file system of a guest: busybox, the
# kernel's modules that are asked for with those that they need, and any files,
# programs with the libraries that they are linked to.
#
# Arguments: a folder of fetch-kernel.sh's, the image to write, the modules by
# name as one word ("veth sch_netem"), then files as FILE:PATH, where it goes.
# Modules stand in /modules in the order in which they can be loaded; /init must
# be among the files.
# Environment: BUSYBOX, one linked statically (default /bin/busybox).

me=guest-image
set -e
kernel=$1 image=$2 modules=$3
shift 3
release=$(cat "$kernel/release")
root=$image.root
busybox=${BUSYBOX:-/bin/busybox}
# An ordinary user's path has no depmod.
PATH=$PATH:/usr/sbin:/sbin

rm -rf "$root" "$image"
mkdir -p "$root/bin" "$root/dev" "$root/etc" "$root/modules" "$root/proc" "$root/run" \
	"$root/sys" "$root/tmp"
cp "$busybox" "$root/bin/busybox"
"$busybox" --list | while read -r name; do
	[ "$name" = busybox ] || [ "$name" = init ] || ln -s busybox "$root/bin/$name"
done

[ -f "$kernel/lib/modules/$release/modules.dep" ] || depmod -b "$kernel" "$release"
count=100
for module in $modules; do
	list=$(modprobe -D -d "$kernel" -S "$release" "$module")
	for path in $(echo "$list" | sed -n 's/^insmod \([^ ]*\).*/\1/p'); do
		name=$(basename "$path")
		[ -z "$(find "$root/modules" -name "???-$name")" ] || continue
		cp "$path" "$root/modules/$count-$name"
		strip --strip-debug "$root/modules/$count-$name"
		count=$((count + 1))
	done
done

# place FILE PATH: copies it, and what the loader will look for.
place()
{
	mkdir -p "$root/$(dirname "$2")"
	cp -L "$1" "$root/$2"
	ldd "$1" 2>/dev/null | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p; s/^[[:space:]]*\(\/[^ ]*\) .*/\1/p' |
		while read -r library; do
			[ -e "$root/$library" ] && continue
			mkdir -p "$root/$(dirname "$library")"
			cp -L "$library" "$root/$library"
		done
}

for file in "$@"; do
	[ -e "${file%%:*}" ] || {
		echo "$me: no ${file%%:*}" >&2
		exit 1
	}
	place "${file%%:*}" "${file#*:}"
done
chmod -R u+w,go-w "$root"
(cd "$root" && find . -print0 | LC_ALL=C sort -z |
	cpio --null --create --format=newc --owner=0:0 --quiet --reproducible) >"$image"
rm -r "$root"
