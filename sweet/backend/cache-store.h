/* SPDX-License-Identifier: MIT */
/*
 * cache-store.h - what becomes of a gateway's answer in the response cache: it is
 * kept, or it purges what was.
 *
 * A transaction whose answer others may have, or wait for, has a struct
 * cache_store from cache-lookup.c.  The protocols tell of head and body here; for all
 * other transactions these calls do next to nothing.  One thread.
 */
#ifndef SWEET_CACHE_STORE_H
#define SWEET_CACHE_STORE_H

#include "core/transaction.h"
#include "respcache/respcache.h"

/* The flight is the transaction's to end now. */
void cache_store_flight(struct transaction *transaction, struct respcache_flight *flight);

/* The request changes what is at its URL, if the program says that it did. */
void cache_store_change(struct transaction *transaction, const struct request *request);

/*
 * The head as the program wrote it, with the fields that are this server's;
 * after call_answer(), while head has what is sent.  NULL: what it wrote makes
 * no head.
 */
void cache_store_head(struct transaction *transaction, const struct cgihead *head);

/* The same of a worker's lines. */
void cache_store_lines(struct transaction *transaction, int status, struct slice lines);

/* All of the body, with a hold of the caller's for each range; stay: a bit of each range whose unit is to be had again. */
void cache_store_body(struct transaction *transaction, const struct NC_range *ranges,
		      const struct NC_hold *holds, unsigned count, uint64_t stay);

/* Or it comes in parts of units, which the caller holds, or as bytes, and ends. */
void cache_store_part(struct transaction *transaction, const struct NC_range *ranges,
		      const struct NC_hold *holds, unsigned count);
void cache_store_bytes(struct transaction *transaction, struct slice bytes);
void cache_store_end(struct transaction *transaction);

/* There is no such answer, or no more of it.  May be called again and again. */
void cache_store_drop(struct transaction *transaction, enum respcache_failure failure);

#endif
