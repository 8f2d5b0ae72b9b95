/* SPDX-License-Identifier: MIT */
/*
 * trailers.c - see trailers.h.  No state, no allocation.
 */
#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"
#include "http/fields.h"
#include "http/response.h"
#include "http/trailers.h"

/* RFC 9110, section 6.5.1: framing, routing, controls, authentication, and how to read the body. */
static const field_set early =
	FIELD_BIT(FIELD_AGE) | FIELD_BIT(FIELD_VARY) | FIELD_BIT(FIELD_EXPIRES) |
	FIELD_BIT(FIELD_LOCATION) | FIELD_BIT(FIELD_SET_COOKIE) | FIELD_BIT(FIELD_RETRY_AFTER) |
	FIELD_BIT(FIELD_CONTENT_TYPE) | FIELD_BIT(FIELD_CACHE_CONTROL) |
	FIELD_BIT(FIELD_CONTENT_RANGE) | FIELD_BIT(FIELD_CONTENT_ENCODING) |
	FIELD_BIT(FIELD_CONTENT_LOCATION) | FIELD_BIT(FIELD_WWW_AUTHENTICATE);

static const field_set digests = FIELD_BIT(FIELD_DIGEST) | FIELD_BIT(FIELD_CONTENT_MD5) |
				 FIELD_BIT(FIELD_REPR_DIGEST) | FIELD_BIT(FIELD_CONTENT_DIGEST) |
				 FIELD_BIT(FIELD_ETAG);

static bool may_follow(const struct field *field, bool coded)
{
	static const struct slice names[] = {
		SLICE_OF("Authorization"),
		SLICE_OF("Content-Disposition"),
		SLICE_OF("Content-Language"),
		SLICE_OF("Cookie"),
		SLICE_OF("Expect"),
		SLICE_OF("Host"),
		SLICE_OF("Max-Forwards"),
		SLICE_OF("Pragma"),
		SLICE_OF("Range"),
		SLICE_OF("Set-Cookie2"),
		SLICE_OF("Warning"),
	};

	if (field_is_in(field, early) || (coded && field_is_in(field, digests)))
		return false;
	return field->id != FIELD_OTHER ||
	       !slice_is_one_of(field->name, names, sizeof(names) / sizeof(names[0]));
}

long trailers_filter(struct slice lines, bool coded, char *out, size_t out_size)
{
	struct response_facts facts;
	long length = response_filter_headers(lines, out, out_size, &facts);
	struct slice rest = {out, length > 0 ? (size_t)length : 0};
	struct field field;
	char *at = out;

	if (length < 0)
		return -1;
	/* No line becomes longer, or is written before it is read. */
	while (field_next(&rest, &field))
		if (may_follow(&field, coded))
			at = field_write(&field, at);
	return at - out;
}
