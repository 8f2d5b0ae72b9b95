/* SPDX-License-Identifier: MIT */
/*
 * cache-lookup.c - see cache-lookup.h.  Runs on the transaction's thread.
 *
 * The look-up uses the transaction's scratch memory until a call to a program starts.
 */
#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <nabc.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <glib.h>

#include "backend/backend-call.h"
#include "backend/cache-store.h"
#include "backend/pool.h"
#include "base/container.h"
#include "base/decimal.h"
#include "base/slice.h"
#include "coding/compress-rule.h"
#include "config/configuration.h"
#include "config/pool-config.h"
#include "core/cache-place.h"
#include "core/request-value.h"
#include "core/server.h"
#include "core/transaction-file.h"
#include "core/transaction.h"
#include "event/loop.h"
#include "event/piece.h"
#include "gateway/cache-fill.h"
#include "gateway/cache-lookup.h"
#include "http/accept.h"
#include "http/conditional.h"
#include "http/fields.h"
#include "http/multipart.h"
#include "http/range.h"
#include "http/request.h"
#include "program/cacheable.h"
#include "program/upstream-request.h"
#include "respcache/respcache.h"

#define LINES_MAX 224 /* bytes of header lines that are added to each response */
#define VARY "Vary: Accept-Encoding\r\n"

static_assert(RESPCACHE_HEAD_MAX + LINES_MAX + sizeof(VARY) <= TRANSACTION_HEAD_MAX,
	      "a hit's head fits");

/* Lies in the transaction's scratch memory. */
struct look {
	struct respcache_ask ask;
	struct transaction *transaction;
	struct gateway_pool *pool;
	size_t skip;
	bool varies; /* the response may be sent compressed, too, which its lines do not say */
};

static_assert(sizeof(struct look) <= TRANSACTION_SCRATCH, "fits the scratch");

static struct look *look_of(struct transaction *transaction)
{
	return (struct look *)(void *)transaction->scratch;
}

static bool is_safe(const struct request *request)
{
	return request->method == METHOD_GET || request->method == METHOD_HEAD ||
	       request->method == METHOD_OPTIONS;
}

/* --- an answer that is there -------------------------------------------------------------- */

static void lookup_finish(struct transaction *transaction)
{
	respcache_put(look_of(transaction)->ask.entry);
}

/* The response is that of the entry. */
static const struct transaction_responder has_entry = {.finish = lookup_finish};

/* Writes the lines of the entry, then those of this response. */
static void write_head(struct transaction *transaction, struct slice lines, struct slice more)
{
	const struct respcache_entry *entry = look_of(transaction)->ask.entry;

	/* respcache_store() refuses longer ones. */
	assert(lines.length <= RESPCACHE_HEAD_MAX && more.length < LINES_MAX);
	memcpy(transaction->head_buffer, lines.at, lines.length);
	memcpy(transaction->head_buffer + lines.length, more.at, more.length);
	transaction->response.head = transaction->head_buffer;
	transaction->response.head_length = lines.length + more.length;
	if (look_of(transaction)->varies) {
		memcpy(transaction->head_buffer + transaction->response.head_length, VARY,
		       sizeof(VARY) - 1);
		transaction->response.head_length += sizeof(VARY) - 1;
	}
	/* Sent with Age: a cache uses the larger of both ages (RFC 9111, section 4.2.3). */
	transaction->response.date = respcache_view(entry)->date;
}

/* Writes a line whose value is a number; returns its end. */
static char *put_number(char *at, struct slice name, uint64_t number)
{
	memcpy(at, name.at, name.length);
	at = decimal_write(at + name.length, number);
	memcpy(at, "\r\n", 2);
	return at + 2;
}

static void give_whole(struct transaction *transaction, const struct respcache_view *view,
		       uint32_t age)
{
	bool no_length = view->status == 204 || (!view->range_count && !view->empty);
	char lines[LINES_MAX], *at = lines;

	transaction->response.status = view->status;
	transaction->response.length = view->length;
	transaction->response.bodiless = view->empty;
	if (view->phrase.length)
		transaction_set_phrase(transaction, view->status, view->phrase);
	if (view->range_count == 1)
		transaction->piece = piece_range(view->ranges[0], view->holds[0]);
	else
		transaction->piece = piece_ranges(view->ranges, view->range_count, view->holds,
						  view->range_count);
	if (!no_length)
		at = put_number(at, SLICE("Content-Length: "), view->length);
	at = put_number(at, SLICE("Age: "), age);
	write_head(transaction, view->head, (struct slice){lines, (size_t)(at - lines)});
}

