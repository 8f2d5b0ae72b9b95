/* SPDX-License-Identifier: MIT */
/* ctl-show.h - shared by the commands that print counters. */
#ifndef CTL_SHOW_H
#define CTL_SHOW_H

#include <base/json.h>

struct NC_cache_stat;
struct json;

/* Adds every field of the statistics to the open object. */
void ctl_counters_json(struct json *json, const struct NC_cache_stat *stat);

/* Returns text of another process, made safe for a terminal (g_free). */
char *ctl_printable(const char *text);

#endif
