/* SPDX-License-Identifier: MIT */
/*
 * resolver.h - looks up host names again and again, on threads of its own, for one loop.
 *
 * A lookup may last as long as name servers are silent: no loop waits for one, nor does the end of
 * the process, which leaves the threads behind.  If a lookup fails, the addresses of the one before
 * it stay, and the log says so once.
 */
#ifndef SWEET_RESOLVER_H
#define SWEET_RESOLVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "upstream/name-lookup.h"

#define RESOLVER_THREADS_MAX 8u /* lookups at a time */
#define RESOLVER_AGAIN_MS 1000u /* minimum from one lookup of a name to the next one */

struct loop;
struct resolver;
struct resolver_name;

/* See name_lookup(). */
typedef bool resolver_lookup(const char *host, struct name_addresses *found, char *why,
			     size_t why_size);

struct resolver_watch {
	void (*looked_up)(struct resolver_watch *watch); /* a lookup has ended */
	/* Private to resolver.c: */
	struct resolver_name *name;
	struct list_node node;
	unsigned interval_ms;
};

/* All calls are of the loop's thread. */
struct resolver *resolver_open(struct loop *loop, resolver_lookup *lookup);

/*
 * All watches must have been stopped, and the loop must not run again.  Does not wait for
 * lookups.
 */
void resolver_close(struct resolver *resolver);

/*
 * Begins to look the name up, once in interval_ms.  If another watch has the name, its addresses
 * are known at once.
 */
void resolver_watch_start(struct resolver *resolver, struct resolver_watch *watch, const char *host,
			  unsigned interval_ms);
void resolver_watch_stop(struct resolver_watch *watch);

/* Returns the last addresses; count is 0 as long as no lookup has found any. */
const struct name_addresses *resolver_addresses(const struct resolver_watch *watch);

/* Returns true if a lookup has ended. */
bool resolver_has_looked(const struct resolver_watch *watch);

/* An address does not answer: looks the name up soon. */
void resolver_hurry(struct resolver_watch *watch);

/* Before the loop runs: waits for the first lookup of each name, at most ms. */
void resolver_settle(struct resolver *resolver, unsigned ms);

#endif
