/* SPDX-License-Identifier: MIT */
/*
 * arch.c - see arch.h.  The numbers of threads and processes are the paper's.
 */
#include "config/arch.h"

const struct arch archs[ARCHS] = {
	[ARCH_AMPED] = {.name = "amped", .helpers = 4},
	[ARCH_SPED] = {.name = "sped"},
	[ARCH_MT] = {.name = "mt", .threads = 64, .single = true},
	[ARCH_MP] = {.name = "mp", .threads = 32, .single = true, .processes = true},
};
