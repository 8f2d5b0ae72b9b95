/* SPDX-License-Identifier: MIT */
/*
 * cache-validate.c - see cache-validate.h.
 */
#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <nabc.h>

#include "backend/cache-validate.h"
#include "base/slice.h"
#include "http/field.h"
#include "http/request.h"
#include "respcache/respcache.h"

bool cache_validate_ask(struct request *request, const struct respcache_view *view,
			char date[DATE_LENGTH])
{
	struct request_header *header = &request->headers[request->header_count];

	if (request->header_count == REQUEST_HEADERS_MAX)
		return false;
	if (view->etag.length) {
		*header = (struct request_header){SLICE("If-None-Match"), view->etag};
	} else {
		date_format(view->modified, date);
		*header = (struct request_header){SLICE("If-Modified-Since"),
						  (struct slice){date, DATE_LENGTH}};
	}
	request->header_count++;
	return true;
}

/* RFC 9111, section 3.2. */
static bool stays(struct slice name)
{
	static const struct slice names[] = {SLICE_OF("Content-Encoding"), SLICE_OF("Content-Type"),
					     SLICE_OF("Content-Range"), SLICE_OF("Content-Length")};

	return slice_is_one_of(name, names, G_N_ELEMENTS(names));
}

static bool has(struct slice lines, struct slice wanted)
{
	struct slice name, line;

	while (lines.length && field_line(&lines, &name, &line))
		if (slice_same(name, wanted))
			return true;
	return false;
}

static void add(GString *result, struct slice line)
{
	g_string_append_len(result, line.at, (gssize)line.length);
	g_string_append(result, "\r\n");
}

char *cache_validate_merge(struct slice stored, struct slice lines, size_t *length)
{
	GString *result = g_string_sized_new(stored.length + lines.length);
	struct slice rest = stored, name, line;

	while (rest.length && field_line(&rest, &name, &line))
		if (stays(name) || !has(lines, name))
			add(result, line);
	rest = lines;
	while (rest.length && field_line(&rest, &name, &line))
		if (!stays(name))
			add(result, line);
	*length = result->len;
	return g_string_free(result, FALSE);
}
