# SPDX-License-Identifier: MIT
# nabc.ko builds on its own, with kbuild: make -C kernel-shim.  What is here is
# only put into the distribution.
EXTRA_DIST += kernel-shim/.clang-format kernel-shim/60-nabc.rules kernel-shim/COPYING \
	kernel-shim/Kbuild kernel-shim/Makefile kernel-shim/access.c kernel-shim/arena.c \
	kernel-shim/compat.h kernel-shim/dkms.conf kernel-shim/egress.c kernel-shim/file.c kernel-shim/fill.c \
	kernel-shim/hold.c kernel-shim/limits.c kernel-shim/main.c kernel-shim/memory.c \
	kernel-shim/nabc-uapi.h kernel-shim/nabc.h kernel-shim/put.c kernel-shim/report.c kernel-shim/send.c \
	kernel-shim/shrinker.c kernel-shim/sums.c kernel-shim/unit.c
