/* SPDX-License-Identifier: MIT */
/*
 * config-chain.h - what a section says, or inherits.
 *
 * A chain is a section and those that contain it: the enclosing paths, its host, [sweet]; it ends
 * with NULL.
 */
#ifndef SWEET_CONFIG_CHAIN_H
#define SWEET_CONFIG_CHAIN_H

#include <stddef.h>

struct config_tree;
struct section;

/* Stores the values of all keys of these levels (config-key.h) in base. */
void chain_resolve(struct config_tree *tree, unsigned levels, const struct section *const *chain,
		   void *base);

/*
 * Returns the place in the chain of the nearest section with the key of that index or name, or the
 * chain's length; the keys with names are those of paths.
 */
unsigned chain_nearest(const struct section *const *chain, unsigned at);
unsigned chain_index(const struct section *const *chain, const char *name);

/* Returns the section that has the key; NULL: none. */
const struct section *chain_giver(const struct section *const *chain, const char *name);

/* Returns "FILE:LINE" of the key; NULL: on the command line, or nowhere. */
const char *chain_place(const struct section *const *chain, const char *name);

/* Returns the length of the path prefix at a place of the chain. */
size_t chain_skip(const struct section *const *chain, unsigned place);

#endif
