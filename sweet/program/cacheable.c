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
#include "http/fields.h"
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

static void add_tags(struct cacheable *said, struct slice value)
{
	if (said->tag_count < CACHEABLE_TAGS_MAX)
		said->tags[said->tag_count] = value;
	said->tag_count++;
}

/* Those that clients get: they cannot send conditions on fields that they do not receive. */
static void add_sent(struct cacheable *said, const struct field *field)
{
	if (field_options_have(&said->head->hop, field->name))
		return;
	if (field->id == FIELD_ETAG)
		said->etag = field->value;
	else
		said->modified = field->value;
}

static void add_field(struct cacheable *said, const struct field *field)
{
	switch (field->id) {
	/* Two of these count as one invalid date. */
	case FIELD_EXPIRES:
		said->expires = said->expires.length ? (struct slice){"0", 1} : field->value;
		break;
	case FIELD_DATE:
		said->date = said->date.length ? (struct slice){"0", 1} : field->value;
		break;
	case FIELD_AGE:
		add_age(said, field->value);
		break;
	case FIELD_X_NABC_PURGE:
		add_purge(said, field->value, false);
		break;
	case FIELD_X_NABC_SOFT_PURGE:
		add_purge(said, field->value, true);
		break;
	case FIELD_X_NABC_TAG:
	case FIELD_SURROGATE_KEY:
	case FIELD_CACHE_TAG:
		add_tags(said, field->value);
		break;
	case FIELD_ETAG:
	case FIELD_LAST_MODIFIED:
		add_sent(said, field);
		break;
	default:
		break;
	}
}

void cacheable_read(struct cacheable *said, const struct cgihead *head)
{
	struct slice lines = head->lines;
	struct field field;

	*said = (struct cacheable){.head = head};
	while (field_next(&lines, &field))
		add_field(said, &field);
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
