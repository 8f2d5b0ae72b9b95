/* SPDX-License-Identifier: MIT */
/*
 * arch.h - who waits for a disk, and who shares the caches: the four
 * architectures of paper 003, section 3, as rows of a table.  All else of the
 * server is the same in each.
 */
#ifndef SWEET_ARCH_H
#define SWEET_ARCH_H

#include <stdbool.h>

enum arch_kind { ARCH_AMPED, ARCH_SPED, ARCH_MT, ARCH_MP, ARCHS };

struct arch {
	const char *name;
	/* Threads that open and read files for the loops; 0: a loop does it itself, and waits. */
	unsigned helpers;
	unsigned threads; /* if nobody says how many; 0: one a CPU */
	bool single;	  /* a thread has one connection at a time */
	bool processes;	  /* it is a process, with caches of its own */
};

extern const struct arch archs[ARCHS];

struct config;
struct config_tree;

/* After the keys of [sweet]: threads that nobody has given, and what they may be. */
void config_arch_threads(struct config_tree *tree, struct config *config);

/* After the pools: what cannot be had with the architecture. */
void config_arch_pools(struct config_tree *tree, const struct config *config);

#endif
