/* SPDX-License-Identifier: MIT */
/*
 * autoindex.c - see autoindex.h.  A helper thread reads the directory and writes the text; the rest
 * runs on the transaction's thread.  Listings are not cached: people read them, so they are rare,
 * and a cache would have to be kept up to date.
 */
#include <assert.h>
#include <errno.h>
#include <glib.h>
#include <stdbool.h>
#include <string.h>

#include "base/slice.h"
#include "config/configuration.h"
#include "core/server.h"
#include "core/text-response.h"
#include "event/thread-pool.h"
#include "files/docroot.h"
#include "files/file-cache.h"
#include "files/read-directory.h"
#include "handler/autoindex.h"
#include "http/accept.h"
#include "http/request.h"
#include "log/log.h"

#define TEXT_MAX ((size_t)8 << 20) /* bytes of a listing */

/* Lies in the transaction's scratch memory. */
struct autoindex {
	struct job job; /* must be first */
	struct transaction *transaction;
	const char *path;
	struct autoindex_wish wish;
	GString *text;
	bool cut; /* JSON has no other way to show that the listing is truncated */
	int error;
};

static_assert(sizeof(struct autoindex) <= TRANSACTION_SCRATCH, "fits the scratch");

struct autoindex_wish autoindex_wish(const struct request *request)
{
	struct slice format = autoindex_query(request->query, "format");
	struct autoindex_wish wish = {.order = autoindex_order(request->query)};

	wish.json = format.at ? slice_is(format, "json") : accept_prefers_json(request);
	return wish;
}

static void work(struct job *job)
{
	struct autoindex *autoindex = (struct autoindex *)job;
	const struct transaction *transaction = autoindex->transaction;
	const struct scope *scope = transaction->scope;
	struct autoindex_page page = {.path = transaction->path, .order = autoindex->wish.order};
	struct directory directory;

	autoindex->error = directory_read(file_cache_root(scope->file_cache), autoindex->path,
					  scope->hidden, AUTOINDEX_MAX, &directory);
	if (autoindex->error)
		return;
	autoindex_sort(directory.entries, directory.count, autoindex->wish.order);
	page.entries = directory.entries;
	page.count = directory.count;
	page.more = directory.more;
	autoindex->text = autoindex->wish.json ? autoindex_json(&page, TEXT_MAX, &autoindex->cut)
					       : autoindex_html(&page, TEXT_MAX);
	directory_clear(&directory);
}

static void refuse(struct transaction *transaction, int error)
{
	switch (error) {
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

static void work_done(struct job *job)
{
	struct autoindex *autoindex = (struct autoindex *)job;
	struct transaction *transaction = autoindex->transaction;
	GString *text = autoindex->text;
	int error = autoindex->error;

	if (!error) {
		strcpy(transaction->head_buffer, autoindex->cut ? LINES CUT : LINES);
		transaction->head_length = strlen(transaction->head_buffer);
		/* From here on the scratch memory belongs to the text response. */
		error = text_response_set(transaction,
					  autoindex->wish.json ? "application/json"
							       : "text/html; charset=utf-8",
					  text);
		if (error)
			transaction->head_length = 0;
	}
	if (error)
		refuse(transaction, error);
	transaction->done(transaction);
}

enum respond autoindex_respond(struct transaction *transaction, const char *path,
			       struct autoindex_wish wish)
{
	struct autoindex *autoindex = (struct autoindex *)(void *)transaction->scratch;

	*autoindex = (struct autoindex){
		.job = {.work = work, .done = work_done, .loop = transaction->thread->loop},
		.transaction = transaction,
		.path = path,
		.wish = wish,
	};
	thread_pool_submit(transaction->thread->server->thread_pool, &autoindex->job);
	return RESPOND_LATER;
}
