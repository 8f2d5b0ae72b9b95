/* SPDX-License-Identifier: MIT */
/*
 * respcache.h - the cache of dynamic responses, stored as units.
 *
 * All threads share one cache.  An entry is a status, header lines and ranges of
 * units.  It does not hold its units: if one is destroyed or evicted, the next
 * lookup notices that it cannot hold it, and drops the entry.
 *
 * Of concurrent requests that miss, one becomes the fetcher: it gets a flight,
 * which it must end with exactly one of the calls below, however its request ends.
 * The others wait until then, and get the result on their own loops.
 *
 * Times are those of the caller's monotonic clock.  Any thread may make any call;
 * none blocks for longer than a short lock.
 */
#ifndef SWEET_RESPCACHE_H
#define SWEET_RESPCACHE_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/list.h"
#include "base/slice.h"
#include "event/loop.h"
#include "http/accept.h"
#include "program/cacheable.h"
#include "http/cachekey.h"

#define RESPCACHE_RANGES_MAX 64u /* one bit each in a number */
#define RESPCACHE_TAGS_MAX 64u
#define RESPCACHE_VALIDATED_S 3600u /* how long an outdated entry waits to be validated */
#define RESPCACHE_HEAD_MAX 7936u    /* bytes of header lines; a response with more is not stored */

struct respcache;
struct respcache_entry;
struct respcache_flight;
struct compressor;
struct request;

struct respcache_options {
	unsigned entries; /* maximum */
	size_t bytes;	  /* maximum of their heads and keys */
};

struct respcache *respcache_open(const struct respcache_options *options);

/*
 * Call it when the loops have ended and run no tasks any more.  From then on, the
 * thread that ends a flight calls answered() of its waiters; this call does so for
 * pending results.
 */
void respcache_end(struct respcache *cache);

/* Call it when all flights have ended, and all results of lookups were put back. */
void respcache_close(struct respcache *cache);

/* --- lookups ------------------------------------------------------------------------- */

enum respcache_verdict {
	RESPCACHE_PASS,	 /* bypass the cache: call the program, and store nothing */
	RESPCACHE_HIT,	 /* an entry */
	RESPCACHE_STALE, /* an outdated entry; with a flight: fetch a new one meanwhile */
	RESPCACHE_FETCH, /* a flight: fetch; with an entry: ask whether that has changed */
	RESPCACHE_WAIT,	 /* answered() will be called on the loop */
	RESPCACHE_AGAIN, /* only in answered(): look up again */
};

/* The lookup of one request; must not move until it is answered. */
struct respcache_ask {
	void (*answered)(struct respcache_ask *ask); /* after RESPCACHE_WAIT, with the verdict */
	struct loop *loop;
	struct cachekey_place place; /* used by respcache_look_up() only */
	bool authorized;	     /* the client's own request was (RFC 9111, section 3.5) */
	enum respcache_verdict verdict;
	struct respcache_entry *entry;	 /* its units are held; for respcache_put() */
	struct respcache_flight *flight; /* the caller must end it */
	const struct request *request;	 /* while answered() runs: a copy */
	uint64_t mark;			 /* for respcache_note() */
	/* The cache's: */
	struct loop_task task;
	struct respcache *cache;
	struct respcache_flight *awaited; /* with the result, when it has ended */
	struct list_node node;		  /* in a flight's waiters; then in answers */
	struct respcache_copy *copy;
	unsigned waits;
};

/* Before the first call, ask has answered, loop, place and authorized set, and zeros for the rest. */
enum respcache_verdict respcache_look_up(struct respcache *cache, struct respcache_ask *ask,
					 const struct request *request, struct cacheable_rule rule,
					 uint64_t now_ns);

/* The constant content of an entry. */
struct respcache_view {
	int status;
	struct slice phrase; /* of the status; length 0: the usual one */
	struct slice head;   /* its header lines, each with CRLF, without Age and Content-Length */
	struct slice lean;   /* those of them that a 304 has */
	struct slice etag;
	time_t modified; /* 0: not stated */
	time_t date;	 /* when it was generated */
	const struct NC_range *ranges;
	const struct NC_hold
		*holds; /* one for each range, as all who were given the entry hold it */
	unsigned range_count;
	uint64_t length; /* bytes of the whole body */
	bool empty;	 /* there is none, and no error page instead */
	bool can_code;	 /* nothing forbids to send the body compressed; its type is known */
	bool varies;	 /* its Vary names Accept-Encoding, or is a variant's */
	struct slice type;
};