static void give_unchanged(struct transaction *transaction, const struct respcache_view *view,
			   uint32_t age)
{
	char line[LINES_MAX];
	const char *end = put_number(line, SLICE("Age: "), age);

	transaction->response.status = 304;
	transaction->response.bodiless = true;
	write_head(transaction, view->lean, (struct slice){line, (size_t)(end - line)});
}

/* An error about the response that was selected: a cache must know by which fields. */
static void refuse(struct transaction *transaction, const struct respcache_view *view, int status,
		   struct slice more)
{
	char *at = transaction->head_buffer;

	(void)transaction_fail(transaction, status, NULL);
	at += field_filter(view->head, FIELD_BIT(FIELD_VARY), true, at);
	if (look_of(transaction)->varies) {
		memcpy(at, VARY, sizeof(VARY) - 1);
		at += sizeof(VARY) - 1;
	}
	memcpy(at, more.at, more.length);
	transaction->response.head = transaction->head_buffer;
	transaction->response.head_length = (size_t)(at - transaction->head_buffer) + more.length;
}

/* Responds with 416: the requested range does not exist. */
static void refuse_part(struct transaction *transaction, const struct respcache_view *view)
{
	char line[LINES_MAX];
	int length = snprintf(line, sizeof(line), "Content-Range: bytes */%" PRIu64 "\r\n",
			      view->length);

	refuse(transaction, view, 416, (struct slice){line, (size_t)length});
}

/* Returns false if the whole response is to be sent. */
static bool give_part(struct transaction *transaction, const struct respcache_view *view,
		      uint32_t age)
{
	const struct conditions *conditions = &transaction_file(transaction)->conditions;
	struct range_set *set = &transaction_file(transaction)->ranges;
	enum range_verdict verdict = RANGE_IGNORED;
	char place[MULTIPART_RANGE_MAX], lines[LINES_MAX];
	struct NC_range range;
	int length;

	if (view->status == 200 && conditions->present & 1u << CONDITION_RANGE)
		verdict = range_parse(conditions_value(conditions, CONDITION_RANGE), view->length,
				      set);
	if (verdict == RANGE_UNSATISFIABLE) {
		refuse_part(transaction, view);
		return true;
	}
	/* Several ranges, of the stored body or of the request, are not combined here. */
	if (verdict != RANGE_GOOD || set->count != 1 || view->range_count != 1)
		return false;
	transaction->response.status = 206;
	range = view->ranges[0];
	range.offset += (size_t)set->ranges[0].first;
	range.length = (size_t)set->ranges[0].length;
	transaction->piece = piece_range(range, view->holds[0]);
	transaction->response.length = range.length;
	multipart_content_range(set->ranges[0], view->length, place);
	length =
		snprintf(lines, sizeof(lines),
			 "Content-Length: %" PRIu64 "\r\nContent-Range: %s\r\nAge: %" PRIu32 "\r\n",
			 transaction->response.length, place, age);
	write_head(transaction, view->head, (struct slice){lines, (size_t)length});
	return true;
}

/* Compares the stored response with the conditions of the request. */
static enum condition_verdict compare(struct transaction *transaction,
				      const struct respcache_view *view)
{
	struct conditions *conditions = &transaction_file(transaction)->conditions;
	struct representation known = {.etag = view->etag, .modified = view->modified};
	bool weak = known.etag.length > 2 && known.etag.at[0] == 'W';

	/* Ignore conditions on a field that the response lacks (RFC 9110, section 13.1). */
	if (!view->modified)
		conditions->present &=
			~(1u << CONDITION_MODIFIED_SINCE | 1u << CONDITION_UNMODIFIED_SINCE);
	if (weak) {
		/* A weak entity tag matches If-None-Match only. */
		known.etag.at += 2;
		known.etag.length -= 2;
		if (conditions->present & 1u << CONDITION_IF_RANGE)
			conditions->present &= ~(1u << CONDITION_RANGE);
		conditions->present &= 1u << CONDITION_NONE_MATCH | 1u << CONDITION_MODIFIED_SINCE |
				       1u << CONDITION_RANGE;
	}
	if (!conditions->present)
		return CONDITION_PROCEED_WHOLE;
	return conditions_evaluate(conditions, transaction->head_only, &known, time(NULL));
}

/* Whether the client of a conditional request knows the response that was found. */
static bool is_known(struct transaction *transaction, const struct request *request)
{
	const struct respcache_view *view = respcache_view(look_of(transaction)->ask.entry);

	return request->conditional &&
	       conditions_take(&transaction_file(transaction)->conditions, request) &&
	       compare(transaction, view) == CONDITION_NOT_MODIFIED;
}

