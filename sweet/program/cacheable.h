/* SPDX-License-Identifier: MIT */
/*
 * cacheable.h - decides whether a dynamic response may be stored, and for how long
 * (RFC 9111, section 3), by its header lines and the rule of its path.
 */
#ifndef SWEET_CACHEABLE_H
#define SWEET_CACHEABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/slice.h"

struct cgihead;

#define CACHEABLE_PURGES_MAX 8 /* lines with tags to purge; a line may hold several */
#define CACHEABLE_TAGS_MAX 8   /* lines with tags of the response */

enum cacheable_mode {
	CACHEABLE_MARKED,   /* only responses with X-NABC-Max-Age */
	CACHEABLE_OFF,	    /* none */
	CACHEABLE_RESPONSE, /* responses that state a lifetime in any way */
	CACHEABLE_TIME,	    /* also responses that state none: for some seconds */
};

/* The rule of a path; zeros are the default. */
struct cacheable_rule {
	enum cacheable_mode mode;
	uint32_t seconds; /* with CACHEABLE_TIME */
};

/* What a response's lines say beside its parsed head; points into the head's text. */
struct cacheable {
	const struct cgihead *head;
	uint32_t age;		    /* seconds that other caches have stored it */
	bool has_age;		    /* there is an Age field */
	struct slice expires, date; /* no bytes: absent */
	struct slice etag, modified;
	/* Values of X-NABC-Purge, and of X-NABC-Soft-Purge. */
	struct slice purges[CACHEABLE_PURGES_MAX];
	bool soft[CACHEABLE_PURGES_MAX];
	unsigned purge_count;
	/* Of X-NABC-Tag, Surrogate-Key and Cache-Tag. */
	struct slice tags[CACHEABLE_TAGS_MAX];
	unsigned tag_count; /* may be larger than the maximum: then do not store */
};

/* The head must live as long as said. */
void cacheable_read(struct cacheable *said, const struct cgihead *head);

struct cacheable_terms {
	uint32_t fresh; /* seconds; 0: do not store */
	uint32_t stale; /* further seconds, during which a new response is fetched */
	uint32_t age;	/* seconds at its arrival, by Age or by Date */
	bool shared;	/* also for requests with a password */
};

/* The request was GET; authorized: it had Authorization. now: the time when the head arrived. */
struct cacheable_terms cacheable_judge(const struct cacheable *said, struct cacheable_rule rule,
				       bool authorized, time_t now);

/*
 * Whether Vary names a field that the server sets itself, so that the program has got another value
 * than the client has sent: of all programs, or only of HTTP servers (http).
 */
bool cacheable_varies_by_own(const struct cacheable *said, bool http);

/* Splits the next tag off a line's value; blanks and commas separate tags. */
bool cacheable_tag(struct slice *rest, struct slice *tag);

#endif
