/* SPDX-License-Identifier: MIT */
/*
 * span-export.c - see span-export.h.
 *
 * A queue is made when its thread has its first span.  A request to the collector has all spans that
 * wait, up to BATCH_MAX, as soon as a queue has BATCH or the last request was PERIOD ago.  One that
 * fails is sent again, with growing delays: meanwhile the queues fill.
 *
 * Targets are numbered, and a span has the number of the one at its time: so it gets there even if
 * other targets follow at once.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <glib.h>
#include <time.h>

#include "base/clock.h"
#include "base/counter.h"
#include "base/json.h"
#include "base/random-id.h"
#include "base/record-ring.h"
#include "log/log.h"
#include "log/span-export.h"
#include "log/span-json.h"
#include "log/span-send.h"
#include "log/span.h"

#define QUEUE_SIZE ((size_t)2 << 20) /* bytes of each thread */
#define BATCH 512u		     /* spans */
#define BATCH_MAX 2048u
#define BATCH_BYTES ((size_t)4 << 20) /* of a request; about */
#define PERIOD_MS 1000u
#define IDLE_MS 60000u /* without a target */
#define DELAY_LEAST_MS 1000u
#define DELAY_MOST_MS 30000u
#define RETRY_AFTER_MOST_S 300u
#define GIVE_UP_MS 300000u /* after the first attempt */
#define FLUSH_MS 3000u	   /* at the end, or for another target */
#define NS_OF_MS UINT64_C(1000000)

/* Of a thread that puts spans. */
struct slot {
	alignas(64) _Atomic(struct record_ring *) ring;
	_Atomic uint64_t dropped;
};

struct span_export {
	unsigned threads;
	_Atomic(struct span_sender *) sender; /* set before there is a target */
	pthread_t thread;
	pthread_mutex_t lock;
	GQueue targets;		 /* with the lock: the one in use, and those that follow */
	_Atomic uint64_t newest; /* number of the last one */
	_Atomic bool closing;
	_Atomic uint64_t accepted, rejected, lost;
	/* The thread's own: */
	const struct span_target *target; /* the first in the queue */
	uint64_t number;		  /* of that */
	bool bad;			  /* the collector's last answer was */
	unsigned code;			  /* of that */
	unsigned first;			  /* slot to begin with */
	uint64_t last_ns;
	struct random_id ids;
	struct slot slots[];
};

static uint64_t load(const _Atomic uint64_t *number)
{
	return atomic_load_explicit(number, memory_order_relaxed);
}

/* --- the queues ----------------------------------------------------------------------- */

void span_export_put(struct span_export *export, unsigned number, const struct span *span)
{
	struct slot *slot = &export->slots[number];
	struct record_ring *ring = atomic_load_explicit(&slot->ring, memory_order_relaxed);
	void *record;

	if (!ring) {
		ring = record_ring_open(QUEUE_SIZE);
		/* Pairs with the acquire in ring_of(). */
		atomic_store_explicit(&slot->ring, ring, memory_order_release);
	}
	record = ring ? record_ring_reserve(ring, span_size(span)) : NULL;
	if (!record) {
		counter_add(&slot->dropped, 1);
		return;
	}
	span_copy(record, span);
	((struct span *)record)->target = load(&export->newest);
	record_ring_commit(ring);
	if (record_ring_count(ring) == BATCH && atomic_load(&export->sender))
		span_sender_wake(atomic_load(&export->sender));
}

static struct record_ring *ring_of(const struct span_export *export, unsigned i)
{
	return atomic_load_explicit(&export->slots[i % export->threads].ring, memory_order_acquire);
}

/* Returns the number of all spans, and that of the longest queue. */
static uint64_t waiting(const struct span_export *export, uint64_t *longest)
{
	uint64_t sum = 0;

	*longest = 0;
	for (unsigned i = 0; i < export->threads; i++) {
		struct record_ring *ring = ring_of(export, i);
		uint64_t count = ring ? record_ring_count(ring) : 0;

		sum += count;
		*longest = MAX(*longest, count);
	}
	return sum;
}

/* Returns the first span of a queue, unless it is for a later target; or NULL. */
static const struct span *first_of(const struct span_export *export, unsigned i)
{
	struct record_ring *ring = ring_of(export, i);
	const struct span *span = ring ? record_ring_first(ring) : NULL;

	return span && span->target <= export->number ? span : NULL;
}