/* Takes the variant in the first accepted coding that exists; has the first one made. */
static void choose_variant(struct transaction *transaction, const struct request *request,
			   bool conditional)
{
	const struct compress_rule *rule = &transaction->scope->compress;
	struct conditions *conditions = &transaction_file(transaction)->conditions;
	const struct server *server = transaction->thread->server;
	struct look *look = look_of(transaction);
	struct respcache_entry *entry = look->ask.entry, *variant;
	const struct respcache_view *view = respcache_view(entry);
	unsigned codings = rule->codings & respcache_codings(entry);
	enum coding order[CODINGS];
	unsigned count;
	bool first = request->method == METHOD_GET &&
		     !(conditional && conditions->present & 1u << CONDITION_RANGE);

	if (!codings || !compress_rule_takes(rule, view->type, view->length))
		return;
	look->varies = !view->varies;
	if (conditional) {
		conditions_ignore_dated_range(conditions);
		if (conditions_name(conditions, view->etag))
			return;
	}
	count = transaction_codings(transaction, request, order);
	for (unsigned i = 0; i < count; i++) {
		if (!(codings & 1u << order[i]))
			continue;
		variant = respcache_variant(entry, order[i]);
		if (variant) {
			look->ask.entry = variant;
			look->varies = false;
			respcache_put(entry);
			return;
		}
		if (first)
			respcache_compress(server->responses, entry, order[i], server->compressor);
		first = false;
	}
}

/* Responds with the entry that was found. */
static enum respond give(struct transaction *transaction, const struct request *request)
{
	struct look *look = look_of(transaction);
	uint32_t age = respcache_age(look->ask.entry, loop_now_ns(transaction->thread->loop));
	const struct respcache_view *view = respcache_view(look->ask.entry);
	bool conditional = request->conditional && view->status == 200 &&
			   conditions_take(&transaction_file(transaction)->conditions, request);
	enum condition_verdict verdict = CONDITION_PROCEED_WHOLE;

	transaction->responder = &has_entry;
	if (transaction->scope->compress.codings) {
		choose_variant(transaction, request, conditional);
		view = respcache_view(look->ask.entry);
	}
	if (conditional)
		verdict = compare(transaction, view);
	switch (verdict) {
	case CONDITION_NOT_MODIFIED:
		give_unchanged(transaction, view, age);
		return RESPOND_NOW;
	case CONDITION_FAILED:
		refuse(transaction, view, 412, SLICE(""));
		return RESPOND_NOW;
	case CONDITION_PROCEED:
		if (give_part(transaction, view, age))
			return RESPOND_NOW;
		break;
	case CONDITION_PROCEED_WHOLE:
		break;
	}
	give_whole(transaction, view, age);
	return RESPOND_NOW;
}

/* --- an answer that is to come ---------------------------------------------------------------- */

static enum respond look_up(struct transaction *transaction);

static enum respond lookup_go_on(struct transaction *transaction, void *context)
{
	struct look *look = context;
	const struct respcache_ask *ask = &look->ask;
	enum respond respond;

	if (ask->verdict == RESPCACHE_HIT)
		return give(transaction, ask->request);
	transaction->request = ask->request;
	respond = ask->verdict == RESPCACHE_AGAIN
			  ? look_up(transaction)
			  : backend_call_start(look->pool, transaction, look->skip);
	transaction->request = NULL;
	return respond;
}

/* The request that this one waited for has finished, with a response or without. */
static void lookup_answered(struct respcache_ask *ask)
{
	struct look *look = container_of(ask, struct look, ask);
	struct transaction *transaction = look->transaction;

	if (transaction->connection) {
		transaction->owner->resume(transaction, lookup_go_on, look);
		return;
	}
	/* The client has disconnected: its address and other data are no longer valid. */
	if (ask->verdict == RESPCACHE_HIT)
		respcache_put(ask->entry);
	transaction_done(transaction);
}

/* For the log.  A hit after RESPCACHE_WAIT is said to be coalesced. */
static const char *const verdicts[] = {
	[RESPCACHE_PASS] = "pass",  [RESPCACHE_HIT] = "hit",   [RESPCACHE_STALE] = "stale",
	[RESPCACHE_FETCH] = "miss", [RESPCACHE_WAIT] = "wait", [RESPCACHE_AGAIN] = "pass"};

/*
 * By a password or a certificate of the client's own request: request-header may hide the field, or
 * make others of what they show, and programs get the user and the certificate beside the fields.
 */