const struct respcache_view *respcache_view(const struct respcache_entry *entry);

/* Returns the seconds for the field Age. */
uint32_t respcache_age(const struct respcache_entry *entry, uint64_t now_ns);

/* Releases the entry of an ask. */
void respcache_put(struct respcache_entry *entry);

/* --- compressed variants ------------------------------------------------------------ */

/* Returns the codings (a bit for each) of which a variant of the entry can be made, or exists. */
unsigned respcache_codings(const struct respcache_entry *entry);

/*
 * Returns such a variant, with its units held, for respcache_put(); NULL: there is none.  It has
 * lines, an entity tag and a length of its own.
 */
struct respcache_entry *respcache_variant(struct respcache_entry *entry, enum coding coding);

/*
 * Makes it in the background, if it does not exist, and no other one of the entry is being made.
 * Close the compressor before the cache.
 */
void respcache_compress(struct respcache *cache, struct respcache_entry *entry, enum coding coding,
			struct compressor *compressor);

/* --- flights -------------------------------------------------------------------------- */

struct respcache_answer {
	const struct cacheable *said; /* also has the status, in its head */
	struct slice lines;	      /* filtered */
	struct slice phrase;	      /* of the status; length 0: the usual one */
	struct cacheable_terms terms; /* fresh is not 0 */
	time_t date;		      /* when it was generated */
	const struct NC_range *ranges;
	const struct NC_hold *holds; /* the caller's, one for each range */
	unsigned range_count;
	/* One bit for each range whose unit this server owns, and the entry destroys. */
	uint64_t owned;
};

/* Whether the request that began the flight was authorized. */
bool respcache_flight_authorized(const struct respcache_flight *flight);

/*
 * Stores the response, which arrived at now_ns, and gives it to the waiters.
 * Returns false if it is not stored, because it was purged meanwhile, exceeds a
 * limit, or memory is short; then the owned units are destroyed, which does not
 * affect their holders.  The caller must hold the units until this returns.
 */
bool respcache_store(struct respcache_flight *flight, const struct respcache_answer *answer,
		     uint64_t now_ns);

enum respcache_failure {
	RESPCACHE_LOST,	     /* it failed: waiters bypass the cache */
	RESPCACHE_NOT_KEPT,  /* its client has gone: a waiter fetches instead */
	RESPCACHE_ABANDONED, /* its client has gone: one of the waiters fetches instead */
};

/* Ends a flight without a response to store. */
void respcache_give_up(struct respcache_flight *flight, enum respcache_failure failure,
		       uint64_t now_ns);

/*
 * Call it after RESPCACHE_PASS if the response was cacheable: then the next
 * response of the URL is stored. mark: the ask's.
 */
void respcache_note(struct respcache *cache, uint64_t mark, uint64_t now_ns);

/* --- purging ---------------------------------------------------------------------------- */

/*
 * Drops the entries of a URL, "http://host/path?query" or "/path?query" for all
 * hosts, wherever their requests arrived; a '*' at the end matches all URLs with
 * that prefix.  Any other text is a tag.  Responses being fetched are not stored
 * either.  soft: makes fresh entries stale instead: until they would have expired, they answer while
 * new ones are fetched.  Returns the number of these entries, or -EINVAL if it is neither.
 */
long respcache_purge(struct respcache *cache, struct slice what, bool soft);

/* Drops, or with soft makes stale, the entries with any tag of a list as in X-NABC-Purge. */
void respcache_purge_tags(struct respcache *cache, struct slice list, bool soft);

/*
 * Drops the entries of the URL with those bytes (cachekey_write_url()), because a
 * request has changed something there (RFC 9111, section 4.4).
 */
void respcache_invalidate(struct respcache *cache, struct slice url);

/* Counters since it was opened, except the first two. */
struct respcache_stat {
	uint64_t entries, bytes;
	uint64_t hits;	    /* answered by a fresh entry */
	uint64_t stale;	    /* answered by a stale entry */
	uint64_t misses;    /* that became fetchers */
	uint64_t collapsed; /* that waited for a fetcher */
	uint64_t passed;    /* that bypassed the cache */
	uint64_t stored;
	uint64_t purged;
	uint64_t dropped; /* evicted */
	uint64_t dead;	  /* entries with a unit that was destroyed or evicted */
};

void respcache_stat(struct respcache *cache, struct respcache_stat *stat);

#endif
