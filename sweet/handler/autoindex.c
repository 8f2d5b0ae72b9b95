/* SPDX-License-Identifier: MIT */
/*
 * autoindex.c - see autoindex.h.  A helper thread reads the directory and writes the text; the rest
 * runs on the transaction's thread.  Listings are not cached: people read them, so they are rare,
 * and a cache would have to be kept up to date.  But a listing that is still queued is the response
 * to all equal requests of its thread: it will be read after them.  They are answered one after the
 * other, each by a task of the loop, so that other connections have their turn between them.
 */
#include <assert.h>
#include <errno.h>
#include <glib.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "base/container.h"
#include "base/list.h"
#include "base/slice.h"
#include "config/configuration.h"
#include "core/server.h"
#include "core/site.h"
#include "core/text-response.h"
#include "event/client-limit.h"
#include "event/loop.h"
#include "event/thread-pool.h"
#include "files/docroot.h"
#include "files/file-cache.h"
#include "files/read-directory.h"
#include "handler/autoindex.h"
#include "handler/handler-thread.h"
#include "http/accept.h"
#include "http/request.h"
#include "log/log.h"

#define TEXT_MAX ((size_t)8 << 20) /* bytes of a listing */
#define EQUAL_MAX 64u		   /* queued listings that a request is compared with: the latest */
#define LONG_BYTES ((size_t)64 << 10) /* a longer one: one waiter in each turn of the loop */

/* A transaction that waits for a listing.  Lies in its scratch memory. */
struct waiter {
	struct transaction *transaction;
	struct listing *listing;
	struct list_node node;
};

static_assert(sizeof(struct waiter) <= TRANSACTION_SCRATCH, "fits the scratch");

/* A listing that a helper thread makes, for all transactions of the thread that ask for it. */
struct listing {
	struct job job;
	struct thread *thread;
	struct list waiters;
	struct list_node node;	  /* in those of its thread */
	_Atomic bool begun;	  /* what is asked for from now on may not be in it */
	char *path, *as;	  /* of the folder: beneath the root; as the client knows it */
	struct file_cache *cache; /* referenced */
	bool hidden;
	bool deferred;
	struct autoindex_wish wish;
	GString *text;
	bool cut; /* JSON has no other way to show that the listing is truncated */
	int error;
	/* When the job is done: the text for the waiters, or NULL; the task that answers them. */
	bool done;
	GBytes *made;
	struct loop_task answer;
};

struct autoindex_wish autoindex_wish(const struct request *request)
{
	struct slice format = autoindex_query(request->query, "format");
	struct autoindex_wish wish = {.order = autoindex_order(request->query)};

	wish.json = format.at ? slice_is(format, "json") : accept_prefers_json(request);
	return wish;
}

/* --- on a helper thread ------------------------------------------------------------- */

static void autoindex_work(struct job *job)
{
	struct listing *listing = container_of(job, struct listing, job);
	struct autoindex_page page = {.path = listing->as, .order = listing->wish.order};
	struct directory directory;

	/* Before the folder is read: pairs with equal_listing(). */
	atomic_exchange(&listing->begun, true);
	listing->error = directory_read(file_cache_root(listing->cache), listing->path,
					listing->hidden, AUTOINDEX_MAX, job, &directory);
	if (listing->error)
		return;
	autoindex_sort(directory.entries, directory.count, listing->wish.order);
	page.entries = directory.entries;
	page.count = directory.count;
	page.more = directory.more;
	if (!job_cancelled(job))
		listing->text = listing->wish.json ? autoindex_json(&page, TEXT_MAX, &listing->cut)
						   : autoindex_html(&page, TEXT_MAX);
	directory_clear(&directory);
}

/* --- on the transactions' thread ----------------------------------------------------- */

static void refuse(struct transaction *transaction, int error)
{
	switch (error) {
	case -ECANCELED:
		transaction_refuse(transaction, 503, "the client has left");
		return;
	case -ENOENT:
	case -ENOTDIR:
	case -ENAMETOOLONG:
		transaction_fail(transaction, 404, NULL);
		return;
	case -EACCES:
	case -EPERM:
	case -ELOOP:
		transaction_refuse(transaction, 403, docroot_denied(error));
		return;
	case -ENOMEM:
	case -EMFILE:
	case -ENFILE:
		log_error("cannot list %s: %s", transaction->path, strerror(-error));
		transaction_refuse(transaction, 503, "no memory or descriptor for the folder");
		return;
	default:
		log_error("cannot list %s: %s", transaction->path, strerror(-error));
		transaction_fail(transaction, 500, NULL);
	}
}

/* The same for each listing; names are escaped already, the policy is a second protection. */
#define LINES                                                                                      \
	"Cache-Control: no-cache\r\nVary: Accept\r\nX-Content-Type-Options: nosniff\r\n"           \
	"Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'\r\n"
#define CUT "X-Listing: incomplete\r\n"

static struct waiter *waiter_of(struct transaction *transaction)
{
	return (struct waiter *)(void *)transaction->scratch;
}

static void respond(struct transaction *transaction, const struct listing *listing)
{
	int error = listing->made ? 0 : listing->error;

	transaction->responder = NULL;
	if (listing->made) {
		strcpy(transaction->head_buffer, listing->cut ? LINES CUT : LINES);
		transaction->response.head_length = strlen(transaction->head_buffer);
		/* From here on the scratch memory belongs to the text response. */
		error = text_response_share(transaction,
					    listing->wish.json ? "application/json"
							       : "text/html; charset=utf-8",
					    g_bytes_ref(listing->made));
		if (error)
			transaction->response.head_length = 0;
	}
	if (error)
		refuse(transaction, error);
	transaction_done(transaction);
}

