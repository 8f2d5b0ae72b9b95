/* SPDX-License-Identifier: MIT */
/*
 * coded-fields.c - see coded-fields.h.
 */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/slice.h"
#include "coding/coded-fields.h"
#include "coding/compress-rule.h"
#include "http/cachecontrol.h"
#include "http/etag.h"
#include "http/field.h"
#include "http/fields.h"

bool coded_fields_are_fixed(const struct fields *fields)
{
	struct cachecontrol control;

	cachecontrol_init(&control);
	for (size_t i = 0; i < fields->count; i++) {
		if (compress_rule_excludes(&fields->at[i]))
			return true;
		if (fields->at[i].id == FIELD_CACHE_CONTROL)
			cachecontrol_add(&control, fields->at[i].value);
	}
	return control.no_transform;
}

struct slice coded_fields_weaken(struct slice tag, char *out)
{
	if (etag_is_weak(tag))
		return tag;
	memcpy(out, ETAG_WEAK, 2);
	if (tag.length)
		memcpy(out + 2, tag.at, tag.length);
	return (struct slice){out, tag.length + 2};
}

void coded_fields_set_tag(struct fields *fields, struct slice tag)
{
	fields_remove(fields, FIELD_BIT(FIELD_ETAG));
	if (tag.length)
		fields_add(fields, field_of(FIELD_ETAG, tag));
}

static bool names_coding(struct slice value)
{
	struct slice part;

	while (field_part(&value, ',', &part))
		if (slice_is(part, "Accept-Encoding") || slice_is(part, "*"))
			return true;
	return false;
}

static bool varies(const struct fields *fields)
{
	for (size_t i = 0; i < fields->count; i++)
		if (fields->at[i].id == FIELD_VARY && names_coding(fields->at[i].value))
			return true;
	return false;
}

void coded_fields_set_coding(struct fields *fields, const char *token)
{
	if (!varies(fields))
		fields_add(fields, field_of(FIELD_VARY, SLICE("Accept-Encoding")));
	if (token)
		fields_add(fields,
			   field_of(FIELD_CONTENT_ENCODING, (struct slice){token, strlen(token)}));
}
