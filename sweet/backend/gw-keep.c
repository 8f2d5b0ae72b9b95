/* SPDX-License-Identifier: MIT */
/*
 * gw-keep.c - see gw-keep.h.
 *
 * Units that stay are kept by their ids: the program that made them ends the
 * entry by destroying one.  All else is copied once, into a unit of this
 * server: a worker gets its memory back, and a hit is one range.
 */
#include <stdlib.h>
#include <time.h>

#include <glib.h>

#include "backend/gw-keep.h"
#include "core/gw-place.h"
#include "core/server.h"
#include "http/cachekey.h"

#define COPY_MAX ((size_t)4 << 20) /* bytes of a body that are copied at once */

struct gw_keep {
	struct respcache_flight *flight; /* NULL: what is at the URL has changed */
	struct slice url;
	bool begun; /* the head is known */
	char *head; /* as the program wrote it; NULL: no line */
	size_t head_length;
	int status;
	time_t came, date; /* the head; its Date, or the same */
	uint64_t came_ns;
	struct cacheable_rule rule;
	GByteArray *body; /* NULL: no bytes came */
};

static struct respcache *cache_of(const struct transaction *transaction)
{
	return transaction->server->site->responses;
}

static uint64_t now_of(const struct transaction *transaction)
{
	return loop_now_ns(transaction->server->loop);
}

static void free_keep(struct transaction *transaction)
{
	struct gw_keep *keep = transaction->keep;

	transaction->keep = NULL;
	if (keep->body)
		g_byte_array_unref(keep->body);
	g_free(keep->head);
	g_free((char *)(uintptr_t)keep->url.at);
	g_free(keep);
}

void gw_keep_flight(struct transaction *transaction, struct respcache_flight *flight)
{
	struct gw_keep *keep = g_new0(struct gw_keep, 1);

	keep->flight = flight;
	keep->rule = transaction->scope->response_cache;
	transaction->keep = keep;
}

void gw_keep_change(struct transaction *transaction, const struct request *request)
{
	char host[GW_HOST_MAX], url[CACHEKEY_URL_MAX];
	size_t length = cachekey_write_url(request, gw_place_host(transaction, host), url);

	if (!length)
		return;
	transaction->keep = g_new0(struct gw_keep, 1);
	transaction->keep->url = (struct slice){g_memdup2(url, length), length};
}

void gw_keep_drop(struct transaction *transaction, enum respcache_failure failure)
{
	struct gw_keep *keep = transaction->keep;

	if (!keep)
		return;
	if (keep->flight)
		respcache_give_up(keep->flight, failure, now_of(transaction));
	free_keep(transaction);
}

/* --- the head --------------------------------------------------------------------------- */

/* An answer that says nothing of what such requests are answered with. */
static bool is_no_answer(int status)
{
	return status >= 500 || status == 304 || status == 206 || status == 416 || status == 412;
}

static struct cacheable_terms terms_of(const struct gw_keep *keep, const struct cacheable *said)
{
	return cacheable_judge(said, keep->rule, respcache_flight_authorized(keep->flight),
			       keep->came);
}

static void judge(struct transaction *transaction, const struct cacheable *said)
{
	struct gw_keep *keep = transaction->keep;

	keep->came = time(NULL);
	keep->came_ns = now_of(transaction);
	keep->date = transaction->date ? transaction->date : keep->came;
	if (!terms_of(keep, said).fresh || transaction->head_length > RESPCACHE_HEAD_MAX) {
		gw_keep_drop(transaction, is_no_answer(said->head->status) ? RESPCACHE_LOST
									   : RESPCACHE_NOT_KEPT);
		return;
	}
	keep->head_length = said->head->lines.length;
	keep->head = g_memdup2(said->head->lines.at, keep->head_length);
	keep->status = said->head->status;
	keep->begun = true;
}

