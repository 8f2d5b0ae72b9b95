/* SPDX-License-Identifier: MIT */
/*
 * respcache.h - dynamic responses that are kept, as units of the cache.
 *
 * One for all threads.  An entry is a status, header lines and ranges of
 * units.  It does not hold its units: when one is destroyed or evicted, the
 * next look-up finds that out, as a hold of it fails, and the entry is gone.
 *
 * Of the requests for what is not there one becomes the fetcher; it has a
 * flight, which it must end by exactly one of the calls below, however its
 * request ends.  The others wait until then and are told by their own loops.
 *
 * Times are those of the caller's monotonic clock.  Every call may be made by
 * any thread; none blocks for longer than a short lock.
 */
#ifndef SWEET_RESPCACHE_H
#define SWEET_RESPCACHE_H

#include "event/loop.h"
#include "http/cacheable.h"
#include "http/cachekey.h"
#include "http/request.h"

#define RESPCACHE_RANGES_MAX 64u /* a bit each in a number */
#define RESPCACHE_TAGS_MAX 64u
#define RESPCACHE_HEAD_MAX 7936u /* bytes of header lines; an answer with more is not kept */

struct respcache;
struct respcache_entry;
struct respcache_flight;

struct respcache_options {
	unsigned entries; /* at most */
	size_t bytes;	  /* of their heads and keys, at most */
};

struct respcache *respcache_open(const struct respcache_options *options);

/*
 * The loops have ended, and run nothing that was posted: who waits is told by
 * the thread that ends the flight, and who was about to be, by this one.
 */
void respcache_end(struct respcache *cache);

/* No flight is left, nor anything that a look-up has given. */
void respcache_close(struct respcache *cache);

/* --- looking up ---------------------------------------------------------------------- */

enum respcache_verdict {
	RESPCACHE_PASS,	 /* not the cache's business: ask, and keep nothing */
	RESPCACHE_HIT,	 /* entry */
	RESPCACHE_STALE, /* entry, which is old; with a flight: and fetch a new one meanwhile */
	RESPCACHE_FETCH, /* flight */
	RESPCACHE_WAIT,	 /* told() comes, by the loop */
	RESPCACHE_AGAIN, /* in told() alone: look up once more */
};

/* One request's; stays where it is until it is answered. */
struct respcache_ask {
	void (*told)(struct respcache_ask *ask); /* after RESPCACHE_WAIT, with the verdict */
	struct loop *loop;
	struct cachekey_place place; /* looked at by respcache_look_up() alone */
	enum respcache_verdict verdict;
	struct respcache_entry *entry;	 /* its units held; for respcache_put() */
	struct respcache_flight *flight; /* the caller's to end */
	const struct request *request;	 /* while told() runs: a copy */
	uint64_t mark;			 /* for respcache_note() */
	/* The cache's: */
	struct loop_task task;
	struct respcache *cache;
	struct respcache_ask *next, **link; /* in a flight's line; then of those being told */
	struct respcache_copy *copy;
	unsigned waits;
};

/* ask has told, loop and place, and for the rest zeros the first time. */
enum respcache_verdict respcache_look_up(struct respcache *cache, struct respcache_ask *ask,
					 const struct request *request, struct cacheable_rule rule,
					 uint64_t now_ns);

/* An entry's, constant. */
struct respcache_view {
	int status;
	struct slice head; /* its header lines, each with CRLF, but Age and Content-Length */
	struct slice lean; /* those of them that 304 has */
	struct slice etag;
	time_t modified; /* 0: not said */
	time_t date;	 /* when it was made */
	const struct NC_range *ranges;
	const struct NC_hold
		*holds; /* one for each range, as all who were given the entry hold it */
	unsigned range_count;
	uint64_t length; /* bytes of the whole body */
};

const struct respcache_view *respcache_view(const struct respcache_entry *entry);

/* Seconds for the field Age. */
uint32_t respcache_age(const struct respcache_entry *entry, uint64_t now_ns);

/* Gives back what an ask was given. */
void respcache_put(struct respcache_entry *entry);

/* --- a flight ------------------------------------------------------------------------- */

struct respcache_answer {
	const struct cacheable *said; /* and the status, in its head */
	struct slice lines;	      /* filtered */
	struct cacheable_terms terms; /* fresh is not 0 */
	time_t date;		      /* when it was made */
	const struct NC_range *ranges;
	const struct NC_hold *holds; /* the caller's, one for each range */
	unsigned range_count;
	/* Bit of each range whose unit is this server's own, and the entry's to destroy. */
	uint64_t given;
};

/* The request that the flight was begun with. */
const struct request *respcache_flight_request(const struct respcache_flight *flight);

/* Whether it had Authorization. */
bool respcache_flight_authorized(const struct respcache_flight *flight);

/* Whether others wait for it. */
bool respcache_flight_awaited(const struct respcache_flight *flight);

/*
 * Keeps the answer, which came at now_ns, and tells those who wait.  False: it is not kept after all,
 * since it was purged meanwhile, does not fit, or memory ends; units that were
 * given are destroyed then, which their holders do not mind.  The caller holds
 * the units until this returns.
 */
bool respcache_store(struct respcache_flight *flight, const struct respcache_answer *answer,
		     uint64_t now_ns);

enum respcache_failure {
	RESPCACHE_LOST,	     /* it failed: who waits goes its own way */
	RESPCACHE_NOT_KEPT,  /* such answers are not to be kept: nobody waits for the next either */
	RESPCACHE_ABANDONED, /* its client has gone: one of those who wait asks in its place */
};

/* Nothing comes. */
void respcache_give_up(struct respcache_flight *flight, enum respcache_failure failure,
		       uint64_t now_ns);

/*
 * After RESPCACHE_PASS: the answer said that it may be kept, so the next one
 * for the same URL is.  mark: the ask's.
 */
void respcache_note(struct respcache *cache, uint64_t mark, uint64_t now_ns);

/* --- purging ---------------------------------------------------------------------------- */

/*
 * Drops what belongs to a URL, "http://host/path?query" or "/path?query" for
 * all hosts, with a '*' at its end to what begins so, wherever its requests
 * came in; else to a tag.  What is
 * being fetched at this moment is not kept either.  The entries dropped, or
 * -EINVAL: it is neither.
 */
long respcache_purge(struct respcache *cache, struct slice what);

/* The same for each tag of a list as X-NABC-Purge has it. */
void respcache_purge_tags(struct respcache *cache, struct slice list);

/*
 * The URL of those bytes (cachekey_write_url()): a request has changed
 * something there (RFC 9111, section 4.4).
 */
void respcache_invalidate(struct respcache *cache, struct slice url);

/* Counted since it was opened, but for the first two. */
struct respcache_stat {
	uint64_t entries, bytes;
	uint64_t hits;	    /* answered by a fresh entry */
	uint64_t stale;	    /* by an old one */
	uint64_t misses;    /* that became fetchers */
	uint64_t collapsed; /* that waited for one of those */
	uint64_t passed;    /* that were none of the cache's business */
	uint64_t stored;
	uint64_t purged;
	uint64_t dropped; /* to make room */
	uint64_t dead;	  /* of which a unit was destroyed or evicted */
};

void respcache_stat(struct respcache *cache, struct respcache_stat *stat);

#endif
