/* SPDX-License-Identifier: MIT */
/*
 * config-pool.h - makes the pools of a configuration: of the [pool NAME]
 * sections, and of the options that name a prefix with what is there.
 */
#ifndef SWEET_CONFIG_POOL_H
#define SWEET_CONFIG_POOL_H

#include "config/config-tree.h"
#include "config/configuration.h"

/* Behind the keys of [sweet].  resolve: fills a pool by the keys of a section. */
void config_pools(struct config_tree *tree, struct config *config,
		  void (*resolve)(struct config_tree *tree, const struct section *section,
				  struct pool_config *pool));

/* The pool of that name, or NULL. */
struct pool_config *config_pool(const struct config *config, const char *name);

#endif
