/* SPDX-License-Identifier: MIT */
/*
 * resolver.c - see resolver.h.
 *
 * The interval is the operator's, not the time to live that a DNS server states: the system's
 * lookup does not report it, /etc/hosts has none, the servers of container engines state minutes
 * for addresses that a restart changes at once, and hostile ones 0 or years.
 *
 * A thread is started for each lookup and ends with it.  What the threads share with the loop's
 * thread has a lock and a count of references, because a lookup may outlive the resolver.
 */
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <glib.h>

#include "base/clock.h"
#include "base/container.h"
#include "base/list.h"
#include "base/timer.h"
#include "event/loop.h"
#include "log/log.h"
#include "upstream/name-lookup.h"
#include "upstream/resolver.h"

#define TICK_MS 500u /* between two looks at which names are due */
#define RETRY_DOUBLINGS_MAX 10u

struct shared {
	pthread_mutex_t lock;
	pthread_cond_t ended; /* a lookup */
	unsigned references;
	struct resolver *resolver; /* NULL: it is closed */
	struct loop_notice news;
	struct list done; /* lookups */
};

struct lookup {
	struct list_node node; /* in shared->done */
	struct shared *shared;
	struct resolver_name *name; /* the loop's; NULL: the result is not needed any more */
	resolver_lookup *look;
	char *host;
	bool good;
	char why[128];
	struct name_addresses found;
};

struct resolver_name {
	struct resolver *resolver;
	char *host;
	struct list watches;
	struct lookup *lookup; /* under way; or NULL */
	struct name_addresses found;
	bool looked;	   /* a lookup has ended */
	bool warned;	   /* the last one has failed, and the log says so */
	unsigned failures; /* since the last good one */
	uint64_t ended_ms, due_ms;
};

struct resolver {
	struct shared *shared;
	struct loop *loop;
	resolver_lookup *lookup;
	GPtrArray *names;
	unsigned running; /* lookups, also those whose result is not needed */
	struct timer tick;
	bool no_thread; /* the log says that none could be started */
};

/* --- a lookup's thread ------------------------------------------------------------------------ */

static void lookup_free(struct lookup *lookup)
{
	g_free(lookup->host);
	g_free(lookup);
}

/* With the lock held, which it releases. */
static void shared_unref(struct shared *shared)
{
	bool last = --shared->references == 0;

	pthread_mutex_unlock(&shared->lock);
	if (!last)
		return;
	pthread_mutex_destroy(&shared->lock);
	pthread_cond_destroy(&shared->ended);
	g_free(shared);
}

static void *resolver_run(void *argument)
{
	struct lookup *lookup = argument;
	struct shared *shared = lookup->shared;

	lookup->good = lookup->look(lookup->host, &lookup->found, lookup->why, sizeof(lookup->why));
	pthread_mutex_lock(&shared->lock);
	if (shared->resolver) {
		list_append(&shared->done, &lookup->node);
		pthread_cond_signal(&shared->ended);
		loop_notify(shared->resolver->loop, &shared->news);
	} else {
		lookup_free(lookup);
	}
	shared_unref(shared);
	return NULL;
}

/* No signal of the server interrupts a lookup.  Returns 0 or an error number. */
static int start_thread(struct lookup *lookup)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	pthread_t thread;
	int error = pthread_attr_init(&attributes);

	if (error)
		return error;
	sigfillset(&all);
	(void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&thread, &attributes, resolver_run, lookup);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return error;
}

/* --- names ------------------------------------------------------------------------------------ */

static uint64_t now_ms(const struct resolver *resolver)
{
	return loop_now_ms(resolver->loop);
}

static unsigned interval_of(const struct resolver_name *name)
{
	unsigned interval = UINT_MAX;

	list_each (const struct resolver_watch, watch, &name->watches, node)
		interval = MIN(interval, watch->interval_ms);
	return MAX(interval, RESOLVER_AGAIN_MS);
}

/* Of a name that fails, soon: it may be that of an application which is being started. */
static unsigned pause_of(const struct resolver_name *name)
{
	unsigned interval = interval_of(name);
	unsigned doublings = MIN(name->failures, RETRY_DOUBLINGS_MAX);

	return name->failures ? MIN(interval, RESOLVER_AGAIN_MS << (doublings - 1)) : interval;
}