/* Moves spans into a request; each queue has its turn.  Returns their number. */
static unsigned take_spans(struct span_export *export, struct json *json)
{
	uint64_t ahead_ns = clock_ns(CLOCK_REALTIME) - clock_monotonic_ns();
	unsigned count = 0, empty = 0;
	const struct span *span;

	for (; count < BATCH_MAX && json->text->len < BATCH_BYTES && empty < export->threads;
	     export->first++) {
		span = first_of(export, export->first);
		empty = span ? 0 : empty + 1;
		if (!span)
			continue;
		span_json_add(json, span, ahead_ns, &export->ids);
		record_ring_drop(ring_of(export, export->first));
		count++;
	}
	return count;
}

/* --- the collector --------------------------------------------------------------------- */

static bool is_ending(const struct span_export *export)
{
	return atomic_load(&export->closing) || atomic_load(&export->newest) != export->number;
}

/* Once for each reason, and when it works again. */
static void report(struct span_export *export, const struct span_answer *answer)
{
	bool bad = answer->outcome != SPAN_ACCEPTED;

	if (bad && !(export->bad && export->code == answer->code))
		log_warning("trace-export: the collector %s does not take spans: %s",
			    export->target->url, answer->why);
	if (!bad && export->bad)
		log_notice("trace-export: the collector %s takes spans again", export->target->url);
	export->bad = bad;
	export->code = answer->code;
}

/* Waits before an attempt, unless the target is about to change. */
static void pause_for(struct span_export *export, uint64_t ms)
{
	uint64_t until = clock_monotonic_ns() + ms * NS_OF_MS, now;

	while (!is_ending(export) && (now = clock_monotonic_ns()) < until)
		span_sender_wait(export->sender,
				 (unsigned)MIN((until - now) / NS_OF_MS + 1, IDLE_MS));
}

/* A random part keeps servers that lost their collector together from returning together. */
static uint64_t delay_ms(struct span_export *export, unsigned attempt,
			 const struct span_answer *answer)
{
	uint64_t most = attempt < 5 ? DELAY_LEAST_MS << attempt : DELAY_MOST_MS;
	uint64_t ms = most / 2 + random_id_next(&export->ids) % (most / 2 + 1);

	return MAX(ms, MIN(answer->retry_after_s, RETRY_AFTER_MOST_S) * UINT64_C(1000));
}

static void post(struct span_export *export, const GString *text, unsigned count)
{
	uint64_t began = clock_monotonic_ns();
	struct span_answer answer = {.outcome = SPAN_STOPPED};

	for (unsigned attempt = 0; export->target->url; attempt++) {
		span_sender_post(export->sender, export->target, text->str, text->len, &answer);
		report(export, &answer);
		if (answer.outcome != SPAN_RETRY || is_ending(export) ||
		    clock_monotonic_ns() - began > GIVE_UP_MS * NS_OF_MS)
			break;
		pause_for(export, delay_ms(export, attempt, &answer));
	}
	if (answer.outcome == SPAN_ACCEPTED) {
		counter_add(&export->accepted, count - MIN(answer.rejected, count));
		counter_add(&export->rejected, MIN(answer.rejected, count));
	} else {
		counter_add(answer.outcome == SPAN_REFUSED ? &export->rejected : &export->lost,
			    count);
	}
}

/* Sends what is due; all: all of the target. */
static void send_due(struct span_export *export, bool all)
{
	uint64_t longest;

	while (waiting(export, &longest) &&
	       (all || longest >= BATCH ||
		clock_monotonic_ns() - export->last_ns >= PERIOD_MS * NS_OF_MS)) {
		struct json json;
		unsigned count;

		span_json_begin(&json, export->target->service);
		count = take_spans(export, &json);
		span_json_end(&json);
		if (count)
			post(export, json.text, count);
		g_string_free(json.text, TRUE);
		if (!count)
			return;
		export->last_ns = clock_monotonic_ns();
	}
}

/* --- the thread -------------------------------------------------------------------------- */

static void target_free(void *data)
{
	struct span_target *target = data;

	g_free(target->url);
	g_free(target->service);
	g_free(target->ca);
	g_strfreev(target->headers);
	g_free(target);
}

static struct span_target *target_copy(const struct span_target *target)
{
	struct span_target *copy = g_new(struct span_target, 1);

	*copy = (struct span_target){g_strdup(target->url), g_strdup(target->service),
				     g_strdup(target->ca), g_strdupv(target->headers)};
	return copy;
}