/* Nobody waits for it, but the next ones shall. */
static void note(struct transaction *transaction, const struct cacheable *said)
{
	const struct cacheable_rule marked = {0};

	if (transaction->keep_mark && cacheable_judge(said, marked, false, 0).fresh)
		respcache_note(cache_of(transaction), transaction->keep_mark, now_of(transaction));
}

void gw_keep_head(struct transaction *transaction, const struct cgihead *head)
{
	struct gw_keep *keep = transaction->keep;
	struct cacheable said;

	if (!head) {
		gw_keep_drop(transaction, RESPCACHE_LOST);
		return;
	}
	cacheable_read(&said, head);
	/* Before it is kept itself: it is newer than what it purges. */
	for (unsigned i = 0; i < said.purge_count; i++)
		respcache_purge_tags(cache_of(transaction), said.purges[i]);
	if (!keep) {
		note(transaction, &said);
	} else if (keep->flight) {
		judge(transaction, &said);
	} else {
		if (head->status >= 200 && head->status < 400)
			respcache_invalidate(cache_of(transaction), keep->url);
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

void gw_keep_lines(struct transaction *transaction, int status, struct slice lines)
{
	struct cgihead head;

	gw_keep_head(transaction, parse(&head, status, lines));
}

/* --- the body ------------------------------------------------------------------------------ */

static void store(struct transaction *transaction, const struct NC_range *ranges, unsigned count,
		  uint64_t given)
{
	struct gw_keep *keep = transaction->keep;
	struct respcache_answer answer = {.lines = {transaction->head, transaction->head_length},
					  .ranges = ranges,
					  .range_count = count,
					  .given = given};
	struct cacheable said;
	struct cgihead head;

	/* It was good before. */
	(void)parse(&head, keep->status, (struct slice){keep->head, keep->head_length});
	cacheable_read(&said, &head);
	answer.said = &said;
	answer.terms = terms_of(keep, &said);
	answer.date = keep->date;
	/* It is as old as its head, however long its body took. */
	if (answer.terms.fresh)
		(void)respcache_store(keep->flight, &answer, keep->came_ns);
	else
		respcache_give_up(keep->flight, RESPCACHE_NOT_KEPT, now_of(transaction));
	free_keep(transaction);
}

/* All of a range to the handle; false: it cannot be read. */
static bool copy_range(NC_handle *handle, size_t at, const struct NC_range *range)
{
	size_t done = 0, run;

	while (done < range->length) {
		const void *bytes = NC_data(NULL, range->id, range->offset + done, &run);

		if (!bytes)
			return false;
		run = MIN(run, range->length - done);
		if (NC_write(handle, at + done, bytes, run) != (ssize_t)run)
			return false;
		done += run;
	}
	return true;
}

static uint64_t all_of(unsigned count)
{
	return count < 64 ? (UINT64_C(1) << count) - 1 : UINT64_MAX;
}

/* The unit that was filled, held, if all of it was; id 0: there is no room. */
static struct NC_range finish_copy(NC_handle *handle, bool good, size_t length)
{
	struct NC_range copy = {.length = length};

	if (good && NC_insert(handle) == 0 && NC_hold(NC_cache_id(handle)) == 0)
		copy.id = NC_cache_id(handle);
	(void)NC_free(handle);
	return copy;
}

/* A unit of this server's with all of it, as finish_copy() says. */
static struct NC_range copy_ranges(const struct NC_range *ranges, unsigned count, size_t length)
{
	NC_handle handle;
	bool good = true;
	size_t at = 0;

	if (NC_alloc(&handle, length, 0) < 0)
		return (struct NC_range){0};
	for (unsigned i = 0; i < count && good; i++) {
		good = copy_range(&handle, at, &ranges[i]);
		at += ranges[i].length;
	}
	return finish_copy(&handle, good, length);
}

static struct NC_range copy_bytes(const GByteArray *bytes)
{
	NC_handle handle;
	bool good;

	if (NC_alloc(&handle, bytes->len, 0) < 0)
		return (struct NC_range){0};
	good = NC_write(&handle, 0, bytes->data, bytes->len) == (ssize_t)bytes->len;
	return finish_copy(&handle, good, bytes->len);
}

static void store_copy(struct transaction *transaction, struct NC_range copy)
{
	if (!copy.id) {
		gw_keep_drop(transaction, RESPCACHE_LOST);
		return;
	}
	store(transaction, &copy, 1, 1);
	(void)NC_release(copy.id);
}

/* What stays as it is, and copies of the rest. */
static void store_mixed(struct transaction *transaction, const struct NC_range *ranges,
			unsigned count, uint64_t stay)
{
	struct NC_range mixed[RESPCACHE_RANGES_MAX] = {0};
	uint64_t given = 0;

	for (unsigned i = 0; i < count; i++) {
		mixed[i] = ranges[i];
		if (stay & UINT64_C(1) << i)
			continue;
		mixed[i] = copy_ranges(&ranges[i], 1, ranges[i].length);
		if (!mixed[i].id)
			break;
		given |= UINT64_C(1) << i;
	}
	if (given == (~stay & all_of(count))) {
		store(transaction, mixed, count, given);
	} else {
		gw_keep_drop(transaction, RESPCACHE_LOST);
		for (unsigned i = 0; i < count; i++)
			if (given & UINT64_C(1) << i)
				(void)NC_destroy(mixed[i].id);
	}
	for (unsigned i = 0; i < count; i++)
		if (given & UINT64_C(1) << i)
			(void)NC_release(mixed[i].id);
}

/* Whether a body is waited for. */
static bool wants_body(const struct transaction *transaction)
{
	return transaction->keep && transaction->keep->begun;
}

void gw_keep_body(struct transaction *transaction, const struct NC_range *ranges, unsigned count,
		  uint64_t stay)
{
	size_t length = 0, copied = 0;

	if (!wants_body(transaction))
		return;
	for (unsigned i = 0; i < count; i++) {
		length += ranges[i].length;
		copied += stay & UINT64_C(1) << i ? 0 : ranges[i].length;
	}
	if (copied > COPY_MAX || count > RESPCACHE_RANGES_MAX)
		gw_keep_drop(transaction, RESPCACHE_NOT_KEPT);
	else if (copied == 0)
		store(transaction, ranges, length ? count : 0, 0);
	else if (copied == length)
		store_copy(transaction, copy_ranges(ranges, count, length));
	else
		store_mixed(transaction, ranges, count, stay);
}

void gw_keep_bytes(struct transaction *transaction, struct slice bytes)
{
	struct gw_keep *keep = transaction->keep;

	if (!wants_body(transaction))
		return;
	if (!keep->body)
		keep->body = g_byte_array_new();
	if (bytes.length > COPY_MAX - keep->body->len)
		gw_keep_drop(transaction, RESPCACHE_NOT_KEPT);
	else
		g_byte_array_append(keep->body, (const guint8 *)bytes.at, (guint)bytes.length);
}

void gw_keep_part(struct transaction *transaction, const struct NC_range *ranges, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		size_t done = 0, run;

		while (wants_body(transaction) && done < ranges[i].length) {
			const char *bytes =
				NC_data(NULL, ranges[i].id, ranges[i].offset + done, &run);

			if (!bytes) {
				gw_keep_drop(transaction, RESPCACHE_LOST);
				return;
			}
			run = MIN(run, ranges[i].length - done);
			gw_keep_bytes(transaction, (struct slice){bytes, run});
			done += run;
		}
	}
}

void gw_keep_end(struct transaction *transaction)
{
	if (!wants_body(transaction))
		return;
	if (transaction->keep->body && transaction->keep->body->len)
		store_copy(transaction, copy_bytes(transaction->keep->body));
	else
		store(transaction, NULL, 0, 0);
}
