/* SPDX-License-Identifier: MIT */
/*
 * config-fixed.h - the keys that are read once, at the start.  Pure.
 */
#ifndef SWEET_CONFIG_FIXED_H
#define SWEET_CONFIG_FIXED_H

#include "config/configuration.h"

/* Their names, with ", " between, where one configuration differs from the other; NULL: nowhere. */
char *config_fixed_changes(const struct config *one, const struct config *other);

#endif