static bool is_authorized(const struct transaction *transaction)
{
	return transaction->has_authorization || *transaction->remote_user ||
	       request_has_certificate(transaction);
}

/* --- the way in ------------------------------------------------------------------------------- */

static enum respond look_up(struct transaction *transaction)
{
	struct look *look = look_of(transaction);
	struct thread *thread = transaction->thread;
	struct gateway_pool *pool = look->pool;
	const struct request *request = transaction->request;
	struct respcache_flight *flight;
	enum respcache_verdict verdict;
	struct cache_place place;

	/* Not cached: caching is off, or the names are too long for a key. */
	transaction->response.cache_verdict = "pass";
	if (transaction->scope->cache_mode == CACHEABLE_OFF ||
	    !cache_place_write(&place, transaction, pool->settings))
		return backend_call_start(pool, transaction, look->skip);
	look->ask.place = place.key;
	look->ask.authorized = is_authorized(transaction);
	verdict =
		respcache_look_up(thread->server->responses, &look->ask, request,
				  cache_store_rule(transaction->scope), loop_now_ns(thread->loop));
	flight = look->ask.flight;
	transaction->response.cache_verdict = verdicts[verdict];
	switch (verdict) {
	case RESPCACHE_HIT:
		return give(transaction, request);
	case RESPCACHE_STALE:
		/* A refresh has no certificate: the program would see nobody. */
		if (flight && request_has_certificate(transaction))
			return cache_fill(pool, transaction, look->skip, flight, look->ask.entry,
					  is_known(transaction, request));
		if (flight)
			cache_fill_refresh(pool, transaction, look->skip, flight);
		return give(transaction, request);
	case RESPCACHE_FETCH:
		return cache_fill(pool, transaction, look->skip, flight, look->ask.entry,
				  look->ask.entry && is_known(transaction, request));
	case RESPCACHE_WAIT:
		return RESPOND_LATER;
	case RESPCACHE_PASS:
	case RESPCACHE_AGAIN:
		break;
	}
	transaction->store_mark = look->ask.mark;
	return backend_call_start(pool, transaction, look->skip);
}

enum respond cache_lookup(struct gateway_pool *pool, struct transaction *transaction, size_t skip)
{
	struct look *look = look_of(transaction);
	struct thread *thread = transaction->thread;

	/* What follows belongs to one client. */
	if (upstream_request_upgrade(transaction->request,
				     transaction->peer.http2 ? NULL : pool->settings->upgrade))
		return backend_call_start(pool, transaction, skip);
	if (!is_safe(transaction->request)) {
		enum respond respond;

		transaction->response.cache_verdict = "pass";
		cache_store_change(transaction, transaction->request);
		respond = backend_call_start(pool, transaction, skip);
		if (respond == RESPOND_NOW)
			cache_store_drop(transaction, RESPCACHE_LOST);
		return respond;
	}
	*look = (struct look){.ask = {.answered = lookup_answered, .loop = thread->loop},
			      .transaction = transaction,
			      .pool = pool,
			      .skip = skip};
	return look_up(transaction);
}

/* --- the cache -------------------------------------------------------------------------------- */

#define ENTRIES_LEAST 1024u
#define ENTRIES_MOST 65536u
#define BYTES_AN_ENTRY 16384u /* bytes of the cache of units */
#define HEADS_PART 16	      /* heads may take this part of the cache size in addition */

#define SOFT "soft " /* nabcctl purge --soft */

static int lookup_purge(void *context, const char *name)
{
	/* No URL and no tag has a blank. */
	bool soft = g_str_has_prefix(name, SOFT);
	const char *what = soft ? name + strlen(SOFT) : name;
	long count = respcache_purge(context, (struct slice){what, strlen(what)}, soft);

	return count > INT_MAX ? INT_MAX : (int)count;
}

bool cache_lookup_open(struct server *server)
{
	struct respcache_options options = {
		.entries = (unsigned)CLAMP(server->cache_size / BYTES_AN_ENTRY, ENTRIES_LEAST,
					   ENTRIES_MOST),
		.bytes = server->cache_size / HEADS_PART};

	server->responses = respcache_open(&options);
	return server->responses &&
	       NC_cache_on_purge(server->cache, lookup_purge, server->responses) == 0;
}

void cache_lookup_end(struct server *server)
{
	if (server->responses)
		respcache_end(server->responses);
}

void cache_lookup_close(struct server *server)
{
	if (!server->responses)
		return;
	(void)NC_cache_on_purge(server->cache, NULL, NULL);
	respcache_close(server->responses);
}
