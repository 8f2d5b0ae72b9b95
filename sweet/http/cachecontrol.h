/* SPDX-License-Identifier: MIT */
/*
 * cachecontrol.h - what a response says about being kept: Cache-Control (RFC
 * 9111, section 5.2; RFC 5861) and Vary (RFC 9110, section 12.5.5).
 */
#ifndef SWEET_CACHECONTROL_H
#define SWEET_CACHECONTROL_H

#include <stdint.h>

#include "base/slice.h"

#define CACHECONTROL_SECONDS_MAX 2147483648u /* more is not told apart */
#define CACHECONTROL_UNSAID UINT32_MAX

struct cachecontrol {
	bool no_store;
	bool no_cache;
	bool is_private;
	bool is_public;
	bool must_revalidate; /* or proxy-revalidate, which is as much to a shared cache */
	/* Seconds, or CACHECONTROL_UNSAID. */
	uint32_t max_age;
	uint32_t s_maxage;
	uint32_t stale_while_revalidate;
};

/* Nothing is said. */
void cachecontrol_init(struct cachecontrol *control);

/*
 * Adds what one field says; those of several lines add up.  Of a directive
 * that is said twice the shorter time holds; a time that is none is 0; one
 * for certain fields only (private="Set-Cookie") holds for all; a quoted
 * string that does not end is no_store, as nobody knows what it swallowed.
 */
void cachecontrol_add(struct cachecontrol *control, struct slice value);

/* For how many seconds a shared cache may give the response out without asking. */
uint32_t cachecontrol_lifetime(const struct cachecontrol *control);

/* How long behind that time it may do so while it asks.  Neither: it may not keep it. */
uint32_t cachecontrol_grace(const struct cachecontrol *control);

#define CACHECONTROL_VARY_MAX 256 /* bytes of names */

struct cachecontrol_vary {
	bool anything;	 /* "*", malformed, or more than there is room for: fits no other request */
	uint16_t length; /* bytes of names */
	char names[CACHECONTROL_VARY_MAX]; /* lower case, each ended by a NUL, none twice */
};

/* Adds what one field says; zeros are none. */
void cachecontrol_vary_add(struct cachecontrol_vary *vary, struct slice value);

#endif
