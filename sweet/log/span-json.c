/* SPDX-License-Identifier: MIT */
/*
 * span-json.c - see span-json.h.
 *
 * The query of a URL is left out: it may have secrets.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <glib.h>

#include "base/json.h"
#include "base/random-id.h"
#include "base/slice.h"
#include "http/uri.h"
#include "log/access-line.h"
#include "log/span-json.h"
#include "log/span.h"

/* enum SpanKind and StatusCode of OTLP. */
#define KIND_INTERNAL 1u
#define KIND_SERVER 2u
#define STATUS_ERROR 2u
#define FLAG_SAMPLED 1u

/* --- attributes --------------------------------------------------------------------- */

static void put_value(struct json *json, const char *key, const char *text, uint64_t number)
{
	json_open(json, NULL, '{');
	json_text(json, "key", key);
	json_open(json, "value", '{');
	if (text)
		json_text(json, "stringValue", text);
	else
		json_id(json, "intValue", number);
	json_close(json, '}');
	json_close(json, '}');
}

/* Nothing for an unknown text. */
static void put_text(struct json *json, const char *key, const char *text)
{
	if (text && *text)
		put_value(json, key, text, 0);
}

static void put_number(struct json *json, const char *key, uint64_t number)
{
	put_value(json, key, NULL, number);
}

static void put_slice(struct json *json, const char *key, struct slice text)
{
	char *copy = g_strndup(text.at ? text.at : "", text.length);

	put_text(json, key, copy);
	g_free(copy);
}

/* --- what the first line says --------------------------------------------------------- */

/* Returns the method of the standards, or NULL: any other could make too many names. */
static const char *known_method(struct slice method)
{
	static const char *const methods[] = {"GET",	 "HEAD",    "POST",  "PUT",  "DELETE",
					      "CONNECT", "OPTIONS", "TRACE", "PATCH"};

	for (unsigned i = 0; i < G_N_ELEMENTS(methods); i++)
		if (slice_equals(method, (struct slice){methods[i], strlen(methods[i])}))
			return methods[i];
	return NULL;
}

/* Without the query, and without scheme and host of an absolute URL. */
static struct slice path_of(struct slice target)
{
	const char *query = target.length ? memchr(target.at, '?', target.length) : NULL;
	const char *end = query ? query : target.at + target.length, *at = target.at;

	if (at < end && *at != '/') {
		at = memmem(at, (size_t)(end - at), "://", 3);
		at = at ? memchr(at + 3, '/', (size_t)(end - at) - 3) : target.at;
	}
	return at ? (struct slice){at, (size_t)(end - at)} : SLICE("/");
}

/* "1.1" of "HTTP/1.1", and "2" of "HTTP/2.0". */
static struct slice version_of(struct slice protocol)
{
	static const char name[] = "HTTP/";
	size_t length = sizeof(name) - 1;

	if (protocol.length <= length || memcmp(protocol.at, name, length) != 0)
		return SLICE("");
	protocol = (struct slice){protocol.at + length, protocol.length - length};
	return slice_equals(protocol, SLICE("2.0")) ? SLICE("2") : protocol;
}

static void put_host(struct json *json, const char *text)
{
	struct slice host = {text, text ? strlen(text) : 0}, name;
	uint64_t port = 0;

	if (!host.length)
		return;
	name = uri_without_port(host);
	for (size_t i = name.length + 1; i < host.length && g_ascii_isdigit(text[i]); i++)
		port = port > UINT16_MAX ? port : port * 10 + (uint64_t)(text[i] - '0');
	/* Brackets separate an address from its port; they are no part of it. */
	if (name.length > 2 && name.at[0] == '[')
		name = (struct slice){name.at + 1, name.length - 2};
	put_slice(json, "server.address", name);
	if (port && port <= UINT16_MAX)
		put_number(json, "server.port", port);
}

