/* SPDX-License-Identifier: MIT */
/*
 * cache-store.h - what a program's response does to the response cache: it is stored, or it purges
 * entries.
 *
 * A transaction whose response can be stored, or for which other requests wait, has a struct
 * cache_store from cache-lookup.c.  The protocols pass head and body here; for all other
 * transactions these calls do almost nothing.  They run on the transaction's thread.
 */
#ifndef SWEET_CACHE_STORE_H
#define SWEET_CACHE_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "program/cacheable.h"
#include "respcache/respcache.h"

struct NC_hold;
struct NC_range;
struct cgihead;
struct request;
struct respcache_entry;
struct respcache_flight;
struct scope;
struct transaction;

/* Returns the rule for responses of the path. */
struct cacheable_rule cache_store_rule(const struct scope *scope);

/* The transaction now has to end the flight. */
void cache_store_flight(struct transaction *transaction, struct respcache_flight *flight);

/*
 * With the flight, the transaction asks whether the entry, whose units are held, has changed; it
 * puts the entry back. client_has_it: its client knows that response.
 */
void cache_store_outdated(struct transaction *transaction, struct respcache_entry *entry,
			  bool client_has_it);

/* Returns that entry; NULL: there is none. *client_has_it may be changed. */
const struct respcache_view *cache_store_validated(const struct transaction *transaction,
						   bool *client_has_it);

/* The request will change the resource at its URL if the response reports success. */
void cache_store_change(struct transaction *transaction, const struct request *request);

/*
 * Takes the head as the program wrote it, including fields meant for this server; call it after
 * call_answer(), when transaction->head is complete.  NULL: the head is invalid.
 */
void cache_store_head(struct transaction *transaction, const struct cgihead *head);

/* Does the same for the header lines of a worker. */
void cache_store_lines(struct transaction *transaction, int status, struct slice lines);

/*
 * Takes the whole body, of which the caller holds each range.  stay: a bit for each unit that its
 * program keeps.
 */
void cache_store_body(struct transaction *transaction, const struct NC_range *ranges,
		      const struct NC_hold *holds, unsigned count, uint64_t stay);

/* Take the body in parts: ranges of units that the caller holds, or bytes; then its end. */
void cache_store_part(struct transaction *transaction, const struct NC_range *ranges,
		      const struct NC_hold *holds, unsigned count);
void cache_store_bytes(struct transaction *transaction, struct slice bytes);
void cache_store_end(struct transaction *transaction);

/* There is no response to store.  May be called again. */
void cache_store_drop(struct transaction *transaction, enum respcache_failure failure);

#endif
