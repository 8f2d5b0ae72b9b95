/* SPDX-License-Identifier: MIT */
/*
 * browse.c - see browse.h.  A helper reads the folder and writes the text; the
 * rest is on the transaction's thread.  A folder is read for each request:
 * listings are for people, and nothing of them has to be kept right.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "core/server.h"
#include "files/docroot.h"
#include "files/folder.h"
#include "handler/browse.h"
#include "handler/textbody.h"
#include "http/accept.h"

#define TEXT_MAX ((size_t)8 << 20) /* bytes of a listing */

/* In the transaction's scratch. */
struct browse {
	struct job job; /* must be first */
	struct transaction *transaction;
	const char *path;
	struct browse_wish wish;
	GString *text;
	bool cut; /* JSON cannot say by itself that it is not all */
	int error;
};

static_assert(sizeof(struct browse) <= TRANSACTION_SCRATCH, "fits the scratch");

struct browse_wish browse_wish(const struct request *request)
{
	struct slice format = listing_query(request->query, "format");
	struct browse_wish wish = {.order = listing_order(request->query)};

	wish.json = format.at ? slice_is(format, "json") : accept_prefers_json(request);
	return wish;
}

static void work(struct job *job)
{
	struct browse *browse = (struct browse *)job;
	const struct transaction *transaction = browse->transaction;
	const struct scope *scope = transaction->scope;
	struct listing listing = {.path = transaction->path, .order = browse->wish.order};
	struct folder folder;

	browse->error = folder_read(content_root(scope->content), browse->path, scope->hidden,
				    BROWSE_MAX, &folder);
	if (browse->error)
		return;
	listing_sort(folder.entries, folder.count, browse->wish.order);
	listing.entries = folder.entries;
	listing.count = folder.count;
	listing.more = folder.more;
	browse->text = browse->wish.json ? listing_json(&listing, TEXT_MAX, &browse->cut)
					 : listing_html(&listing, TEXT_MAX);
	folder_clear(&folder);
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
		log_error("listing %s: %s", transaction->path, strerror(-error));
		transaction_refuse(transaction, 503, "no memory or descriptor for the folder");
		return;
	default:
		log_error("listing %s: %s", transaction->path, strerror(-error));
		transaction_fail(transaction, 500, NULL);
	}
}

/* The same for each listing; names are escaped, and this is a second fence. */
#define LINES                                                                                      \
	"Cache-Control: no-cache\r\nVary: Accept\r\nX-Content-Type-Options: nosniff\r\n"           \
	"Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'\r\n"
#define CUT "X-Listing: incomplete\r\n"

static void work_done(struct job *job)
{
	struct browse *browse = (struct browse *)job;
	struct transaction *transaction = browse->transaction;
	GString *text = browse->text;
	int error = browse->error;

	if (!error) {
		strcpy(transaction->head_buffer, browse->cut ? LINES CUT : LINES);
		transaction->head_length = strlen(transaction->head_buffer);
		/* The scratch is the text's from here on. */
		error = textbody_set(
			transaction,
			browse->wish.json ? "application/json" : "text/html; charset=utf-8", text);
		if (error)
			transaction->head_length = 0;
	}
	if (error)
		refuse(transaction, error);
	transaction->done(transaction);
}

enum respond browse_respond(struct transaction *transaction, const char *path,
			    struct browse_wish wish)
{
	struct browse *browse = (struct browse *)(void *)transaction->scratch;

	*browse = (struct browse){
		.job = {.work = work, .done = work_done, .loop = transaction->server->loop},
		.transaction = transaction,
		.path = path,
		.wish = wish,
	};
	helper_submit(transaction->server->site->helpers, &browse->job);
	return RESPOND_LATER;
}
