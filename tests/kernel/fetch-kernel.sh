#!/bin/sh
# SPDX-License-Identifier: MIT
#
# fetch-kernel.sh - brings a kernel of Debian 12 into a folder: its image, the
# modules that a guest with a network needs, and the headers that modules are built
# against.  Nothing is installed: apt uses its own lists here, as any user, and the
# packages are only unpacked.
#
# Arguments: 6.1 or 6.12, and the folder.  An existing kernel is used; otherwise the
# newest of that series is fetched, 6.12 from bookworm-security or
# bookworm-backports, whichever is ahead.
# In the folder: image, release (the kernel's name), lib/modules, headers.
# Environment: DEBIAN_MIRROR, an address below which there are debian and
# debian-security (else what this machine's apt has for them); DEBIAN_KEYRING.
# Exit status: 0; 77 when apt or the packages are unavailable; 1.

me=fetch-kernel
series=$1
where=$2
keyring=${DEBIAN_KEYRING:-/usr/share/keyrings/debian-archive-keyring.gpg}

missing()
{
	echo "$me: $*" >&2
	exit 77
}

case $series in
6.1) pattern='linux-image-6\.1\.0-[0-9]*-amd64' ;;
6.12) pattern='linux-image-6\.12\.[0-9.]*+deb12[0-9.]*-amd64' ;;
*)
	echo "Usage: fetch-kernel.sh 6.1|6.12 FOLDER" >&2
	exit 1
	;;
esac
# A folder of an older script lacks some drivers.
contents=2
[ ! -e "$where/complete" ] || [ "$(cat "$where/complete")" != $contents ] || exit 0
for program in apt-get dpkg-deb xz; do
	command -v $program >/dev/null || missing "no $program; kernels come as Debian's packages"
done
[ -r "$keyring" ] || missing "no $keyring; on Debian: apt-get install debian-archive-keyring"

# repository LABEL FOLDER: its address; suites that are not configured are there as well.
repository()
{
	if [ -n "$DEBIAN_MIRROR" ]; then
		echo "${DEBIAN_MIRROR%/}/$2"
	else
		apt-get indextargets --format '$(REPO_URI)' "Created-By: Packages" \
			"Origin: Debian" "Label: $1" | head -n 1
	fi
}

main=$(repository Debian debian)
security=$(repository Debian-Security debian-security)
[ -n "$main" ] || missing "apt knows no Debian (apt-get update), and there is no DEBIAN_MIRROR"

rm -rf "$where"
mkdir -p "$where/apt/lists/partial" "$where/apt/archives/partial" "$where/apt/none" \
	"$where/packages" "$where/unpacked" || exit 1
where=$(cd "$where" && pwd) || exit 1

from="deb [arch=amd64 signed-by=$keyring]"
{
	for suite in bookworm bookworm-updates bookworm-backports; do
		echo "$from $main $suite main"
	done
	[ -z "$security" ] || echo "$from $security bookworm-security main"
} >"$where/apt/sources"
cat >"$where/apt/conf" <<CONF
APT::Architecture "amd64";
APT::Sandbox::User "";
Acquire::Languages "none";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Dir::Etc::sourcelist "$where/apt/sources";
Dir::Etc::sourceparts "$where/apt/none";
Dir::State::status "/dev/null";
Dir::State::lists "$where/apt/lists";
Dir::Cache "$where/apt";
CONF
APT_CONFIG=$where/apt/conf
export APT_CONFIG

apt-get -qq update || missing "the lists of packages are not to be had from $main"
image=$(apt-cache pkgnames linux-image-6 | grep -x "$pattern" | sort -V | tail -n 1)
[ -n "$image" ] || missing "$main has no linux-image-$series for Debian 12"
release=${image#linux-image-}
headers=$(apt-cache depends "linux-headers-$release" |
	sed -n 's/^ *Depends: \(linux-headers-.*\|linux-kbuild-.*\)/\1/p')
# Without quotes: this is a list of words.
(cd "$where/packages" && apt-get -qq download "$image" "linux-headers-$release" $headers) ||
	missing "$image is not to be had"

for package in "$where"/packages/linux-headers-* "$where"/packages/linux-kbuild-*; do
	dpkg-deb -x "$package" "$where/unpacked" || exit 1
done
# All drivers would need half a gigabyte.
modules="./lib/modules/*/kernel"
dpkg-deb --fsys-tarfile "$where/packages/$image"_* |
	tar -x -C "$where/unpacked" --wildcards './boot/*' './lib/modules/*/modules.*' \
		"$modules/net/*" "$modules/crypto/*" "$modules/lib/*" "$modules/arch/x86/crypto/*" \
		"$modules/drivers/virtio/*" "$modules/drivers/net/veth.ko*" \
		"$modules/drivers/net/virtio_net.ko*" "$modules/drivers/net/net_failover.ko*" \
		"$modules/drivers/net/ethernet/intel/e1000e/*" "$modules/drivers/ptp/*" \
		"$modules/drivers/pps/*" || exit 1
find "$where/unpacked/lib/modules" -name '*.ko.xz' -exec xz -d {} + || exit 1

# Their current path, not the one of an installation.
sed -i "s|/usr/src/|$where/unpacked/usr/src/|" \
	"$where/unpacked/usr/src/linux-headers-$release/Makefile" || exit 1
ln -s "unpacked/usr/src/linux-headers-$release" "$where/headers" &&
	ln -s "unpacked/boot/vmlinuz-$release" "$where/image" &&
	ln -s "unpacked/lib" "$where/lib" &&
	echo "$release" >"$where/release" || exit 1
rm -r "$where/apt" "$where/packages" && echo $contents >"$where/complete"
