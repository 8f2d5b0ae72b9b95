/* SPDX-License-Identifier: MIT */
/*
 * cachecontrol.c - see cachecontrol.h.  No state, no allocation: any thread may
 * call it.
 *
 * An error is read as "do not store": an additional request to the worker is slow,
 * but another user's page is a leak.
 */

#include <stdbool.h>
#include <string.h>

#include "base/syntax.h"
#include "http/cachecontrol.h"
#include "http/field.h"

void cachecontrol_init(struct cachecontrol *control)
{
	*control = (struct cachecontrol){
		.max_age = CACHECONTROL_UNSAID,
		.s_maxage = CACHECONTROL_UNSAID,
		.stale_while_revalidate = CACHECONTROL_UNSAID,
	};
}

/* Returns true if a quoted string does not end: it may have swallowed directives. */
static bool is_open(struct slice value)
{
	bool quoted = false;

	for (size_t i = 0; i < value.length; i++) {
		if (quoted && value.at[i] == '\\')
			i++;
		else if (value.at[i] == '"')
			quoted = !quoted;
	}
	return quoted;
}

/* Seconds may be quoted, although senders should not do that (RFC 9111, section 5.2). */
static void add_seconds(uint32_t *to, struct slice argument)
{
	uint64_t seconds;

	if (argument.length >= 2 && argument.at[0] == '"' &&
	    argument.at[argument.length - 1] == '"')
		argument = (struct slice){argument.at + 1, argument.length - 2};
	if (!field_number(argument, &seconds))
		seconds = 0;
	if (seconds > CACHECONTROL_SECONDS_MAX)
		seconds = CACHECONTROL_SECONDS_MAX;
	if (seconds < *to)
		*to = (uint32_t)seconds;
}

static void add_directive(struct cachecontrol *control, struct slice name, struct slice argument)
{
	if (slice_is(name, "no-store"))
		control->no_store = true;
	else if (slice_is(name, "no-cache"))
		control->no_cache = true;
	else if (slice_is(name, "private"))
		control->is_private = true;
	else if (slice_is(name, "public"))
		control->is_public = true;
	else if (slice_is(name, "no-transform"))
		control->no_transform = true;
	else if (slice_is(name, "must-revalidate") || slice_is(name, "proxy-revalidate"))
		control->must_revalidate = true;
	else if (slice_is(name, "max-age"))
		add_seconds(&control->max_age, argument);
	else if (slice_is(name, "s-maxage"))
		add_seconds(&control->s_maxage, argument);
	else if (slice_is(name, "stale-while-revalidate"))
		add_seconds(&control->stale_while_revalidate, argument);
}

void cachecontrol_add(struct cachecontrol *control, struct slice value)
{
	struct slice directive;

	control->no_store |= is_open(value);
	while (field_part(&value, ',', &directive)) {
		struct slice name = {NULL, 0};

		(void)field_part(&directive, '=', &name);
		add_directive(control, name, field_trim(directive));
	}
}

static bool is_keepable(const struct cachecontrol *control)
{
	return !control->no_store && !control->no_cache && !control->is_private;
}

uint32_t cachecontrol_lifetime(const struct cachecontrol *control)
{
	if (!is_keepable(control))
		return 0;
	if (control->s_maxage != CACHECONTROL_UNSAID)
		return control->s_maxage;
	return control->max_age != CACHECONTROL_UNSAID ? control->max_age : 0;
}

/* s-maxage forbids stale responses, as proxy-revalidate does (RFC 9111, section 5.2.2.10). */
uint32_t cachecontrol_grace(const struct cachecontrol *control)
{
	if (!is_keepable(control) || control->must_revalidate ||
	    control->s_maxage != CACHECONTROL_UNSAID ||
	    control->stale_while_revalidate == CACHECONTROL_UNSAID)
		return 0;
	return control->stale_while_revalidate;
}

static bool is_name(struct slice name)
{
	for (size_t i = 0; i < name.length; i++) {
		if (!syntax_is_token(name.at[i]))
			return false;
	}
	return true;
}

static bool is_listed(const struct cachecontrol_vary *vary, struct slice name)
{
	const char *at = vary->names;

	for (; at < vary->names + vary->length; at += strlen(at) + 1) {
		if (slice_is(name, at))
			return true;
	}
	return false;
}

static bool add_name(struct cachecontrol_vary *vary, struct slice name)
{
	if (slice_is(name, "*") || !is_name(name))
		return false;
	if (is_listed(vary, name))
		return true;
	if (name.length >= sizeof(vary->names) - vary->length)
		return false;
	for (size_t i = 0; i < name.length; i++) {
		char byte = name.at[i];

		vary->names[vary->length++] =
			byte >= 'A' && byte <= 'Z' ? (char)(byte | 0x20) : byte;
	}
	vary->names[vary->length++] = '\0';
	return true;
}

void cachecontrol_vary_add(struct cachecontrol_vary *vary, struct slice value)
{
	struct slice name;

	while (field_part(&value, ',', &name)) {
		if (name.length && !add_name(vary, name))
			vary->anything = true;
	}
}
