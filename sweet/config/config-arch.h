/* SPDX-License-Identifier: MIT */
/*
 * config-arch.h - what the architecture makes of the other settings: how many
 * threads there are, and what cannot be had with it.
 */
#ifndef SWEET_CONFIG_ARCH_H
#define SWEET_CONFIG_ARCH_H

#include "config/config-tree.h"
#include "config/configuration.h"

/* After the keys of [sweet]: threads that nobody has given, and what they may be. */
void config_arch_threads(struct config_tree *tree, struct config *config);

/* After the pools. */
void config_arch_pools(struct config_tree *tree, const struct config *config);

#endif
