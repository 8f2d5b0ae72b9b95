#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check-version.sh - one version everywhere: what configure.ac calls it is what
# the header, the module, the documents and the package call it.
#
# Environment: srcdir, the top of the sources (default: above this script).
# Exit status: 0 good, 1 not.

cd "${srcdir:-$(dirname "$0")/..}" || exit 1

version=$(sed -n 's/^AC_INIT(\[nabc\], \[\(.*\)\])$/\1/p' configure.ac)
[ -n "$version" ] || {
	echo "check-version: configure.ac names no version"
	exit 1
}
wrong=0

# is FILE PATTERN WANTED: what sed's PATTERN finds first in FILE is WANTED.
is()
{
	found=$(sed -n "$2" "$1" | head -n 1)
	[ "$found" = "$3" ] && return
	echo "check-version: $1 has the version \"$found\", not \"$3\" as configure.ac says"
	wrong=1
}

# The header has no letters: a candidate has the numbers of its release.
numbers=$(echo "${version%%~*}" | tr . ' ')
is libnabc/include/nabc.h 's/^#define NC_VERSION //p' "$(printf '0x%02x%02x%02xu' $numbers)"
is kernel-shim/dkms.conf 's/^PACKAGE_VERSION="\(.*\)"$/\1/p' "$version"
is kernel-shim/dkms.conf 's,^# .*dkms install nabc/,,p' "$version"
is man/nabc.4 's,^dkms install nabc/,,p' "$version"
is doc/kernel-module.md 's,^.*dkms install nabc/,,p' "$version"
is debian/changelog 's/^nabc (\(.*\)-[^-]*) .*/\1/p' "$version"
is CHANGES.md 's/^## \([^ ]*\).*/\1/p' "$version"
is README.md 's/^Version \([^ ,:]*\).*/\1/p' "$version"
exit $wrong