static void put_attributes(struct json *json, const struct span *span,
			   const struct access_request *request, const char *method)
{
	char status[16];

	json_open(json, "attributes", '[');
	put_text(json, "http.request.method", method ? method : "_OTHER");
	if (!method)
		put_slice(json, "http.request.method_original", request->method);
	put_slice(json, "url.path", path_of(request->target));
	put_text(json, "url.scheme", span->https ? "https" : "http");
	put_host(json, span->texts[SPAN_HOST]);
	put_slice(json, "network.protocol.version", version_of(request->protocol));
	put_text(json, "client.address", span->texts[SPAN_CLIENT]);
	if (span->client_port)
		put_number(json, "client.port", span->client_port);
	put_text(json, "user_agent.original", span->texts[SPAN_AGENT]);
	if (span->status)
		put_number(json, "http.response.status_code", (uint64_t)span->status);
	snprintf(status, sizeof(status), "%d", span->status);
	if (span->status >= 500 || !span->status)
		put_text(json, "error.type", span->status ? status : "cut_off");
	put_text(json, "sweet.pool", span->texts[SPAN_POOL]);
	json_close(json, ']');
}

/* --- spans ---------------------------------------------------------------------------- */

static void put_head(struct json *json, const char *trace, const char *id, const char *parent)
{
	json_open(json, NULL, '{');
	json_text(json, "traceId", trace);
	json_text(json, "spanId", id);
	if (*parent)
		json_text(json, "parentSpanId", parent);
	json_number(json, "flags", FLAG_SAMPLED);
}

static void put_times(struct json *json, const char *name, unsigned kind, uint64_t from,
		      uint64_t to)
{
	json_text(json, "name", name);
	json_number(json, "kind", kind);
	json_id(json, "startTimeUnixNano", from);
	json_id(json, "endTimeUnixNano", to);
}

static void put_part(struct json *json, const struct span *span, const char *name, uint64_t from,
		     uint64_t to, uint64_t ahead_ns, struct random_id *ids)
{
	char id[SPAN_ID_DIGITS + 1] = "";

	/* What did not end before the span ended with it. */
	if (!to || to > span->ended_ns)
		to = span->ended_ns;
	if (!from || from > to)
		return;
	random_id_write(id, random_id_next(ids) | 1, SPAN_ID_DIGITS);
	put_head(json, span->trace, id, span->id);
	put_times(json, name, KIND_INTERNAL, from + ahead_ns, to + ahead_ns);
	json_close(json, '}');
}

void span_json_begin(struct json *json, const char *service)
{
	*json = (struct json){.layout = JSON_DENSE};
	json_open(json, NULL, '{');
	json_open(json, "resourceSpans", '[');
	json_open(json, NULL, '{');
	json_open(json, "resource", '{');
	json_open(json, "attributes", '[');
	put_text(json, "service.name", service);
	json_close(json, ']');
	json_close(json, '}');
	json_open(json, "scopeSpans", '[');
	json_open(json, NULL, '{');
	json_open(json, "scope", '{');
	json_text(json, "name", "sweet");
	json_text(json, "version", PACKAGE_VERSION);
	json_close(json, '}');
	json_open(json, "spans", '[');
}

void span_json_add(struct json *json, const struct span *span, uint64_t ahead_ns,
		   struct random_id *ids)
{
	const char *line = span->texts[SPAN_LINE] ? span->texts[SPAN_LINE] : "";
	struct access_request request;
	const char *method;

	access_request_split(&request, (struct slice){line, strlen(line)});
	method = known_method(request.method);
	put_head(json, span->trace, span->id, span->parent);
	put_times(json, method ? method : "HTTP", KIND_SERVER, span->began_ns + ahead_ns,
		  span->ended_ns + ahead_ns);
	put_attributes(json, span, &request, method);
	if (span->status >= 500) {
		json_open(json, "status", '{');
		json_number(json, "code", STATUS_ERROR);
		json_close(json, '}');
	}
	json_close(json, '}');
	if (!span->ready_ns)
		return;
	put_part(json, span, "queue", span->ready_ns, span->submitted_ns, ahead_ns, ids);
	put_part(json, span, "program", span->submitted_ns, span->answered_ns, ahead_ns, ids);
	put_part(json, span, "send", span->responded_ns, span->ended_ns, ahead_ns, ids);
}

void span_json_end(struct json *json)
{
	static const char ends[] = "]}]}]}";

	for (const char *end = ends; *end; end++)
		json_close(json, *end);
}