static void take_next_target(struct span_export *export)
{
	pthread_mutex_lock(&export->lock);
	target_free(g_queue_pop_head(&export->targets));
	export->target = g_queue_peek_head(&export->targets);
	export->number++;
	export->bad = false;
	if (!is_ending(export))
		span_sender_limit(export->sender, 0);
	pthread_mutex_unlock(&export->lock);
}

static void *export_run(void *argument)
{
	struct span_export *export = argument;

	for (;;) {
		/* Once: what came before a change that begins later is for the target of now. */
		bool closing = atomic_load(&export->closing);
		bool changed = atomic_load(&export->newest) != export->number;

		/* Without a target, what waits is for the next one. */
		if (export->target->url || !changed)
			send_due(export, closing || changed);
		if (changed)
			take_next_target(export);
		else if (closing)
			return NULL;
		if (!is_ending(export))
			span_sender_wait(export->sender, export->target->url ? PERIOD_MS : IDLE_MS);
	}
}

/* The thread has its target from the beginning: the next one may come before it runs. */
static int start(struct span_export *export, const struct span_target *target)
{
	struct span_sender *sender = span_sender_open();
	sigset_t all, before;
	int error;

	if (!sender)
		return -ENOMEM;
	atomic_store(&export->sender, sender);
	g_queue_push_tail(&export->targets, target_copy(target));
	export->target = g_queue_peek_head(&export->targets);
	/* The main loop handles all signals. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&export->thread, NULL, export_run, export);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!error)
		return 0;
	atomic_store(&export->sender, NULL);
	span_sender_close(sender);
	g_queue_clear_full(&export->targets, target_free);
	return -error;
}

/* --- calls of the server -------------------------------------------------------------------- */

struct span_export *span_export_open(unsigned threads)
{
	size_t size = sizeof(struct span_export) + threads * sizeof(struct slot);
	struct span_export *export = aligned_alloc(alignof(struct span_export), size);

	if (!export)
		return NULL;
	memset(export, 0, size);
	export->threads = threads;
	pthread_mutex_init(&export->lock, NULL);
	g_queue_init(&export->targets);
	return export;
}

/* Gives the thread a few seconds for what waits; with the lock. */
static void hurry_locked(struct span_export *export)
{
	span_sender_limit(export->sender, clock_monotonic_ns() + FLUSH_MS * NS_OF_MS);
}

static bool is_same(const struct span_target *one, const struct span_target *other)
{
	static char *none[] = {NULL};
	char **some = one->headers ? one->headers : none;
	char **others = other->headers ? other->headers : none;

	return g_strcmp0(one->url, other->url) == 0 && g_strcmp0(one->ca, other->ca) == 0 &&
	       g_strcmp0(one->service, other->service) == 0 &&
	       g_strv_equal((const char *const *)some, (const char *const *)others);
}

int span_export_use(struct span_export *export, const struct span_target *target)
{
	int error = 0;

	if (!export->sender && target->url)
		error = start(export, target);
	if (error || !export->sender)
		return error;
	pthread_mutex_lock(&export->lock);
	if (!is_same(g_queue_peek_tail(&export->targets), target)) {
		g_queue_push_tail(&export->targets, target_copy(target));
		hurry_locked(export);
		atomic_fetch_add(&export->newest, 1);
		span_sender_wake(export->sender);
	}
	pthread_mutex_unlock(&export->lock);
	return 0;
}

void span_export_close(struct span_export *export)
{
	uint64_t longest, left;

	if (!export)
		return;
	if (export->sender) {
		pthread_mutex_lock(&export->lock);
		hurry_locked(export);
		atomic_store(&export->closing, true);
		span_sender_wake(export->sender);
		pthread_mutex_unlock(&export->lock);
		pthread_join(export->thread, NULL);
	}
	left = waiting(export, &longest) + load(&export->lost);
	if (left)
		log_warning("trace-export: %llu spans were not sent", (unsigned long long)left);
	for (unsigned i = 0; i < export->threads; i++)
		record_ring_close(ring_of(export, i));
	span_sender_close(export->sender);
	g_queue_clear_full(&export->targets, target_free);
	pthread_mutex_destroy(&export->lock);
	free(export);
}

void span_export_stat(const struct span_export *export, struct span_export_stat *stat)
{
	uint64_t longest;

	*stat = (struct span_export_stat){.waiting = waiting(export, &longest),
					  .accepted = load(&export->accepted),
					  .rejected = load(&export->rejected),
					  .lost = load(&export->lost)};
	for (unsigned i = 0; i < export->threads; i++)
		stat->dropped += load(&export->slots[i].dropped);
}
