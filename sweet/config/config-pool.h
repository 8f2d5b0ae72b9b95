/* SPDX-License-Identifier: MIT */
/*
 * config-pool.h - makes the pools of a configuration: from the [pool NAME] groups,
 * and from the options that map a prefix to a program.
 */
#ifndef SWEET_CONFIG_POOL_H
#define SWEET_CONFIG_POOL_H

struct config;
struct config_tree;
struct pool_config;
struct section;

/* Call it after the keys of [sweet]. resolve: fills a pool with the keys of a section. */
void config_pools(struct config_tree *tree, struct config *config,
		  void (*resolve)(struct config_tree *tree, const struct section *section,
				  struct pool_config *pool));

/* Complains of variables of paths that their programs do not get; call it when all scopes are there. */
void config_pools_check(struct config_tree *tree, const struct config *config);

/* Returns the pool of that name, or NULL. */
const struct pool_config *config_pool(const struct config *config, const char *name);

#endif
