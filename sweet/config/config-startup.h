/* SPDX-License-Identifier: MIT */
/*
 * config-startup.h - the keys that are read only at startup.  Pure.
 */
#ifndef SWEET_CONFIG_STARTUP_H
#define SWEET_CONFIG_STARTUP_H

struct config;

/*
 * Returns the names of those that differ between two configurations, separated by
 * ", "; or NULL.
 */
char *config_startup_changes(const struct config *one, const struct config *other);

#endif
