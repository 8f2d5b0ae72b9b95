/* SPDX-License-Identifier: MIT */
/*
 * cache-store.c - see cache-store.h.
 *
 * Units that their program keeps are stored by their ids: the program removes the entry when it
 * destroys one of them.  Everything else is copied once, into a unit of this server: then a worker
 * can reuse its memory, and a hit sends one range.
 */
#include <nabc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>

#include <glib.h>

#include "backend/cache-store.h"
#include "base/slice.h"
#include "config/configuration.h"
#include "core/cache-place.h"
#include "core/server.h"
#include "core/transaction.h"
#include "event/loop.h"
#include "event/piece.h"
#include "http/cachecontrol.h"
#include "http/cachekey.h"
#include "program/cacheable.h"
#include "program/cgihead.h"

#define COPY_MAX ((size_t)4 << 20) /* bytes of a body that may be copied */

struct cache_store {
	struct respcache_flight *flight; /* NULL: the request changes the resource at url */
	struct slice url;
	bool begun; /* the head is known */
	char *head; /* as the program wrote it; NULL: no lines */
	size_t head_length;
	/* What is sent without the lines of the program that has led here; NULL: none has. */
	char *own_lines;
	size_t own_length;
	int status;
	char *phrase;	   /* of it; NULL: the usual one */
	bool http;	   /* head is of an HTTP response */
	time_t came, date; /* when the head came; its Date field, or the same */
	uint64_t came_ns;
	struct cacheable_rule rule;
	GByteArray *body;		  /* NULL: no bytes yet */
	struct respcache_entry *outdated; /* to be validated; or NULL */
	bool client_has_it;
};

static struct respcache *cache_of(const struct transaction *transaction)
{
	return transaction->thread->server->responses;
}

static uint64_t now_of(const struct transaction *transaction)
{
	return loop_now_ns(transaction->thread->loop);
}

static void free_keep(struct transaction *transaction)
{
	struct cache_store *store = transaction->store;

	transaction->store = NULL;
	if (store->outdated)
		respcache_put(store->outdated);
	if (store->body)
		g_byte_array_unref(store->body);
	g_free(store->head);
	g_free(store->own_lines);
	g_free(store->phrase);
	g_free((char *)(uintptr_t)store->url.at);
	g_free(store);
}

struct cacheable_rule cache_store_rule(const struct scope *scope)
{
	return (struct cacheable_rule){.mode = (enum cacheable_mode)scope->cache_mode,
				       .seconds = scope->cache_seconds};
}

void cache_store_flight(struct transaction *transaction, struct respcache_flight *flight)
{
	struct cache_store *store = g_new0(struct cache_store, 1);

	store->flight = flight;
	store->rule = cache_store_rule(transaction->scope);
	/* What a program leads to is stored only if it states a lifetime itself. */
	if (transaction->response.accel_lines && store->rule.mode == CACHEABLE_TIME)
		store->rule.mode = CACHEABLE_RESPONSE;
	transaction->store = store;
}

void cache_store_outdated(struct transaction *transaction, struct respcache_entry *entry,
			  bool client_has_it)
{
	transaction->store->outdated = entry;
	transaction->store->client_has_it = client_has_it;
}

const struct respcache_view *cache_store_validated(const struct transaction *transaction,
						   bool *client_has_it)
{
	const struct cache_store *store = transaction->store;

	if (!store || !store->outdated)
		return NULL;
	*client_has_it = store->client_has_it;
	return respcache_view(store->outdated);
}

void cache_store_change(struct transaction *transaction, const struct request *request)
{
	char host[CACHE_PLACE_HOST_MAX], url[CACHEKEY_URL_MAX];
	size_t length = cachekey_write_url(request, cache_place_host(transaction, host), url);

	if (!length)
		return;
	transaction->store = g_new0(struct cache_store, 1);
	transaction->store->url = (struct slice){g_memdup2(url, length), length};
}

void cache_store_drop(struct transaction *transaction, enum respcache_failure failure)
{
	struct cache_store *store = transaction->store;

	if (!store)
		return;
	if (store->flight)
		respcache_give_up(store->flight, failure, now_of(transaction));
	free_keep(transaction);
}

/* --- the head --------------------------------------------------------------------------- */

/* A status that does not represent the resource, and so is not stored. */
static bool is_no_answer(int status)
{
	return status >= 500 || status == 304 || status == 206 || status == 416 || status == 412;
}

static struct cacheable_terms terms_of(const struct cache_store *store,
				       const struct cacheable *said)
{
	if (cacheable_varies_by_own(said, said->head->http))
		return (struct cacheable_terms){0};
	return cacheable_judge(said, store->rule, respcache_flight_authorized(store->flight),
			       store->came);
}

