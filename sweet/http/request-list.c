/* SPDX-License-Identifier: MIT */
/*
 * request-list.c - see request-list.h.  No state: any thread may call it.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/scan.h"
#include "base/slice.h"
#include "base/syntax.h"
#include "http/field.h"
#include "http/request-internal.h"
#include "http/request-list.h"
#include "http/request.h"

static char *put(char *at, struct slice text)
{
	/* The pointer of an empty slice may be NULL. */
	if (text.length)
		memcpy(at, text.at, text.length);
	return at + text.length;
}

char *request_list_put(char *at, struct slice name, struct slice value)
{
	const uint32_t lengths[] = {(uint32_t)name.length, (uint32_t)value.length};

	_Static_assert(sizeof(lengths) == REQUEST_LIST_LENGTHS, "two lengths");
	memcpy(at, lengths, sizeof(lengths));
	return put(put(at + sizeof(lengths), name), value);
}

bool request_list_next(struct slice *rest, struct slice *name, struct slice *value)
{
	uint32_t lengths[2];
	const char *at;
	size_t left;

	if (rest->length < sizeof(lengths))
		return false;
	memcpy(lengths, rest->at, sizeof(lengths));
	at = rest->at + sizeof(lengths);
	left = rest->length - sizeof(lengths);
	if (lengths[0] > left || lengths[1] > left - lengths[0])
		return false;
	*name = (struct slice){at, lengths[0]};
	*value = (struct slice){at + lengths[0], lengths[1]};
	*rest = (struct slice){value->at + value->length, left - lengths[0] - lengths[1]};
	return true;
}

static bool is_field(struct slice name, struct slice value, const char *end)
{
	return name.length && scan_all(name, end, SYNTAX_TOKEN, scan_not_name) &&
	       scan_all(value, end, SYNTAX_VALUE, scan_not_value);
}

/* The library of a session refuses such values. */
static bool has_blanks(struct slice value)
{
	return value.length &&
	       (syntax_is_blank(value.at[0]) || syntax_is_blank(value.at[value.length - 1]));
}

int request_parse_list(struct request *request, const char *list, size_t length)
{
	struct request_framing framing = {.absolute = false};
	struct slice rest = {list, length}, name, value;
	int status;

	request_begin(request, rest, true);
	if (!request_list_next(&rest, &name, &value))
		return request_refuse(request, -400, "no method and no target");
	status = request_take_line(request, &framing, name, value);
	while (!status && request_list_next(&rest, &name, &value)) {
		if (request->header_count == REQUEST_HEADERS_MAX)
			return request_refuse(request, -431, REQUEST_TOO_MANY);
		if (!is_field(name, value, list + length))
			return request_refuse(request, -400, REQUEST_FIELD_WRONG);
		value = has_blanks(value) ? field_trim(value) : value;
		request->headers[request->header_count] = (struct request_header){name, value};
		status = request_take_field(request, &framing);
	}
	if (!status && rest.length)
		status = request_refuse(request, -400, "a malformed end of the head");
	return status ? status : request_end(request, &framing);
}

int request_parse_head(struct request *request, const char *head, size_t length, bool listed)
{
	return listed ? request_parse_list(request, head, length)
		      : request_parse(request, head, length);
}

bool request_list_is_head(const char *list, size_t length)
{
	struct slice rest = {list, length}, method, target;

	return request_list_next(&rest, &method, &target) && slice_equals(method, SLICE("HEAD"));
}
