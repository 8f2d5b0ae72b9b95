/* SPDX-License-Identifier: MIT */
/*
 * config-arch.h - how the architecture affects other settings: the number of
 * threads, and what it excludes.
 */
#ifndef SWEET_CONFIG_ARCH_H
#define SWEET_CONFIG_ARCH_H

#include "config/config-tree.h"
#include "config/configuration.h"

/* Call it after the keys of [sweet]: sets the default of threads, and checks the maximum. */
void config_arch_threads(struct config_tree *tree, struct config *config);

/* Call it after the pools. */
void config_arch_pools(struct config_tree *tree, const struct config *config);

#endif