static void judge(struct transaction *transaction, const struct cacheable *said)
{
	struct cache_store *store = transaction->store;

	store->came = time(NULL);
	store->came_ns = now_of(transaction);
	store->date = transaction->response.date ? transaction->response.date : store->came;
	if (!terms_of(store, said).fresh ||
	    transaction->response.head_length > RESPCACHE_HEAD_MAX) {
		cache_store_drop(transaction, is_no_answer(said->head->status)
						      ? RESPCACHE_LOST
						      : RESPCACHE_NOT_KEPT);
		return;
	}
	store->head_length = said->head->lines.length;
	store->head = g_memdup2(said->head->lines.at, store->head_length);
	store->status = said->head->status;
	if (transaction->response.phrase_status == store->status)
		store->phrase = g_strdup(transaction->response.phrase);
	store->http = said->head->http;
	if (transaction->response.accel_lines) {
		store->own_length = transaction->response.head_length;
		store->own_lines = g_memdup2(transaction->response.head, store->own_length);
	}
	store->begun = true;
}

/* Not stored, as no request waits for it; but later requests for this URL shall be coalesced. */
static void note(struct transaction *transaction, const struct cacheable *said)
{
	const struct cacheable_rule marked = {0};

	if (transaction->store_mark && cacheable_judge(said, marked, false, 0).fresh)
		respcache_note(cache_of(transaction), transaction->store_mark, now_of(transaction));
}

void cache_store_head(struct transaction *transaction, const struct cgihead *head)
{
	struct cache_store *store = transaction->store;
	struct cacheable said;

	if (!head) {
		cache_store_drop(transaction, RESPCACHE_LOST);
		return;
	}
	cacheable_read(&said, head);
	/* Purge before the response itself is stored: it is newer than what it purges. */
	for (unsigned i = 0; i < said.purge_count; i++)
		respcache_purge_tags(cache_of(transaction), said.purges[i], said.soft[i]);
	if (!store) {
		note(transaction, &said);
	} else if (store->flight) {
		judge(transaction, &said);
	} else {
		if (head->status >= 200 && head->status < 400)
			respcache_invalidate(cache_of(transaction), store->url);
		free_keep(transaction);
	}
}

static const struct cgihead *parse(struct cgihead *head, int status, struct slice lines)
{
	*head = (struct cgihead){.max_age = CACHECONTROL_UNSAID};
	cachecontrol_init(&head->control);
	if (lines.length && cgihead_parse(head, lines))
		return NULL;
	head->status = status;
	return head;
}

void cache_store_lines(struct transaction *transaction, int status, struct slice lines)
{
	struct cgihead head;

	cache_store_head(transaction, parse(&head, status, lines));
}

/* --- the body ------------------------------------------------------------------------------ */

static void store_ranges(struct transaction *transaction, const struct NC_range *ranges,
			 const struct NC_hold *holds, unsigned count, uint64_t owned)
{
	struct cache_store *store = transaction->store;
	struct respcache_answer answer = {
		.lines = {transaction->response.head, transaction->response.head_length},
		.ranges = ranges,
		.holds = holds,
		.range_count = count,
		.owned = owned};
	const struct slice lines = {store->head, store->head_length};
	struct cacheable said;
	struct cgihead head;

	if (store->phrase)
		answer.phrase = (struct slice){store->phrase, strlen(store->phrase)};
	if (store->own_lines)
		answer.lines = (struct slice){store->own_lines, store->own_length};
	/* It was parsed successfully before. */
	if (store->http)
		(void)cgihead_read_http(&head, store->status, lines);
	else
		(void)parse(&head, store->status, lines);
	cacheable_read(&said, &head);
	answer.said = &said;
	answer.terms = terms_of(store, &said);
	answer.date = store->date;
	/* The age counts from the head, however long the body took. */
	if (answer.terms.fresh)
		(void)respcache_store(store->flight, &answer, store->came_ns);
	else
		respcache_give_up(store->flight, RESPCACHE_NOT_KEPT, now_of(transaction));
	free_keep(transaction);
}

/* Copies a range to the handle; returns false if the range cannot be read. */
static bool copy_range(NC_handle *handle, size_t at, const struct NC_range *range,
		       const struct NC_hold *hold)
{
	size_t done = 0, run;

	while (done < range->length) {
		const void *bytes = NC_data(hold, &run, range->offset + done);

		if (!bytes)
			return false;
		run = MIN(run, range->length - done);
		if (NC_write(handle, bytes, run, at + done) != (ssize_t)run)
			return false;
		done += run;
	}
	return true;
}

static uint64_t all_of(unsigned count)
{
	return count < 64 ? (UINT64_C(1) << count) - 1 : UINT64_MAX;
}

/* Inserts the filled unit and returns a range of it, with a hold; PIECE_NONE on failure. */
static struct piece finish_copy(NC_handle *handle, bool good, size_t length)
{
	struct piece copy = {0};

	if (good)
		(void)piece_insert(&copy, handle, length);
	(void)NC_free(handle);
	return copy;
}

