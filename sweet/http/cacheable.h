/* SPDX-License-Identifier: MIT */
/*
 * cacheable.h - whether a dynamic response may be kept, and for how long
 * (RFC 9111, section 3), by its own header lines and the rule of its path.
 */
#ifndef SWEET_CACHEABLE_H
#define SWEET_CACHEABLE_H

#include <time.h>

#include "http/cgihead.h"

#define CACHEABLE_PURGES_MAX 8 /* lines of tags to be purged; one has room for many */

enum cacheable_mode {
	CACHEABLE_MARKED,   /* responses with X-NABC-Max-Age alone */
	CACHEABLE_OFF,	    /* none */
	CACHEABLE_RESPONSE, /* those that say for how long, in any way */
	CACHEABLE_TIME,	    /* also those that say nothing: for some seconds */
};

/* What a path's rule says; zeros are the default. */
struct cacheable_rule {
	enum cacheable_mode mode;
	uint32_t seconds; /* with CACHEABLE_TIME */
};

/* What the lines of a response say, beside what is in its head already; all of it lies there. */
struct cacheable {
	const struct cgihead *head;
	uint32_t age;		    /* seconds that it has been kept by others already */
	bool has_age;		    /* it says so */
	struct slice expires, date; /* without bytes: none */
	struct slice etag, modified;
	struct slice purges[CACHEABLE_PURGES_MAX]; /* values of X-NABC-Purge */
	unsigned purge_count;
};

/* head stays as long as what is read of it. */
void cacheable_read(struct cacheable *said, const struct cgihead *head);

struct cacheable_terms {
	uint32_t fresh; /* seconds; 0: not to be kept */
	uint32_t stale; /* seconds behind those, while a new one is fetched */
	uint32_t age;	/* seconds, by Age or by Date, when it came */
	bool shared;	/* also for who has shown a password */
};

/*
 * authorized: the request had Authorization.  It was GET; now: the time of the
 * day when the head came.
 */
struct cacheable_terms cacheable_judge(const struct cacheable *said, struct cacheable_rule rule,
				       bool authorized, time_t now);

/* Splits the next tag off a line's value: they stand between blanks and commas. */
bool cacheable_tag(struct slice *rest, struct slice *tag);

#endif
