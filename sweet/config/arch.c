/* SPDX-License-Identifier: MIT */
/*
 * arch.c - see arch.h.  Threads and processes are as many as the paper took.
 */
#include "config/arch.h"

const struct arch archs[ARCHS] = {
	[ARCH_AMPED] = {.name = "amped", .helpers = 4},
	[ARCH_SPED] = {.name = "sped"},
	[ARCH_MT] = {.name = "mt", .threads = 64, .single = true},
	[ARCH_MP] = {.name = "mp", .threads = 32, .single = true, .processes = true},
};
