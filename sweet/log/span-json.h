/* SPDX-License-Identifier: MIT */
/*
 * span-json.h - spans as a request for a collector: OTLP 1 in JSON, with the names of OpenTelemetry's
 * semantic conventions for HTTP servers.
 */
#ifndef SWEET_SPAN_JSON_H
#define SWEET_SPAN_JSON_H

#include <stdint.h>

struct json;
struct random_id;
struct span;

/* Begins a request, in json->text. */
void span_json_begin(struct json *json, const char *service);

/*
 * Adds a span that span_copy() made, and a child for each part of its time if a program answered.
 * ahead_ns: what the clock since 1970 is ahead of that of the span.
 */
void span_json_add(struct json *json, const struct span *span, uint64_t ahead_ns,
		   struct random_id *ids);

void span_json_end(struct json *json);

#endif