static void begin(struct resolver_name *name)
{
	struct resolver *resolver = name->resolver;
	struct lookup *lookup = g_new0(struct lookup, 1);
	int error;

	*lookup = (struct lookup){.shared = resolver->shared,
				  .name = name,
				  .look = resolver->lookup,
				  .host = g_strdup(name->host)};
	pthread_mutex_lock(&resolver->shared->lock);
	resolver->shared->references++;
	pthread_mutex_unlock(&resolver->shared->lock);
	error = start_thread(lookup);
	if (!error) {
		name->lookup = lookup;
		resolver->running++;
		resolver->no_thread = false;
		return;
	}
	if (!resolver->no_thread)
		log_warning("cannot start a thread to look up the name \"%s\": %s; trying again",
			    name->host, g_strerror(error));
	resolver->no_thread = true;
	name->due_ms = now_ms(resolver) + RESOLVER_AGAIN_MS;
	lookup_free(lookup);
	pthread_mutex_lock(&resolver->shared->lock);
	shared_unref(resolver->shared);
}

/* Begins the lookups that are due, the longest due first. */
static void begin_due(struct resolver *resolver)
{
	while (resolver->running < RESOLVER_THREADS_MAX) {
		struct resolver_name *next = NULL;

		for (unsigned i = 0; i < resolver->names->len; i++) {
			struct resolver_name *name = resolver->names->pdata[i];

			if (!name->lookup && name->due_ms <= now_ms(resolver) &&
			    (!next || name->due_ms < next->due_ms))
				next = name;
		}
		if (!next)
			return;
		begin(next);
	}
}

static void tick(struct timer *timer)
{
	struct resolver *resolver = container_of(timer, struct resolver, tick);

	begin_due(resolver);
	if (resolver->names->len)
		loop_timer_start(resolver->loop, timer, TICK_MS, tick);
}

static void note_failure(struct resolver_name *name, const char *why)
{
	name->failures++;
	if (name->warned)
		return;
	name->warned = true;
	log_warning("upstream \"%s\": the name cannot be resolved: %s (%s)", name->host, why,
		    name->found.count ? "its last addresses stay in use"
				      : "no request gets there until it can");
}

static void note_success(struct resolver_name *name, const struct name_addresses *found)
{
	if (name->warned)
		log_notice("upstream \"%s\": the name is resolved again", name->host);
	name->warned = false;
	name->failures = 0;
	if (found->left_out && !name->found.left_out)
		log_warning("upstream \"%s\": the name has %u addresses, of which %u are looked at",
			    name->host, found->count + found->left_out, found->count);
	name->found = *found;
}

static void over(struct resolver *resolver, struct lookup *lookup)
{
	struct resolver_name *name = lookup->name;

	resolver->running--;
	if (name) {
		name->lookup = NULL;
		name->ended_ms = now_ms(resolver);
		if (lookup->good)
			note_success(name, &lookup->found);
		else
			note_failure(name, lookup->why);
		name->looked = true;
		name->due_ms = name->ended_ms + pause_of(name);
		/* The callback of the last watch may free the name. */
		list_each (struct resolver_watch, watch, &name->watches, node)
			watch->looked_up(watch);
	}
	lookup_free(lookup);
}

static void take_done(struct resolver *resolver)
{
	struct shared *shared = resolver->shared;
	struct lookup *lookup;

	do {
		pthread_mutex_lock(&shared->lock);
		lookup = list_take(&shared->done, struct lookup, node);
		pthread_mutex_unlock(&shared->lock);
		if (lookup)
			over(resolver, lookup);
	} while (lookup);
	begin_due(resolver);
}

static void resolver_on_news(struct loop_task *task)
{
	struct shared *shared = container_of(task, struct shared, news.task);

	loop_notice_begin(&shared->news);
	/* Written by this thread only. */
	take_done(shared->resolver);
}

static struct resolver_name *find(struct resolver *resolver, const char *host)
{
	for (unsigned i = 0; i < resolver->names->len; i++) {
		struct resolver_name *name = resolver->names->pdata[i];

		if (g_ascii_strcasecmp(name->host, host) == 0)
			return name;
	}
	return NULL;
}

static struct resolver_name *add(struct resolver *resolver, const char *host)
{
	struct resolver_name *name = g_new0(struct resolver_name, 1);

