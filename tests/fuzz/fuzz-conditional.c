/* SPDX-License-Identifier: MIT */
/*
 * fuzz-conditional.c - the fields of preconditions (sweet/http/conditional.c, etag.c):
 * the copies equal the request's fields, and the verdicts obey the rules that hold for
 * any fields.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/slice.h"
#include "http/conditional.h"
#include "http/etag.h"
#include "http/request.h"

#include "fuzz.h"
#include "head.h"

#define NOW 1700000000

static const struct slice tag = SLICE_OF("\"abcdefghijklmnop\"");

static unsigned count_of(const struct request *request, const char *name)
{
	unsigned count = 0;

	for (unsigned i = 0; i < request->header_count; i++)
		count += slice_is(request->headers[i].name, name);
	return count;
}

static void check_taken(const struct conditions *conditions, const struct request *request,
			enum condition which, const char *name)
{
	const struct slice *first = request_find(request, name);
	bool present = conditions->any && (conditions->present >> which & 1);
	struct slice value;

	MUST(present == !!first);
	if (!present)
		return;
	value = conditions_value(conditions, which);
	MUST(value.at >= conditions->text &&
	     value.at + value.length <= conditions->text + conditions->used);
	MUST(value.length >= first->length && memcmp(value.at, first->at, first->length) == 0);
	MUST(count_of(request, name) > 1 || value.length == first->length);
}

static void check_verdicts(const struct conditions *conditions)
{
	const struct representation file = {.etag = tag, .modified = NOW - 1000};
	enum condition_verdict get = conditions_evaluate(conditions, false, &file, NOW);
	enum condition_verdict head = conditions_evaluate(conditions, true, &file, NOW);
	bool match = conditions->present >> CONDITION_MATCH & 1;
	bool none_match = conditions->present >> CONDITION_NONE_MATCH & 1;

	/* HEAD has no ranges, otherwise both are equal. */
	MUST(head == (get == CONDITION_PROCEED ? CONDITION_PROCEED_WHOLE : get));
	MUST(get != CONDITION_PROCEED || (conditions->present >> CONDITION_RANGE & 1));
	if (match && slice_is(conditions_value(conditions, CONDITION_MATCH), "*"))
		MUST(get != CONDITION_FAILED);
	if (none_match && slice_is(conditions_value(conditions, CONDITION_NONE_MATCH), "*"))
		MUST(get == CONDITION_NOT_MODIFIED || get == CONDITION_FAILED);
	/* Whatever matches by strong comparison also matches by weak comparison. */
	for (unsigned which = 0; which < CONDITION_COUNT; which++) {
		struct slice list;

		if (!(conditions->present >> which & 1))
			continue;
		list = conditions_value(conditions, which);
		MUST(!etag_listed(list, tag, true) || etag_listed(list, tag, false));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct conditions conditions = {.any = false};
	struct head head;

	if (!head_open(&head, "GET / HTTP/1.1\r\nHost: h\r\n", data, size, "\r\n\r\n"))
		return -1;
	if (conditions_take(&conditions, &head.request) && conditions.any) {
		check_taken(&conditions, &head.request, CONDITION_MATCH, "If-Match");
		check_taken(&conditions, &head.request, CONDITION_NONE_MATCH, "If-None-Match");
		check_taken(&conditions, &head.request, CONDITION_IF_RANGE, "If-Range");
		check_taken(&conditions, &head.request, CONDITION_RANGE, "Range");
		check_taken(&conditions, &head.request, CONDITION_MODIFIED_SINCE,
			    "If-Modified-Since");
		check_taken(&conditions, &head.request, CONDITION_UNMODIFIED_SINCE,
			    "If-Unmodified-Since");
		check_verdicts(&conditions);
	}
	head_close(&head);
	return 0;
}
