/* SPDX-License-Identifier: MIT */
/*
 * config-resolve.h - from a tree to the configuration: every section takes
 * what it lacks from the one that it lies in, and only what counts in the end
 * is looked at.
 */
#ifndef SWEET_CONFIG_RESOLVE_H
#define SWEET_CONFIG_RESOLVE_H

#include "config/config-tree.h"
#include "config/configuration.h"

/* With the tree's errors told there; the configuration is good if there are none. */
struct config *config_resolve(struct config_tree *tree);

#endif
