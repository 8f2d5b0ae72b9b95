/* SPDX-License-Identifier: MIT */
/*
 * config-startup.h - the keys that are read once, at the start.  Pure.
 */
#ifndef SWEET_CONFIG_STARTUP_H
#define SWEET_CONFIG_STARTUP_H

#include "config/configuration.h"

/* Their names, with ", " between, where one configuration differs from the other; NULL: nowhere. */
char *config_startup_changes(const struct config *one, const struct config *other);

#endif
