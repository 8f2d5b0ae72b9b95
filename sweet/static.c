/* SPDX-License-Identifier: MIT */
/*
 * static.c - from a decoded path to the unit that holds the file, or to the
 * status that says why there is none.  Runs on the transaction's thread.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <glib.h>

#include <filestream.h>
#include <server.h>
#include <static.h>

#define INDEX "index.html"

/* In the transaction's scratch. */
struct wait {
	struct content_waiter waiter;
	struct transaction *transaction;
	struct content_entry *entry;
	bool index; /* the index file of a folder was asked for */
};

static_assert(sizeof(struct wait) <= TRANSACTION_SCRATCH, "fits the scratch");

static struct wait *wait_of(struct transaction *transaction)
{
	return (struct wait *)(void *)transaction->scratch;
}

static void finish(struct transaction *transaction)
{
	struct wait *wait = wait_of(transaction);

	if (wait->entry)
		content_put(transaction->scope->content, wait->entry);
	wait->entry = NULL;
}

/* A folder that was asked for without its slash (RFC 9110, section 15.4.2). */
static enum respond redirect(struct transaction *transaction)
{
	char *escaped = g_uri_escape_string(transaction->path, "/", FALSE);
	int length = snprintf(transaction->head_buffer, sizeof(transaction->head_buffer),
			      "Location: %s/\r\n", escaped);

	g_free(escaped);
	if ((size_t)length >= sizeof(transaction->head_buffer))
		return transaction_fail(transaction, 414, NULL);
	transaction->head = transaction->head_buffer;
	transaction->head_length = (size_t)length;
	return transaction_fail(transaction, 301, NULL);
}

static enum respond refuse(struct transaction *transaction, const struct wait *wait, int error)
{
	const struct content *content = transaction->scope->content;
	struct file_version folder;

	switch (error) {
	case -EISDIR:
		return wait->index ? transaction_fail(transaction, 403, NULL)
				   : redirect(transaction);
	case -ENOENT:
		/* A folder without index is there, but not to be listed. */
		if (wait->index) {
			size_t length = strlen(transaction->path) - strlen(INDEX);

			transaction->path[length] = '\0';
			if (docroot_peek(content_root(content), transaction->path, &folder) == 0)
				return transaction_fail(transaction, 403, NULL);
		}
		return transaction_fail(transaction, 404, NULL);
	case -ENOTDIR:
	case -ENAMETOOLONG:
		return transaction_fail(transaction, 404, NULL);
	case -EACCES:
	case -EPERM:
	case -ELOOP:
		return transaction_fail(transaction, 403, NULL);
	case -EAGAIN:
		return transaction_fail(transaction, 503, "The file is being changed.");
	case -ENOMEM:
	case -EMFILE:
	case -ENFILE:
		log_error("%s: %s", transaction->path, strerror(-error));
		return transaction_fail(transaction, 503, NULL);
	default:
		log_error("%s: %s", transaction->path, strerror(-error));
		return transaction_fail(transaction, 500, NULL);
	}
}

/* Too large for a unit: the head is copied and the entry goes back. */
static enum respond stream(struct transaction *transaction, struct content_entry *entry)
{
	const struct content_view *view = content_view(entry);
	struct file_version version = view->version;
	char *path = g_strdup(view->path);
	enum respond respond;

	memcpy(transaction->head_buffer, view->head, view->head_length);
	transaction->head = transaction->head_buffer;
	content_put(transaction->scope->content, entry);
	respond = filestream_respond(transaction, path, &version);
	g_free(path);
	return respond;
}

static enum respond answer(struct transaction *transaction)
{
	struct wait *wait = wait_of(transaction);
	const struct content_view *view;

	if (wait->waiter.result.error)
		return refuse(transaction, wait, wait->waiter.result.error);
	wait->entry = wait->waiter.result.entry;
	view = content_view(wait->entry);
	transaction->status = 200;
	transaction->head = view->head;
	transaction->head_length = view->head_length;
	transaction->length = (uint64_t)view->version.size;
	if (!view->id && view->version.size > 0 && !transaction->head_only)
		return stream(transaction, wait->entry);
	transaction->finish = finish;
	if (view->id)
		transaction->body =
			(struct NC_range){.id = view->id, .length = (size_t)view->version.size};
	return RESPOND_NOW;
}

static void arrived(struct content_waiter *waiter)
{
	struct wait *wait = (struct wait *)waiter;
	struct transaction *transaction = wait->transaction;

	if (answer(transaction) == RESPOND_NOW)
		transaction->done(transaction);
}

enum respond static_respond(struct transaction *transaction)
{
	struct wait *wait = wait_of(transaction);
	size_t length = strlen(transaction->path);

	*wait = (struct wait){.waiter = {.arrived = arrived, .loop = transaction->server->loop},
			      .transaction = transaction};
	if (transaction->path[length - 1] == '/') {
		if (length + sizeof(INDEX) > sizeof(transaction->path))
			return transaction_fail(transaction, 414, NULL);
		memcpy(transaction->path + length, INDEX, sizeof(INDEX));
		wait->index = true;
	}
	if (!content_get(transaction->scope->content, transaction->path, &wait->waiter))
		return RESPOND_LATER;
	return answer(transaction);
}
