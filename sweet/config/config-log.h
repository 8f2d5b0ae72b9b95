/* SPDX-License-Identifier: MIT */
/*
 * config-log.h - counts the access logs of a configuration, and the fields of requests that their
 * templates name.
 */
#ifndef SWEET_CONFIG_LOG_H
#define SWEET_CONFIG_LOG_H

#include <stdbool.h>

struct config;
struct host;

/* Finds or adds the log of a host; place: of its key access-log, or NULL. */
void config_log_add(struct config *config, struct host *host, const char *place);

/* Adds the slow log, if there is one; call it after all hosts were added. */
void config_log_add_slow(struct config *config);

/*
 * Numbers the fields that templates name, after all hosts were added.  Returns false if there are
 * more than LOG_FIELDS_MAX different ones.
 */
bool config_log_number_fields(struct config *config);

#endif
