#!/bin/sh
# SPDX-License-Identifier: MIT
#
# in-build.sh - runs a command as make check runs a test of a build: in its folder,
# with the environment of its Makefile for tests.
#
# Usage: in-build.sh BUILD COMMAND...
# Exit status: the command's; 1 without such a build.

srcdir=$(cd "$(dirname "$0")/.." && pwd) || exit 1
builddir=$(cd "$1" && pwd) || exit 1
shift
cd "$builddir" || exit 1

value() { sed -n "s/^$1 = //p" Makefile | head -n 1; }
CC=$(value CC) && GLIB_CFLAGS=$(value GLIB_CFLAGS) && HARDENING=$(value HARDENING) || exit 1
export srcdir builddir CC GLIB_CFLAGS HARDENING
# gcc 12's sanitizers need addresses that are less random than on some kernels.
! setarch -R true 2>/dev/null || set -- setarch -R "$@"
exec "$@"
