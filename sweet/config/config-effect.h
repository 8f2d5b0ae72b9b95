/* SPDX-License-Identifier: MIT */
/*
 * config-effect.h - finds keys and sections that are accepted and have no effect, because of what
 * another key says or does not say.
 */
#ifndef SWEET_CONFIG_EFFECT_H
#define SWEET_CONFIG_EFFECT_H

struct config;
struct config_tree;
struct host;
struct section;

/* Call it for each host, with the sections that it takes its keys from. */
void config_effect_host(const struct config *config, const struct host *host,
			const struct section *const *chain);

/*
 * Complains of what leaves something open that the operator wanted closed, or leads requests
 * elsewhere, and warns of everything else.  Call it at the end.
 */
void config_effect_check(struct config_tree *tree, struct config *config);

#endif
