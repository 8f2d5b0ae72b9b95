#!/bin/bash
# SPDX-License-Identifier: MIT
#
# check-dist.sh - make distcheck: the release builds, its units pass, and it
# has all files of the checkout.
#
# Environment: srcdir, builddir, the tops of sources and build.
# Exit status: 0 good, 1 not.

srcdir=$(cd "${srcdir:-$(dirname "$0")/..}" && pwd) || exit 1
builddir=$(cd "${builddir:-$srcdir/build}" && pwd) || exit 1
cd "$srcdir" || exit 1
. build-aux/steps.sh
use_ccache "$srcdir"

# The system tests have suites of their own; here their files only must exist.  Other builds are for
# debuggers and speed.
PYTEST_ADDOPTS="--collect-only -qq" make -C "$builddir" -j"$(nproc)" distcheck \
	DISTCHECK_CONFIGURE_FLAGS="--enable-werror CFLAGS=-O1" VERBOSE=1 || exit 1
[ -e .git ] || exit 0
lacking=$(LC_ALL=C comm -23 <(git ls-files | LC_ALL=C sort) \
	<(tar tf "$builddir"/nabc-*.tar.xz | sed 's|^[^/]*/||' | LC_ALL=C sort) |
	grep -v -e '^\.ci/' -e '^\.gitignore$')
[ -z "$lacking" ] || {
	echo "check-dist: the release lacks:"
	echo "$lacking"
	exit 1
}
echo "check-dist: the release builds, and has all files"
