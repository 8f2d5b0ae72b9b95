/* SPDX-License-Identifier: MIT */
/*
 * config-trace.h - the keys that say which traces are recorded, and where their spans go.
 */
#ifndef SWEET_CONFIG_TRACE_H
#define SWEET_CONFIG_TRACE_H

struct config;
struct config_tree;
struct key;

/* For config-key.c. */
const char *store_collector(const struct key *key, char **values, void *base, const char **wrong);
const char *store_share(const struct key *key, char **values, void *base, const char **wrong);
const char *store_fields(const struct key *key, char **values, void *base, const char **wrong);

/* Complains of keys that need others. */
void config_trace_check(struct config_tree *tree, const struct config *config);

#endif
