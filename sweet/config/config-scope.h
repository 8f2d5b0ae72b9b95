/* SPDX-License-Identifier: MIT */
/*
 * config-scope.h - makes the scopes of hosts: what applies to their paths.
 */
#ifndef SWEET_CONFIG_SCOPE_H
#define SWEET_CONFIG_SCOPE_H

struct config;
struct config_tree;
struct host;
struct section;

/* Adds the scope of all paths of a host: the section is its own, to which [path /] is added. */
void scope_add_host(struct config_tree *tree, struct config *config, struct host *host,
		    struct section *section);

/* Adds the scope of a path; call it after the scopes of all hosts, for exact paths last. */
void scope_resolve_path(struct config_tree *tree, struct config *config, struct section *section);

/* Adds the patterns of all hosts; call it after their paths. */
void scope_resolve_patterns(struct config_tree *tree, struct config *config);

/* Adds the folders whose files pools may send; call it last. */
void scope_add_folders(struct config_tree *tree, struct config *config);

#endif
