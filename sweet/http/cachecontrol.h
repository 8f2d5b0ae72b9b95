/* SPDX-License-Identifier: MIT */
/*
 * cachecontrol.h - what a response says about caching: Cache-Control (RFC 9111,
 * section 5.2; RFC 5861) and Vary (RFC 9110, section 12.5.5).
 */
#ifndef SWEET_CACHECONTROL_H
#define SWEET_CACHECONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

#define CACHECONTROL_SECONDS_MAX 2147483648u /* longer times are clamped */
#define CACHECONTROL_UNSAID UINT32_MAX

struct cachecontrol {
	bool no_store;
	bool no_cache;
	bool is_private;
	bool is_public;
	bool no_transform;
	bool must_revalidate; /* or proxy-revalidate, which means the same to a shared cache */
	/* Seconds, or CACHECONTROL_UNSAID. */
	uint32_t max_age;
	uint32_t s_maxage;
	uint32_t stale_while_revalidate;
};

/* Sets everything to absent. */
void cachecontrol_init(struct cachecontrol *control);

/*
 * Adds the directives of one field; several lines add up.  Of a repeated directive
 * the shorter time counts; an invalid time is 0; a directive for certain fields
 * only (private="Set-Cookie") counts for all.  A quoted string that does not end
 * means no_store, because it may hide directives.
 */
void cachecontrol_add(struct cachecontrol *control, struct slice value);

/* Returns the seconds for which a shared cache may serve the response without revalidation. */
uint32_t cachecontrol_lifetime(const struct cachecontrol *control);

/*
 * Returns the seconds after that during which it may serve the response while it
 * revalidates.  If both are 0, it may not store it.
 */
uint32_t cachecontrol_grace(const struct cachecontrol *control);

#define CACHECONTROL_VARY_MAX 256 /* bytes of names */

struct cachecontrol_vary {
	bool anything;	 /* "*", malformed, or too long: matches no other request */
	uint16_t length; /* bytes of names */
	char names[CACHECONTROL_VARY_MAX]; /* lower case, each ended by a NUL, all different */
};

/* Adds the names of one field; zeros: no names. */
void cachecontrol_vary_add(struct cachecontrol_vary *vary, struct slice value);

#endif
