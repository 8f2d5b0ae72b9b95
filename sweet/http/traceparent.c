/* SPDX-License-Identifier: MIT */
/*
 * traceparent.c - see traceparent.h.
 */
#include "base/slice.h"
#include "http/request.h"
#include "http/traceparent.h"

/* Only lower case is valid. */
static bool is_hex(const char *at, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!(at[i] >= '0' && at[i] <= '9') && !(at[i] >= 'a' && at[i] <= 'f'))
			return false;
	return true;
}

static bool is_zero(const char *at, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (at[i] != '0')
			return false;
	return true;
}

static bool is_valid(struct slice value)
{
	const char *at = value.at;

	if (value.length < TRACEPARENT_LENGTH || !is_hex(at, 2) || memcmp(at, "ff", 2) == 0)
		return false;
	if (value.length > TRACEPARENT_LENGTH &&
	    (memcmp(at, "00", 2) == 0 || at[TRACEPARENT_LENGTH] != '-'))
		return false;
	return at[TRACEPARENT_TRACE - 1] == '-' && at[TRACEPARENT_PARENT - 1] == '-' &&
	       at[TRACEPARENT_FLAGS - 1] == '-' &&
	       is_hex(at + TRACEPARENT_TRACE, TRACEPARENT_TRACE_LENGTH) &&
	       is_hex(at + TRACEPARENT_PARENT, TRACEPARENT_PARENT_LENGTH) &&
	       is_hex(at + TRACEPARENT_FLAGS, 2) &&
	       !is_zero(at + TRACEPARENT_TRACE, TRACEPARENT_TRACE_LENGTH) &&
	       !is_zero(at + TRACEPARENT_PARENT, TRACEPARENT_PARENT_LENGTH);
}

bool traceparent_find(const struct request *request, struct slice *value)
{
	unsigned count = 0;

	for (unsigned i = 0; i < request->header_count; i++)
		if (slice_is(request->headers[i].name, "traceparent")) {
			*value = request->headers[i].value;
			count++;
		}
	return count == 1 && is_valid(*value);
}
