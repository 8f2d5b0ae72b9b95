/* SPDX-License-Identifier: MIT */
/*
 * status-metrics.h - the status in Prometheus' text format, version 0.0.4.
 */
#ifndef SWEET_STATUS_METRICS_H
#define SWEET_STATUS_METRICS_H

#include <glib.h>

struct status_data;

#define STATUS_METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

GString *status_metrics(const struct status_data *data);

#endif
