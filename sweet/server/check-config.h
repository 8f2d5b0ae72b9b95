/* SPDX-License-Identifier: MIT */
/*
 * check-config.h - what --check-config checks in addition to the texts: whether the files and users
 * that they name exist.  It keeps nothing open and changes nothing, so that any user can check what
 * root will run.  Main thread, without other threads.
 */
#ifndef SWEET_CHECK_CONFIG_H
#define SWEET_CHECK_CONFIG_H

#include <glib.h>

struct config;

/* Adds a line (g_free()) to errors for each mistake. */
void check_config(const struct config *config, GPtrArray *errors);

#endif
