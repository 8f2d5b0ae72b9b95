/* SPDX-License-Identifier: MIT */
/*
 * ctl-show.h - how counters are shown; for the commands that show them.
 */
#ifndef CTL_SHOW_H
#define CTL_SHOW_H

#include <base/json.h>

#include "ctl.h"

/* Every field of the statistics, into an object that is open. */
void ctl_counters_json(struct json *json, const struct NC_cache_stat *stat);

/* What came from another process, fit for a terminal (g_free). */
char *ctl_printable(const char *text);

#endif
