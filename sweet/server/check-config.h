/* SPDX-License-Identifier: MIT */
/*
 * check-config.h - what --check-config looks at beyond the texts: whether what they
 * name is there.  Nothing is opened for long and nothing is changed, so that
 * any user can check what root will run.  Main thread, without others.
 */
#ifndef SWEET_CHECK_CONFIG_H
#define SWEET_CHECK_CONFIG_H

#include <glib.h>

struct config;

/* Adds a line (g_free) to errors for each mistake. */
void check_config(const struct config *config, GPtrArray *errors);

#endif
