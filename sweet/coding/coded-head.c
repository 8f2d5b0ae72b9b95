/* SPDX-License-Identifier: MIT */
/*
 * coded-head.c - see coded-head.h.
 */
#include <string.h>

#include "http/cachecontrol.h"
#include "coding/coded-head.h"
#include "coding/compress-rule.h"
#include "http/field.h"
#include "http/fields.h"

void coded_head_read(struct coded_head *head, struct slice lines)
{
	struct cachecontrol control;
	struct field field;

	*head = (struct coded_head){.type = SLICE("")};
	cachecontrol_init(&control);
	while (field_next(&lines, &field)) {
		head->fixed |= compress_rule_excludes(&field);
		if (field.id == FIELD_CONTENT_TYPE)
			head->type = field.value;
		if (field.id == FIELD_CACHE_CONTROL)
			cachecontrol_add(&control, field.value);
	}
	head->fixed |= control.no_transform;
}

static char *put(char *to, struct slice text)
{
	memcpy(to, text.at, text.length);
	return to + text.length;
}

static bool names_coding(struct slice value)
{
	struct slice part;

	while (field_part(&value, ',', &part))
		if (slice_is(part, "Accept-Encoding") || slice_is(part, "*"))
			return true;
	return false;
}

/* Equal bytes come from equal input, but not from another version of the encoder. */
static char *put_tag(char *to, struct slice tag)
{
	to = put(to, SLICE("ETag: "));
	if (tag.length < 2 || memcmp(tag.at, "W/", 2) != 0)
		to = put(to, SLICE("W/"));
	to = put(to, tag);
	return put(to, SLICE("\r\n"));
}

size_t coded_head_write(struct slice lines, bool weak, const char *token, char *out)
{
	struct field field;
	bool varies = false, tagged = false;
	char *to = out;

	while (field_next(&lines, &field)) {
		if (field.id == FIELD_VARY)
			varies |= names_coding(field.value);
		if (token && (field.id == FIELD_CONTENT_LENGTH || field.id == FIELD_ACCEPT_RANGES))
			continue;
		if (weak && field.id == FIELD_ETAG) {
			/* More than one is invalid, and the room is for one. */
			to = tagged ? to : put_tag(to, field.value);
			tagged = true;
			continue;
		}
		to = field_write(&field, to);
	}
	if (!varies)
		to = put(to, SLICE("Vary: Accept-Encoding\r\n"));
	if (token) {
		to = put(to, SLICE("Content-Encoding: "));
		to = put(to, (struct slice){token, strlen(token)});
		to = put(to, SLICE("\r\n"));
	}
	return (size_t)(to - out);
}
