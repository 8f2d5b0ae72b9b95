/* SPDX-License-Identifier: MIT */
/*
 * fuzz-cgihead.c - the head of a program's response (sweet/program/cgihead.c), the part
 * of it that a client gets (response.c), and whether it may be cached (cacheable.c).
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/slice.h"
#include "http/cachecontrol.h"
#include "program/cacheable.h"
#include "program/cgihead.h"
#include "http/fields.h"
#include "http/response.h"

#include "fuzz.h"

#define NOW 1700000000

static size_t check_cuts(const char *data, size_t length)
{
	size_t whole = cgihead_length(data, length, 0), seen = 0, at = 0, found = 0;

	MUST(whole <= length);
	while (at < length && !found) {
		at += 1 + ((unsigned char)data[at] & 15);
		if (at > length)
			at = length;
		found = cgihead_length(data, at, seen);
		seen = at;
	}
	MUST(found == whole);
	return whole;
}

static void check_fields(const struct cgihead *head)
{
	MUST(head->status >= 200 && head->status <= 599);
	MUST(head->length <= INT64_MAX);
	MUST(head->unit_offset <= INT64_MAX && head->unit_length <= INT64_MAX);
	MUST(head->unit || (!head->unit_offset && !head->has_unit_length));
	for (size_t i = 0; i < head->location.length; i++)
		MUST((unsigned char)head->location.at[i] > 0x20 && head->location.at[i] != 0x7f);
	if (head->local_redirect)
		MUST(head->location.length && head->location.at[0] == '/' && !head->unit);
	MUST(head->vary.length <= CACHECONTROL_VARY_MAX);
	MUST(head->vary.length == 0 || head->vary.names[head->vary.length - 1] == '\0');
}

/* Checks that nothing in it ends the head, splits a line, or is reserved for the server. */
static void check_sent(const char *lines, size_t length)
{
	struct slice rest = {lines, length};
	struct field field;

	while (rest.length) {
		const char *before = rest.at;

		MUST(field_next(&rest, &field));
		MUST(!field_is_withheld(&field));
		MUST(field.line.at == before &&
		     memcmp(field.line.at + field.line.length, "\r\n", 2) == 0);
		MUST(rest.at == field.line.at + field.line.length + 2);
	}
}

static void check_filter(const struct cgihead *head)
{
	/* The end of a line may become longer. */
	size_t room = 2 * head->lines.length + 2;
	char *out = malloc(room);
	struct response_facts facts;
	long length;

	MUST(out);
	length = response_filter_headers(head->lines, out, room, &facts);
	/* The bound of call_take_lines(). */
	MUST(length >= 0 && (size_t)length <= head->lines.length + head->lines.length / 3);
	MUST(facts.has_type == head->has_type);
	check_sent(out, (size_t)length);
	/* If it does not fit, nothing is cut off. */
	MUST(length == 0 ||
	     response_filter_headers(head->lines, out, (size_t)length - 1, &facts) == -1);
	free(out);
}

static void check_cacheable(const struct cgihead *head, unsigned choice)
{
	struct cacheable_rule rule = {.mode = (enum cacheable_mode)(choice % 4), .seconds = 60};
	struct cacheable_terms terms;
	struct cacheable said;
	struct slice tags = head->tag, tag;

	cacheable_read(&said, head);
	MUST(said.purge_count <= CACHEABLE_PURGES_MAX);
	terms = cacheable_judge(&said, rule, choice & 4, NOW);
	MUST(terms.fresh <= CACHECONTROL_SECONDS_MAX);
	/* A response that must not be cached is never served from the cache. */
	if (rule.mode == CACHEABLE_OFF)
		MUST(terms.fresh == 0);
	if (rule.mode != CACHEABLE_MARKED && head->control.no_store &&
	    head->max_age == CACHECONTROL_UNSAID)
		MUST(terms.fresh == 0);
	while (cacheable_tag(&tags, &tag))
		MUST(tag.length > 0 && tag.at >= head->tag.at &&
		     tag.at + tag.length <= head->tag.at + head->tag.length);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t length = check_cuts((const char *)data, size);
	char *text = exact_copy(data, length ? length : size);
	struct cgihead head;

	/* Without an end as well: those are the lines of a worker. */
	if (!cgihead_parse(&head, (struct slice){text, length ? length : size})) {
		check_fields(&head);
		check_filter(&head);
		for (unsigned choice = 0; choice < 8; choice++)
			check_cacheable(&head, choice);
	}
	free(text);
	return 0;
}
