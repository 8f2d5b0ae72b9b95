/* SPDX-License-Identifier: MIT */
/*
 * config-script.h - the keys suffix and hosts of pools: which pool runs a file of a host by the end
 * of its name.
 */
#ifndef SWEET_CONFIG_SCRIPT_H
#define SWEET_CONFIG_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>

struct config;
struct config_tree;
struct host;
struct pool_config;
struct scope;

/* Files of a host whose names end so are scripts of the pool. */
struct script_claim {
	const char *suffix; /* of the pool */
	size_t length;
	const struct pool_config *pool;
};

/* Sets the claims of each host; call it when pools and hosts are known. */
void config_scripts(struct config_tree *tree, struct config *config);

/*
 * Returns the pool that runs the script which a path of the host names, by its suffix, and sets the
 * bytes that name the script; what follows them is the script's.  NULL: it names none.
 */
const struct pool_config *config_script(const struct host *host, const char *path, size_t *length);

/*
 * Whether a file of that path, which is one of the scope, would be a script, which is never sent: by
 * the suffix of a pool of any host, or by the script-suffix of the pool that answers there.  scope:
 * may be NULL.
 */
bool config_is_source(const struct config *config, const struct scope *scope, const char *path);

#endif