static void listing_free(struct listing *listing)
{
	list_remove(&listing->node);
	g_clear_pointer(&listing->made, g_bytes_unref);
	file_cache_close(listing->cache);
	g_free(listing->path);
	g_free(listing->as);
	g_free(listing);
}

void handler_thread_open(struct thread *thread)
{
	thread->handler = g_new0(struct handler_thread, 1);
}

void handler_thread_close(struct thread *thread)
{
	if (!thread->handler)
		return;
	list_each (struct listing, listing, &thread->handler->listings, node) {
		if (listing->text)
			g_string_free(listing->text, TRUE);
		listing_free(listing);
	}
	g_clear_pointer(&thread->handler, g_free);
}

/* Answers the first waiter; the others, which may leave meanwhile, have their own turns. */
static void autoindex_answer_next(struct loop_task *task)
{
	struct listing *listing = container_of(task, struct listing, answer);
	struct waiter *waiter = list_take(&listing->waiters, struct waiter, node);

	if (waiter)
		respond(waiter->transaction, listing);
	if (list_is_empty(&listing->waiters))
		listing_free(listing);
	else if (listing->made && g_bytes_get_size(listing->made) > LONG_BYTES)
		loop_post(listing->thread->loop, task); /* each has a copy of its first MB */
	else
		loop_queue(listing->thread->loop, task);
}

static void autoindex_work_done(struct job *job)
{
	struct listing *listing = container_of(job, struct listing, job);

	if (listing->text)
		listing->made = g_string_free_to_bytes(g_steal_pointer(&listing->text));
	/* Its waiters have left. */
	if (!job->worked || (!listing->made && !listing->error))
		listing->error = -ECANCELED;
	listing->done = true;
	listing->answer.run = autoindex_answer_next;
	autoindex_answer_next(&listing->answer);
}

/* The client has left. */
static void autoindex_gone(struct transaction *transaction)
{
	struct waiter *waiter = waiter_of(transaction);
	struct listing *listing = waiter->listing;

	list_remove(&waiter->node);
	if (list_is_empty(&listing->waiters) && !listing->done)
		thread_pool_cancel(&listing->job);
	transaction->responder = NULL;
	refuse(transaction, -ECANCELED);
	transaction_done(transaction);
}

/* Most such clients have left. */
static void autoindex_half_closed(struct transaction *transaction)
{
	struct listing *listing = waiter_of(transaction)->listing;

	if (listing->done || list_first(&listing->waiters, struct waiter, node) !=
				     list_last(&listing->waiters, struct waiter, node))
		return;
	listing->deferred = true;
	thread_pool_defer(&listing->job);
}

static const struct transaction_responder waits = {.gone = autoindex_gone,
						   .half_closed = autoindex_half_closed};

/* Returns the queued listing that is the response to this request too; NULL: none is. */
static struct listing *equal_listing(const struct transaction *transaction, const char *path,
				     const struct autoindex_wish *wish)
{
	const struct list *listings = &transaction->thread->handler->listings;
	const struct scope *scope = transaction->scope;
	const struct file_cache *cache = site_scope(transaction->config_ref, scope)->file_cache;
	struct listing *other = list_last(listings, struct listing, node);

	for (unsigned i = 0; other && i < EQUAL_MAX;
	     i++, other = list_previous(listings, other, node))
		if (!list_is_empty(&other->waiters) && !other->deferred &&
		    !atomic_load(&other->begun) && other->cache == cache &&
		    other->hidden == scope->hidden && other->wish.json == wish->json &&
		    other->wish.order.column == wish->order.column &&
		    other->wish.order.descending == wish->order.descending &&
		    strcmp(other->path, path) == 0 && strcmp(other->as, transaction->path) == 0)
			return other;
	return NULL;
}

static struct listing *new_listing(const struct transaction *transaction, const char *path,
				   const struct autoindex_wish *wish)
{
	struct thread *thread = transaction->thread;
	struct listing *listing = g_new0(struct listing, 1);

	listing->job = (struct job){.work = autoindex_work,
				    .done = autoindex_work_done,
				    .loop = thread->loop,
				    .class = JOB_SLOW,
				    .client = client_address(transaction->peer.remote)};
	listing->thread = thread;
	listing->path = g_strdup(path);
	listing->as = g_strdup(transaction->path);
	listing->cache =
		file_cache_ref(site_scope(transaction->config_ref, transaction->scope)->file_cache);
	listing->hidden = transaction->scope->hidden;
	listing->wish = *wish;
	list_append(&thread->handler->listings, &listing->node);
	return listing;
}

enum respond autoindex_respond(struct transaction *transaction, const char *path,
			       struct autoindex_wish wish)
{
	struct waiter *waiter = waiter_of(transaction);
	struct listing *equal = equal_listing(transaction, path, &wish);
	struct listing *listing = equal ? equal : new_listing(transaction, path, &wish);

	*waiter = (struct waiter){.transaction = transaction, .listing = listing};
	list_append(&listing->waiters, &waiter->node);
	transaction->responder = &waits;
	if (!equal)
		thread_pool_submit(transaction->thread->server->slow_pool, &listing->job);
	return RESPOND_LATER;
}