	name->resolver = resolver;
	name->host = g_strdup(host);
	name->due_ms = now_ms(resolver);
	g_ptr_array_add(resolver->names, name);
	if (resolver->names->len == 1)
		loop_timer_start(resolver->loop, &resolver->tick, TICK_MS, tick);
	return name;
}

/* --- for the owner ---------------------------------------------------------------------------- */

struct resolver *resolver_open(struct loop *loop, resolver_lookup *lookup)
{
	struct resolver *resolver = g_new0(struct resolver, 1);
	struct shared *shared = g_new0(struct shared, 1);
	pthread_condattr_t attributes;

	pthread_mutex_init(&shared->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&shared->ended, &attributes);
	pthread_condattr_destroy(&attributes);
	shared->references = 1;
	shared->resolver = resolver;
	shared->news.task.run = resolver_on_news;
	resolver->shared = shared;
	resolver->loop = loop;
	resolver->lookup = lookup;
	resolver->names = g_ptr_array_new();
	return resolver;
}

void resolver_close(struct resolver *resolver)
{
	struct shared *shared;
	struct lookup *lookup;

	if (!resolver)
		return;
	shared = resolver->shared;
	timer_stop(&resolver->tick);
	pthread_mutex_lock(&shared->lock);
	shared->resolver = NULL;
	while ((lookup = list_take(&shared->done, struct lookup, node)))
		lookup_free(lookup);
	shared_unref(shared);
	g_ptr_array_free(resolver->names, TRUE);
	g_free(resolver);
}

void resolver_watch_start(struct resolver *resolver, struct resolver_watch *watch, const char *host,
			  unsigned interval_ms)
{
	struct resolver_name *name = find(resolver, host);

	if (!name)
		name = add(resolver, host);
	watch->name = name;
	watch->interval_ms = interval_ms;
	list_prepend(&name->watches, &watch->node);
	if (name->looked)
		name->due_ms = MIN(name->due_ms, name->ended_ms + pause_of(name));
	begin_due(resolver);
}

void resolver_watch_stop(struct resolver_watch *watch)
{
	struct resolver_name *name = watch->name;

	list_remove(&watch->node);
	watch->name = NULL;
	if (!list_is_empty(&name->watches))
		return;
	if (name->lookup)
		name->lookup->name = NULL;
	g_ptr_array_remove_fast(name->resolver->names, name);
	g_free(name->host);
	g_free(name);
}

const struct name_addresses *resolver_addresses(const struct resolver_watch *watch)
{
	return &watch->name->found;
}

bool resolver_has_looked(const struct resolver_watch *watch)
{
	return watch->name->looked;
}

void resolver_hurry(struct resolver_watch *watch)
{
	struct resolver_name *name = watch->name;

	name->due_ms = MIN(name->due_ms, name->ended_ms + RESOLVER_AGAIN_MS);
	begin_due(name->resolver);
}

/* Returns true if a name has not been looked up yet. */
static bool has_new(const struct resolver *resolver)
{
	for (unsigned i = 0; i < resolver->names->len; i++) {
		const struct resolver_name *name = resolver->names->pdata[i];

		if (!name->looked && name->lookup)
			return true;
	}
	return false;
}

static struct timespec time_after(unsigned ms)
{
	uint64_t ns = clock_monotonic_ns() + (uint64_t)ms * 1000000u;

	return (struct timespec){.tv_sec = (time_t)(ns / 1000000000u),
				 .tv_nsec = (long)(ns % 1000000000u)};
}

void resolver_settle(struct resolver *resolver, unsigned ms)
{
	struct shared *shared = resolver->shared;
	struct timespec until = time_after(ms);
	bool in_time = true;

	while (in_time && has_new(resolver)) {
		pthread_mutex_lock(&shared->lock);
		while (in_time && list_is_empty(&shared->done))
			in_time =
				pthread_cond_timedwait(&shared->ended, &shared->lock, &until) == 0;
		pthread_mutex_unlock(&shared->lock);
		take_done(resolver);
	}
	for (unsigned i = 0; i < resolver->names->len; i++) {
		const struct resolver_name *name = resolver->names->pdata[i];

		if (!name->looked)
			log_warning(
				"upstream \"%s\": no name server has answered for the name yet; "
				"its requests wait",
				name->host);
	}
}
