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
#include "http/etag.h"
#include "http/fields.h"
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

bool cache_validate_matches(const struct respcache_view *view, struct slice lines)
{
	struct field field;

	if (!view->etag.length)
		return true;
	while (field_next(&lines, &field))
		if (field.id == FIELD_ETAG && !etag_is_same(field.value, view->etag))
			return false;
	return true;
}

char *cache_validate_merge(struct slice stored, struct slice lines, size_t *length)
{
	/*
	 * RFC 9111, section 3.2.  The tag names the stored bytes: a server that compresses its
	 * responses may have made it weak, and send a 304 with the strong one.
	 */
	static const field_set stay = FIELD_BIT(FIELD_CONTENT_ENCODING) |
				      FIELD_BIT(FIELD_CONTENT_TYPE) |
				      FIELD_BIT(FIELD_CONTENT_RANGE) |
				      FIELD_BIT(FIELD_CONTENT_LENGTH) | FIELD_BIT(FIELD_ETAG);
	struct fields fields, changed;
	char *merged = NULL;

	fields_init(&fields);
	fields_init(&changed);
	fields_read(&fields, stored);
	fields_read(&changed, lines);
	fields_replace(&fields, &changed, stay);
	*length = fields_size(&fields);
	if (!fields.failed)
		merged = g_malloc(*length + 1);
	if (merged)
		*fields_write(&fields, merged) = '\0';
	fields_free(&fields);
	fields_free(&changed);
	return merged;
}