/* Copies all ranges to one unit of this server; returns as finish_copy() does. */
static struct piece copy_ranges(const struct NC_range *ranges, const struct NC_hold *holds,
				unsigned count, size_t length)
{
	NC_handle handle;
	bool good = true;
	size_t at = 0;

	if (NC_alloc(&handle, length, 0) < 0)
		return (struct piece){0};
	for (unsigned i = 0; i < count && good; i++) {
		good = copy_range(&handle, at, &ranges[i], &holds[i]);
		at += ranges[i].length;
	}
	return finish_copy(&handle, good, length);
}

static struct piece copy_bytes(const GByteArray *bytes)
{
	NC_handle handle;
	bool good;

	if (NC_alloc(&handle, bytes->len, 0) < 0)
		return (struct piece){0};
	good = NC_write(&handle, bytes->data, bytes->len, 0) == (ssize_t)bytes->len;
	return finish_copy(&handle, good, bytes->len);
}

static void store_copy(struct transaction *transaction, struct piece copy)
{
	if (copy.kind == PIECE_NONE) {
		cache_store_drop(transaction, RESPCACHE_LOST);
		return;
	}
	store_ranges(transaction, &copy.range, &copy.hold, 1, 1);
	piece_release(&copy);
}

/* Stores units that stay by their ids, and copies of the others. */
static void store_mixed(struct transaction *transaction, const struct NC_range *ranges,
			const struct NC_hold *holds, unsigned count, uint64_t stay)
{
	struct NC_range mixed[RESPCACHE_RANGES_MAX] = {0};
	struct NC_hold mixed_holds[RESPCACHE_RANGES_MAX] = {0};
	uint64_t owned = 0;

	for (unsigned i = 0; i < count; i++) {
		struct piece copy = piece_range(ranges[i], holds[i]);
		bool stays = stay & UINT64_C(1) << i;

		if (!stays)
			copy = copy_ranges(&ranges[i], &holds[i], 1, ranges[i].length);
		mixed[i] = copy.range;
		mixed_holds[i] = copy.hold;
		if (stays)
			continue;
		if (copy.kind == PIECE_NONE)
			break;
		owned |= UINT64_C(1) << i;
	}
	if (owned == (~stay & all_of(count))) {
		store_ranges(transaction, mixed, mixed_holds, count, owned);
	} else {
		cache_store_drop(transaction, RESPCACHE_LOST);
		for (unsigned i = 0; i < count; i++)
			if (owned & UINT64_C(1) << i)
				(void)NC_destroy(NULL, mixed[i].id);
	}
	for (unsigned i = 0; i < count; i++)
		if (owned & UINT64_C(1) << i)
			(void)NC_release(&mixed_holds[i]);
}

/* Whether the cache needs the body. */
static bool wants_body(const struct transaction *transaction)
{
	return transaction->store && transaction->store->begun;
}

void cache_store_body(struct transaction *transaction, const struct NC_range *ranges,
		      const struct NC_hold *holds, unsigned count, uint64_t stay)
{
	size_t length = 0, copied = 0;

	if (!wants_body(transaction))
		return;
	for (unsigned i = 0; i < count; i++) {
		length += ranges[i].length;
		copied += stay & UINT64_C(1) << i ? 0 : ranges[i].length;
	}
	if (copied > COPY_MAX || count > RESPCACHE_RANGES_MAX)
		cache_store_drop(transaction, RESPCACHE_NOT_KEPT);
	else if (copied == 0)
		store_ranges(transaction, ranges, holds, length ? count : 0, 0);
	else if (copied == length)
		store_copy(transaction, copy_ranges(ranges, holds, count, length));
	else
		store_mixed(transaction, ranges, holds, count, stay);
}

void cache_store_bytes(struct transaction *transaction, struct slice bytes)
{
	struct cache_store *store = transaction->store;

	if (!wants_body(transaction))
		return;
	if (!store->body)
		store->body = g_byte_array_new();
	if (bytes.length > COPY_MAX - store->body->len)
		cache_store_drop(transaction, RESPCACHE_NOT_KEPT);
	else
		g_byte_array_append(store->body, (const guint8 *)bytes.at, (guint)bytes.length);
}

void cache_store_part(struct transaction *transaction, const struct NC_range *ranges,
		      const struct NC_hold *holds, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		size_t done = 0, run;

		while (wants_body(transaction) && done < ranges[i].length) {
			const char *bytes = NC_data(&holds[i], &run, ranges[i].offset + done);

			if (!bytes) {
				cache_store_drop(transaction, RESPCACHE_LOST);
				return;
			}
			run = MIN(run, ranges[i].length - done);
			cache_store_bytes(transaction, (struct slice){bytes, run});
			done += run;
		}
	}
}

void cache_store_end(struct transaction *transaction)
{
	if (!wants_body(transaction))
		return;
	if (transaction->store->body && transaction->store->body->len)
		store_copy(transaction, copy_bytes(transaction->store->body));
	else
		store_ranges(transaction, NULL, NULL, 0, 0);
}
