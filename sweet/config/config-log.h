/* SPDX-License-Identifier: MIT */
/*
 * config-log.h - counts the access logs of a configuration, and the fields of requests that their
 * templates name; the keys of traces.
 */
#ifndef SWEET_CONFIG_LOG_H
#define SWEET_CONFIG_LOG_H

#include <stdbool.h>

struct config;
struct config_tree;
struct host;
struct key;

/* Finds or adds the log of a host; place: of its key access-log, or NULL. */
void config_log_add(struct config *config, struct host *host, const char *place);

/* Adds the slow log, if there is one; call it after all hosts were added. */
void config_log_add_slow(struct config *config);

/*
 * Numbers the fields that templates name, after all hosts were added.  Returns false if there are
 * more than LOG_FIELDS_MAX different ones.
 */
bool config_log_number_fields(struct config *config);

/* For config-key.c: the keys that say which traces are recorded, and where their spans go. */
const char *store_collector(const struct key *key, char **values, void *base, const char **wrong);
const char *store_share(const struct key *key, char **values, void *base, const char **wrong);
const char *store_fields(const struct key *key, char **values, void *base, const char **wrong);

/* Complains of keys of traces that need others. */
void config_trace_check(struct config_tree *tree, const struct config *config);

#endif
