/* SPDX-License-Identifier: MIT */
/*
 * status-json.h - the status as JSON text, for programs and for the status page.
 */
#ifndef SWEET_STATUS_JSON_H
#define SWEET_STATUS_JSON_H

#include <glib.h>

struct status_data;

GString *status_json(const struct status_data *data);

#endif
