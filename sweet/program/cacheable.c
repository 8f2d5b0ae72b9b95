/* SPDX-License-Identifier: MIT */
/*
 * cacheable.c - see cacheable.h.  No state, no allocation: any thread may call it.
 * In doubt, a response is not stored.
 */

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/date.h"
#include "base/slice.h"
#include "http/cachecontrol.h"
#include "program/cacheable.h"
#include "http/field.h"
#include "program/cgihead.h"

/* Of several values the first one counts (RFC 9111, section 5.1), even if it is not a number. */
static void add_age(struct cacheable *said, struct slice value)
{
	struct slice first;
	uint64_t age;

	if (said->has_age)
		return;
	said->has_age = true;
	if (field_part(&value, ',', &first) && field_number(first, &age))
		said->age =
			age < CACHECONTROL_SECONDS_MAX ? (uint32_t)age : CACHECONTROL_SECONDS_MAX;
}

static void add_purge(struct cacheable *said, struct slice value, bool soft)
{
	if (said->purge_count == CACHEABLE_PURGES_MAX)
		return;
	said->soft[said->purge_count] = soft;
	said->purges[said->purge_count++] = value;
}

static bool is_tag(struct slice name)
{
	return slice_is(name, "X-NABC-Tag") || slice_is(name, "Surrogate-Key") ||
	       slice_is(name, "Cache-Tag");
}

static void add_tags(struct cacheable *said, struct slice value)
{
	if (said->tag_count < CACHEABLE_TAGS_MAX)
		said->tags[said->tag_count] = value;
	said->tag_count++;
}

static void add_field(struct cacheable *said, struct slice name, struct slice value)
{
	/* Two of these count as one invalid date. */
	if (slice_is(name, "Expires"))
		said->expires = said->expires.length ? (struct slice){"0", 1} : value;
	else if (slice_is(name, "Date"))
		said->date = said->date.length ? (struct slice){"0", 1} : value;
	else if (slice_is(name, "Age"))
		add_age(said, value);
	else if (slice_is(name, "X-NABC-Purge"))
		add_purge(said, value, false);
	else if (slice_is(name, "X-NABC-Soft-Purge"))
		add_purge(said, value, true);
	else if (is_tag(name))
		add_tags(said, value);
	/* Clients cannot send conditions on fields that they do not receive. */
	else if (field_options_have(&said->head->hop, name))
		return;
	else if (slice_is(name, "ETag"))
		said->etag = value;
	else if (slice_is(name, "Last-Modified"))
		said->modified = value;
}

void cacheable_read(struct cacheable *said, const struct cgihead *head)
{
	struct slice lines = head->lines, name, line;

	*said = (struct cacheable){.head = head};
	while (lines.length && field_line(&lines, &name, &line))
		add_field(said, name, field_value(name, line));
}

/* Statuses that a cache may store by default (RFC 9110, section 15.1), without 206. */
static bool is_lasting(int status)
{
	switch (status) {
	case 200:
	case 203:
	case 204:
	case 300:
	case 301:
	case 308:
	case 404:
	case 405:
	case 410:
	case 414:
	case 501:
		return true;
	}
	return false;
}

/* The same, and those that it may store if the response permits it. */
static bool is_keepable(int status)
{
	return is_lasting(status) || status == 302 || status == 307;
}

static uint32_t until_expiry(const struct cacheable *said, time_t now)
{
	time_t date, expires;

	if (!date_parse(said->expires, now, &expires))
		return 0;
	if (!said->date.length || !date_parse(said->date, now, &date))
		date = now;
	if (expires <= date)
		return 0;
	return expires - date < (time_t)CACHECONTROL_SECONDS_MAX ? (uint32_t)(expires - date)
								 : CACHECONTROL_SECONDS_MAX;
}

/* A cache on the way may have omitted Age (RFC 9111, section 4.2.3). */
static uint32_t age_by(const struct cacheable *said, time_t now)
{
	time_t date;

	if (!said->date.length || !date_parse(said->date, now, &date) || date > now ||
	    now - date <= (time_t)said->age)
		return said->age;
	return now - date < (time_t)CACHECONTROL_SECONDS_MAX ? (uint32_t)(now - date)
							     : CACHECONTROL_SECONDS_MAX;
}

/* Returns the seconds of freshness by the response's standard fields, or by the rule. */
static uint32_t lifetime(const struct cacheable *said, struct cacheable_rule rule, time_t now)
{
	const struct cachecontrol *control = &said->head->control;

	if (rule.mode == CACHEABLE_MARKED || control->no_store || control->no_cache ||
	    control->is_private)
		return 0;
	if (control->max_age != CACHECONTROL_UNSAID || control->s_maxage != CACHECONTROL_UNSAID)
		return cachecontrol_lifetime(control);
	if (said->expires.length)
		return until_expiry(said, now);
	return rule.mode == CACHEABLE_TIME && is_lasting(said->head->status) ? rule.seconds : 0;
}

struct cacheable_terms cacheable_judge(const struct cacheable *said, struct cacheable_rule rule,
				       bool authorized, time_t now)
{
	const struct cgihead *head = said->head;
	bool marked = head->max_age != CACHECONTROL_UNSAID;
	struct cacheable_terms terms = {.shared = marked || head->control.is_public ||
						  head->control.s_maxage != CACHECONTROL_UNSAID};
	uint32_t seconds;

	/* A purge could not find it by all of its tags. */
	if (said->tag_count > CACHEABLE_TAGS_MAX)
		return terms;
	if (rule.mode == CACHEABLE_OFF || head->vary.anything || !is_keepable(head->status) ||
	    (authorized && !terms.shared) || (head->sets_cookie && !marked))
		return terms;
	/* The application addressed this cache alone; that overrides the standard fields. */
	seconds = marked ? head->max_age : lifetime(said, rule, now);
	terms.age = age_by(said, now);
	if (seconds <= terms.age)
		return terms;
	terms.fresh = seconds - terms.age;
	terms.stale = cachecontrol_grace(&head->control);
	return terms;
}

bool cacheable_varies_by_own(const struct cacheable *said, bool http)
{
	/* The scheme and the host are parts of the key. */
	static const char *const own[] = {"x-request-id", "traceparent", "tracestate"};
	const struct cachecontrol_vary *vary = &said->head->vary;

	for (size_t at = 0; at < vary->length; at += strlen(vary->names + at) + 1) {
		if (http && strcmp(vary->names + at, "x-forwarded-for") == 0)
			return true;
		for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
			if (strcmp(vary->names + at, own[i]) == 0)
				return true;
	}
	return false;
}

static bool separates(char byte)
{
	return byte == ' ' || byte == '\t' || byte == ',';
}

bool cacheable_tag(struct slice *rest, struct slice *tag)
{
	while (rest->length && separates(rest->at[0])) {
		rest->at++;
		rest->length--;
	}
	*tag = (struct slice){rest->at, 0};
	while (rest->length && !separates(rest->at[0])) {
		rest->at++;
		rest->length--;
		tag->length++;
	}
	return tag->length > 0;
}
