/* SPDX-License-Identifier: MIT */
/*
 * conditional.c - see conditional.h.  No state, no allocation: any thread may call
 * it; the caller owns the conditions.
 */
#include <assert.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>

#include "base/date.h"
#include "base/slice.h"
#include "http/conditional.h"
#include "http/etag.h"
#include "http/request.h"

static_assert(CONDITIONS_TEXT_MAX <= USHRT_MAX, "places in the text fit");

static const char *const names[CONDITION_COUNT] = {
	[CONDITION_MATCH] = "If-Match",
	[CONDITION_UNMODIFIED_SINCE] = "If-Unmodified-Since",
	[CONDITION_NONE_MATCH] = "If-None-Match",
	[CONDITION_MODIFIED_SINCE] = "If-Modified-Since",
	[CONDITION_IF_RANGE] = "If-Range",
	[CONDITION_RANGE] = "Range",
};

static bool has(const struct conditions *conditions, enum condition which)
{
	return conditions->present & 1u << which;
}

struct slice conditions_value(const struct conditions *conditions, enum condition which)
{
	return (struct slice){conditions->text + conditions->start[which],
			      conditions->length[which]};
}

static bool append(struct conditions *conditions, enum condition which, const char *at,
		   size_t length)
{
	if (length > (size_t)(CONDITIONS_TEXT_MAX - conditions->used))
		return false;
	memmove(conditions->text + conditions->used, at, length);
	conditions->used += (unsigned short)length;
	conditions->length[which] += (unsigned short)length;
	return true;
}

static bool add(struct conditions *conditions, enum condition which, struct slice value)
{
	struct slice before = {0};

	if (has(conditions, which))
		before = conditions_value(conditions, which);
	conditions->present |= 1u << which;
	conditions->start[which] = conditions->used;
	conditions->length[which] = 0;
	if (before.at && (!append(conditions, which, before.at, before.length) ||
			  !append(conditions, which, ", ", 2)))
		return false;
	return append(conditions, which, value.at, value.length);
}

bool conditions_take(struct conditions *conditions, const struct request *request)
{
	conditions->any = request->conditional;
	if (!conditions->any)
		return true;
	conditions->present = 0;
	conditions->used = 0;
	for (unsigned i = 0; i < request->header_count; i++) {
		const struct request_header *header = &request->headers[i];

		for (unsigned which = 0; which < CONDITION_COUNT; which++)
			if (slice_is(header->name, names[which]) &&
			    !add(conditions, which, header->value))
				return false;
	}
	return true;
}

static bool matches(const struct conditions *conditions, enum condition which,
		    const struct representation *representation, bool strong)
{
	return etag_listed(conditions_value(conditions, which), representation->etag, strong);
}

/* Ignores an invalid date. */
static bool has_date(const struct conditions *conditions, enum condition which, time_t now,
		     time_t *when)
{
	return has(conditions, which) && date_parse(conditions_value(conditions, which), now, when);
}

/*
 * If-Range is one tag or one date, and must guarantee identical bytes.  A weak tag
 * does not.  A date does only if it equals ours and its second is over, because the
 * file may have had other bytes earlier in that second; and no date of a file whose time is in the
 * future, since that was made when the file was looked at.
 */
static bool range_applies(const struct conditions *conditions,
			  const struct representation *representation, time_t now)
{
	struct slice value;
	time_t when;

	if (!has(conditions, CONDITION_IF_RANGE))
		return true;
	value = conditions_value(conditions, CONDITION_IF_RANGE);
	if (value.length == representation->etag.length &&
	    memcmp(value.at, representation->etag.at, value.length) == 0)
		return true;
	return !representation->weak_date && date_parse(value, now, &when) &&
	       when == representation->modified && when < now;
}

void conditions_ignore_dated_range(struct conditions *conditions)
{
	struct slice value;

	if (!conditions->any || !has(conditions, CONDITION_IF_RANGE))
		return;
	value = conditions_value(conditions, CONDITION_IF_RANGE);
	if (!value.length || value.at[0] != '"')
		conditions->present &= ~(1u << CONDITION_RANGE);
}

bool conditions_name(const struct conditions *conditions, struct slice etag)
{
	static const enum condition which[] = {CONDITION_IF_RANGE, CONDITION_MATCH};

	for (unsigned i = 0; conditions->any && i < sizeof(which) / sizeof(which[0]); i++)
		if (has(conditions, which[i]) &&
		    etag_listed(conditions_value(conditions, which[i]), etag, true))
			return true;
	return false;
}

enum condition_verdict conditions_evaluate(const struct conditions *conditions, bool head_only,
					   const struct representation *representation, time_t now)
{
	time_t when;

	if (has(conditions, CONDITION_MATCH)) {
		if (!matches(conditions, CONDITION_MATCH, representation, true))
			return CONDITION_FAILED;
	} else if (has_date(conditions, CONDITION_UNMODIFIED_SINCE, now, &when) &&
		   representation->modified > when) {
		return CONDITION_FAILED;
	}
	if (has(conditions, CONDITION_NONE_MATCH)) {
		if (matches(conditions, CONDITION_NONE_MATCH, representation, false))
			return CONDITION_NOT_MODIFIED;
	} else if (has_date(conditions, CONDITION_MODIFIED_SINCE, now, &when) &&
		   representation->modified <= when) {
		return CONDITION_NOT_MODIFIED;
	}
	/* Ranges are defined for GET only (RFC 9110, section 14.2). */
	if (!head_only && has(conditions, CONDITION_RANGE) &&
	    range_applies(conditions, representation, now))
		return CONDITION_PROCEED;
	return CONDITION_PROCEED_WHOLE;
}
