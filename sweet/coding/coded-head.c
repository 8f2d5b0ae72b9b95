/* SPDX-License-Identifier: MIT */
/*
 * coded-head.c - see coded-head.h.
 */
#include <string.h>

#include "http/cachecontrol.h"
#include "coding/coded-head.h"
#include "coding/compress-rule.h"
#include "http/field.h"

void coded_head_read(struct coded_head *head, struct slice lines)
{
	struct cachecontrol control;
	struct slice name, line;

	*head = (struct coded_head){.type = SLICE("")};
	cachecontrol_init(&control);
	while (lines.length && field_line(&lines, &name, &line)) {
		head->fixed |= compress_rule_excludes(name);
		if (slice_is(name, "Content-Type"))
			head->type = field_value(name, line);
		if (slice_is(name, "Cache-Control"))
			cachecontrol_add(&control, field_value(name, line));
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
	struct slice name, line;
	bool varies = false, tagged = false;
	char *to = out;

	while (lines.length && field_line(&lines, &name, &line)) {
		if (slice_is(name, "Vary"))
			varies |= names_coding(field_value(name, line));
		if (token && (slice_is(name, "Content-Length") || slice_is(name, "Accept-Ranges")))
			continue;
		if (weak && slice_is(name, "ETag")) {
			/* More than one is invalid, and the room is for one. */
			to = tagged ? to : put_tag(to, field_value(name, line));
			tagged = true;
			continue;
		}
		to = put(to, line);
		to = put(to, SLICE("\r\n"));
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
