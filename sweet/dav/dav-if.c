/* SPDX-License-Identifier: MIT */
/*
 * dav-if.c - see dav-if.h.  No state; the caller owns all memory.
 */

#include <stddef.h>
#include <strings.h>

#include "dav/dav-if.h"

struct reader {
	const char *at, *end;
};

static void skip_blanks(struct reader *reader)
{
	while (reader->at < reader->end && (*reader->at == ' ' || *reader->at == '\t'))
		reader->at++;
}

static bool at(const struct reader *reader, char byte)
{
	return reader->at < reader->end && *reader->at == byte;
}

static bool take(struct reader *reader, char byte)
{
	if (!at(reader, byte))
		return false;
	reader->at++;
	return true;
}

/* Takes bytes up to the end byte, at least one, without blanks and control characters. */
static bool take_until(struct reader *reader, char end, struct slice *text)
{
	const char *begin = reader->at;

	while (reader->at < reader->end && *reader->at != end) {
		if ((unsigned char)*reader->at <= ' ' || *reader->at == 0x7f)
			return false;
		reader->at++;
	}
	*text = (struct slice){begin, (size_t)(reader->at - begin)};
	return text->length && take(reader, end);
}

/* "<URI>" */
static bool take_coded(struct reader *reader, struct slice *text)
{
	return take(reader, '<') && take_until(reader, '>', text);
}

/* "[W/"tag"]" */
static bool take_etag(struct reader *reader, struct slice *text)
{
	const char *begin;
	struct slice opaque;

	if (!take(reader, '['))
		return false;
	begin = reader->at;
	if (at(reader, 'W')) {
		reader->at++;
		if (!take(reader, '/'))
			return false;
	}
	if (!take(reader, '"'))
		return false;
	if (!take(reader, '"') && !take_until(reader, '"', &opaque))
		return false;
	*text = (struct slice){begin, (size_t)(reader->at - begin)};
	return take(reader, ']');
}

static bool take_not(struct reader *reader)
{
	if (reader->end - reader->at < 3 || strncasecmp(reader->at, "Not", 3) != 0)
		return false;
	reader->at += 3;
	skip_blanks(reader);
	return true;
}

/* The rest of a list, after its "(". */
static bool take_list(struct reader *reader, struct dav_if *parsed, struct slice resource)
{
	struct dav_if_list *list = &parsed->lists[parsed->list_count];

	if (parsed->list_count == DAV_IF_LISTS_MAX)
		return false;
	*list = (struct dav_if_list){resource, parsed->condition_count, 0};
	parsed->list_count++;
	for (skip_blanks(reader); !take(reader, ')'); skip_blanks(reader)) {
		struct dav_if_condition *condition = &parsed->conditions[parsed->condition_count];

		if (parsed->condition_count == DAV_IF_CONDITIONS_MAX)
			return false;
		condition->negated = take_not(reader);
		condition->is_etag = at(reader, '[');
		if (!(condition->is_etag ? take_etag(reader, &condition->text)
					 : take_coded(reader, &condition->text)))
			return false;
		parsed->condition_count++;
		list->count++;
	}
	return list->count > 0;
}

bool dav_if_parse(struct slice value, struct dav_if *parsed)
{
	struct reader reader = {value.at, value.at + value.length};
	struct slice resource = {NULL, 0};
	bool wants_list = true;

	parsed->list_count = parsed->condition_count = 0;
	for (skip_blanks(&reader); reader.at < reader.end; skip_blanks(&reader)) {
		if (at(&reader, '<')) {
			/* Lists with and without a tag exclude each other; a tag needs a list. */
			if (parsed->list_count && (!resource.at || wants_list))
				return false;
			if (resource.at && wants_list)
				return false;
			if (!take_coded(&reader, &resource))
				return false;
			wants_list = true;
			continue;
		}
		if (!take(&reader, '(') || !take_list(&reader, parsed, resource))
			return false;
		wants_list = false;
	}
	return !wants_list;
}

bool dav_if_evaluate(const struct dav_if *parsed,
		     bool (*holds)(struct slice resource, const struct dav_if_condition *condition,
				   void *context),
		     void *context)
{
	for (unsigned i = 0; i < parsed->list_count; i++) {
		const struct dav_if_list *list = &parsed->lists[i];
		unsigned k = 0;

		while (k < list->count) {
			const struct dav_if_condition *condition =
				&parsed->conditions[list->first + k];

			if (holds(list->resource, condition, context) == condition->negated)
				break;
			k++;
		}
		if (k == list->count)
			return true;
	}
	return false;
}
