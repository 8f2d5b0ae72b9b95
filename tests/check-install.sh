#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check-install.sh - what make install installs can be used (check-installed.sh), and
# make uninstall removes everything.
#
# Environment: srcdir, builddir, the tops of sources and build, which is
# installed in $builddir/installed.
# Exit status: 0 good, 1 not.

srcdir=$(cd "${srcdir:-$(dirname "$0")/..}" && pwd) || exit 1
builddir=$(cd "${builddir:-$srcdir/build}" && pwd) || exit 1
# A copy: other tests use the existing one.
to=$builddir/uninstalled
rm -rf "$to" && cp -a "$builddir/installed" "$to" || exit 1
prefix=$to$(sed -n 's/^prefix = //p' "$builddir/Makefile")

die()
{
	echo "check-install: $*"
	exit 1
}

# GLib stays where it is, so a sysroot is unsuitable for the examples.
mkdir -p "$to/pkgconfig" || exit 1
for name in nabc nabc-glib; do
	sed "s|^prefix=.*|prefix=$prefix|" "$prefix/lib/pkgconfig/$name.pc" >"$to/pkgconfig/$name.pc" ||
		exit 1
done
PREFIX=$prefix PKG_CONFIG_PATH=$to/pkgconfig "$srcdir/tests/check-installed.sh" ||
	die "what was installed fails"
rm -r "$to/pkgconfig" || exit 1
# The guides are for those who have no sources: each that another names is there.
for guide in library embedding workers operator coming-from haproxy recipes/README recipes/wordpress; do
	[ -n "$(find "$to" -path "*/doc/nabc/$guide.md")" ] || die "the guide $guide.md is not installed"
done

make -C "$builddir" uninstall DESTDIR="$to" || die "make uninstall fails"
left=$(find "$to" ! -type d -print)
[ -z "$left" ] || die "make uninstall leaves: $left"
rm -rf "$to"
echo "check-install: what is installed is found, works, and goes"
