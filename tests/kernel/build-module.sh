#!/bin/sh
# SPDX-License-Identifier: MIT
#
# build-module.sh - builds nabc.ko for a kernel of fetch-kernel.sh's, out of
# sources that may be readable only.
#
# Arguments: the top of the sources, a folder of fetch-kernel.sh's, the folder
# to build in; what was in it is lost.  The module is nabc.ko there.

srcdir=$1 kernel=$2 to=$3
rm -rf "$to"
mkdir -p "$to" &&
	cp "$srcdir"/kernel-shim/*.[ch] "$srcdir"/kernel-shim/Kbuild \
		"$srcdir"/kernel-shim/Makefile "$to" &&
	rm -f "$to"/*.mod.c || exit
# Type information would require pahole and the whole vmlinux.
make -s -C "$to" KDIR="$kernel/headers" CC=gcc-12 CONFIG_DEBUG_INFO_BTF_MODULES= &&
	strip --strip-debug "$to/nabc.ko"
