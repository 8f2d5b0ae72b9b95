/* SPDX-License-Identifier: MIT */
/*
 * config-resolve.h - makes the configuration from a tree: every section inherits
 * missing keys from the one that contains it.  Only the values that count in the
 * end are checked.
 */
#ifndef SWEET_CONFIG_RESOLVE_H
#define SWEET_CONFIG_RESOLVE_H

struct config_tree;

/* Adds errors to the tree's; the configuration is valid if there are none. */
struct config *config_resolve(struct config_tree *tree);

#endif
