#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check-abi.sh - compares the binary interface of the built library with the one
# that libnabc/libnabc.abi describes, by libabigail.  Programs that were linked with
# an earlier version must continue to work.  Therefore existing declarations stay as
# they are; new ones are added to the description:
#
#	tests/check-abi.sh --record
#
# Environment: srcdir, builddir, the tops of sources and build.
# Exit status: 0 the same, 1 not, 77 libabigail or debug information is missing.

srcdir=$(cd "${srcdir:-$(dirname "$0")/..}" && pwd) || exit 1
builddir=$(cd "${builddir:-$srcdir/build}" && pwd) || exit 1
stored=$srcdir/libnabc/libnabc.abi
library=$builddir/libnabc/.libs/libnabc.so
tmp=$(mktemp) || exit 1
trap 'rm -f "$tmp"' EXIT

if ! command -v abidw >/dev/null || ! command -v abidiff >/dev/null; then
	echo "check-abi: libabigail is missing; on Debian: apt-get install abigail-tools"
	exit 77
fi
# A library with sanitizers has additional symbols; a stripped one has no types.
if ! readelf -S "$library" | grep -q '\.debug_info' || nm "$library" | grep -q '__[at]san_init'; then
	echo "check-abi: $library has no debug information, or a sanitizer"
	exit 77
fi
abidw --headers-dir "$srcdir/libnabc/include" --drop-private-types --drop-undefined-syms \
	--exported-interfaces-only --no-comp-dir-path --no-corpus-path --no-show-locs \
	"$(readlink -f "$library")" >"$tmp" || exit 1
if [ "$1" = --record ]; then
	cp "$tmp" "$stored"
	exit
fi
# 4: a change, which the report describes; 8: certainly not compatible.
abidiff --suppressions "$srcdir/tests/abi-exceptions.txt" --no-show-locs "$stored" "$tmp"
case $? in
0)
	echo "check-abi: the binary interface is the one that is described"
	exit 0
	;;
4)
	echo "check-abi: the interface changed; if it only grew: tests/check-abi.sh --record"
	;;
*)
	echo "check-abi: programs that are linked with an earlier version would break"
	;;
esac
exit 1
