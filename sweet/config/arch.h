/* SPDX-License-Identifier: MIT */
/*
 * arch.h - the four architectures of paper 003, section 3, as rows of a table:
 * which threads wait for a disk, and which share the caches.  All other parts of
 * the server are the same in each.
 */
#ifndef SWEET_ARCH_H
#define SWEET_ARCH_H

#include <stdbool.h>

enum arch_kind { ARCH_AMPED, ARCH_SPED, ARCH_MT, ARCH_MP, ARCHS };

struct arch {
	const char *name;
	/*
	 * Helper threads that open and read files for the loops; 0: a loop does
	 * this itself, and blocks.
	 */
	unsigned helpers;
	unsigned threads; /* the default of threads; 0: one per CPU */
	bool single;	  /* a thread has one connection at a time */
	bool processes;	  /* each thread is a process with its own caches */
};

extern const struct arch archs[ARCHS];

/* Of the key threads, in the words of each message about it. */
#define ARCH_THREADS_RANGE "from 1 to 64, or to 4096 with arch mt or mp"

struct config;
struct config_tree;

/* Call it after the keys of [sweet]: sets the default of threads, and checks the maximum. */
void config_arch_threads(struct config_tree *tree, struct config *config);

/* Call it after the pools: checks that the architecture permits them. */
void config_arch_pools(struct config_tree *tree, const struct config *config);

#endif
