/* SPDX-License-Identifier: MIT */
/*
 * static.c - finds the unit of the file for a decoded path, or the status that says why there is
 * none.  Runs on the transaction's thread.
 *
 * A request may need several look-ups, one after the other, each of which may wait for a helper
 * thread: the index names of a directory, the file, and its precompressed variants.
 * transaction->path is the name that is looked up; appended text is removed afterwards.
 */
#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <glib.h>

#include "base/container.h"
#include "base/slice.h"
#include "coding/compress-rule.h"
#include "config/config-script.h"
#include "config/configuration.h"
#include "core/file-path.h"
#include "core/server.h"
#include "core/site.h"
#include "event/client-limit.h"
#include "files/docroot.h"
#include "files/file-cache-tick.h"
#include "files/file-cache.h"
#include "handler/autoindex.h"
#include "handler/file-response.h"
#include "handler/phase.h"
#include "handler/static-variant.h"
#include "handler/static.h"
#include "http/accept.h"
#include "http/redirect.h"
#include "log/log.h"

/* Lies in the transaction's scratch memory. */
struct wait {
	struct file_cache_waiter waiter;
	struct transaction *transaction;
	struct file_cache_entry *entry; /* the file */
	/* the variant that is sent instead, in that coding; NULL: the file itself */
	struct file_cache_entry *sibling;
	enum coding coding;
	bool varies;	/* there are variants, or may be */
	size_t length;	/* of the path without appended text */
	unsigned index; /* index names that were looked up */
	bool folder;
	bool wishes_known;
	unsigned orders, tried; /* accepted codings, and how many were tried */
	enum coding order[CODINGS];
	unsigned siblings; /* bit for each coding that exists */
	struct autoindex_wish browse;
	size_t query_length; /* the query is saved in head_buffer */
};

static_assert(sizeof(struct wait) <= TRANSACTION_SCRATCH, "fits the scratch");

static struct wait *wait_of(struct transaction *transaction)
{
	return (struct wait *)(void *)transaction->scratch;
}

/* Returns the scope whose folder has the file. */
static const struct scope *files_of(const struct transaction *transaction)
{
	return transaction->route.files ? transaction->route.files : transaction->scope;
}

static struct file_cache *file_cache_of(const struct transaction *transaction)
{
	return site_scope(transaction->config_ref, files_of(transaction))->file_cache;
}

/* Returns the path relative to the file cache's directory. */
static const char *file_path(const struct transaction *transaction)
{
	return file_path_of(files_of(transaction), transaction->path);
}

bool static_hides(const struct transaction *transaction)
{
	return file_path_is_hidden(files_of(transaction), transaction->path);
}

int static_look(const struct transaction *transaction, bool folder)
{
	struct file_version version;
	bool is_folder;
	int error = docroot_look(file_cache_root(file_cache_of(transaction)),
				 file_path(transaction), &is_folder, &version);

	if (error || is_folder == folder)
		return error;
	return folder ? -ENOTDIR : -EISDIR;
}

bool static_finds(const struct transaction *transaction, bool folder)
{
	return static_look(transaction, folder) == 0;
}

bool static_has_folder(const struct transaction *transaction, const struct scope *scope)
{
	const char *path = transaction->path;
	struct file_version version;
	bool folder;

	return !file_path_is_hidden(scope, path) &&
	       docroot_look(file_cache_root(site_scope(transaction->config_ref, scope)->file_cache),
			    file_path_of(scope, path), &folder, &version) == 0 &&
	       folder;
}

/* Appends to the path; returns false if it becomes too long. */
static bool append(struct transaction *transaction, const char *name)
{
	struct wait *wait = wait_of(transaction);
	size_t length = strlen(name);

	if (wait->length + length >= sizeof(transaction->path))
		return false;
	memcpy(transaction->path + wait->length, name, length + 1);
	return true;
}

static void cut(struct transaction *transaction)
{
	transaction->path[wait_of(transaction)->length] = '\0';
}

/* --- refusing --------------------------------------------------------------------- */

/* Redirects a request for a directory without its slash (RFC 9110, section 15.4.2). */
static enum respond redirect(struct transaction *transaction)
{
	size_t query_length = wait_of(transaction)->query_length, length;
	char *query;

	if (!phase_folder_is_there(transaction))
		return transaction_fail(transaction, 404, NULL);
	query = g_memdup2(transaction->head_buffer, query_length);
	length = redirect_write_folder(transaction->path, (struct slice){query, query_length},
				       transaction->head_buffer, sizeof(transaction->head_buffer));
	g_free(query);
	if (!length)
		return transaction_fail(transaction, 414, NULL);
	transaction->response.head = transaction->head_buffer;
	transaction->response.head_length = length;
	return transaction_fail(transaction, 301, NULL);
}

/* Responds for a directory without an index. */
static enum respond answer_folder(struct transaction *transaction)
{
	struct autoindex_wish wish = wait_of(transaction)->browse;
	struct file_version folder;

	cut(transaction);
	if (transaction->scope->listing)
		return autoindex_respond(transaction, file_path(transaction), wish);
	/* The directory exists, but must not be listed. */
	if (docroot_peek(file_cache_root(file_cache_of(transaction)), file_path(transaction),
			 &folder))
		return transaction_fail(transaction, 404, NULL);
	return transaction_refuse(transaction, 403, "a folder without index and listing");
}

static enum respond refuse(struct transaction *transaction, int error)
{
	switch (error) {
	case -EISDIR:
		/* A program has named a file; clients do not know its path. */
		return transaction->route.files ? transaction_fail(transaction, 404, NULL)
						: redirect(transaction);
	case -ENOENT:
	case -ENOTDIR:
	case -ENAMETOOLONG:
		return transaction_fail(transaction, 404, NULL);
	case -EACCES:
	case -EPERM:
	case -ELOOP:
		return transaction_refuse(transaction, 403, docroot_denied(error));
	case -EAGAIN:
		return transaction_fail(transaction, 503, "The file is being changed.");
	case -ECANCELED:
		return transaction_refuse(transaction, 503, "the client has left");
	case -ENOMEM:
	case -EMFILE:
	case -ENFILE:
		log_error("%s: %s", transaction->path, strerror(-error));
		return transaction_refuse(transaction, 503, "no memory or descriptor for the file");
	default:
		log_error("%s: %s", transaction->path, strerror(-error));
		return transaction_fail(transaction, 500, NULL);
	}
}

/* --- the answer -------------------------------------------------------------------- */

struct lines {
	char *at, *end;
};

/* Adds a line if it fits as a whole. */
static void put(struct lines *lines, const char *first, size_t length, const char *value)
{
	size_t value_length = strlen(value);

	if (length + value_length + 2 > (size_t)(lines->end - lines->at))
		return;
	memcpy(lines->at, first, length);
	memcpy(lines->at + length, value, value_length);
	memcpy(lines->at + length + value_length, "\r\n", 2);
	lines->at += length + value_length + 2;
}

#define NAME(text) text, sizeof(text) - 1

/* Writes the lines that go with the file for every status. */
static void make_head(struct transaction *transaction)
{
	const struct wait *wait = wait_of(transaction);
	struct lines lines = {transaction->head_buffer,
			      transaction->head_buffer + sizeof(transaction->head_buffer)};
	const struct cache_rule *rule = static_cache_rule(transaction);

	if (wait->sibling)
		put(&lines, NAME("Content-Encoding: "), coding_token(wait->coding));
	if (wait->varies)
		put(&lines, NAME("Vary: "), "Accept-Encoding");
	if (rule)
		put(&lines, NAME("Cache-Control: "), rule->value);
	transaction->response.head = transaction->head_buffer;
	transaction->response.head_length = (size_t)(lines.at - transaction->head_buffer);
}

static enum respond answer(struct transaction *transaction)
{
	struct wait *wait = wait_of(transaction);
	struct file_cache_entry *sent = wait->sibling ? wait->sibling : wait->entry;
	const char *type = file_cache_view(wait->entry)->type;

	if (wait->varies || transaction->scope->cache_rule_count)
		make_head(transaction);
	/* The type is that of the original file; it remains valid after the entry is released. */
	if (wait->sibling)
		file_cache_tick_put(transaction->thread->tick, file_cache_of(transaction),
				    wait->entry);
	return file_response_respond(transaction, file_cache_of(transaction), sent, type);
}

static enum respond answer_plain(struct transaction *transaction)
{
	struct wait *wait = wait_of(transaction);

	if (wait->tried)
		cut(transaction);
	/* The Vary of a program that has a file sent would replace the one that a variant needs. */
	if (transaction->scope->compress.codings && !transaction->response.accel_lines)
		wait->sibling = static_variant(transaction, wait->entry, wait->order, wait->orders,
					       &wait->coding, &wait->varies);
	return answer(transaction);
}

/* --- looking ----------------------------------------------------------------------- */

static enum respond arrived_now(struct transaction *transaction);

/* Reads the accepted codings while the request exists, if the file has variants. */
static void learn_wishes(struct transaction *transaction)
{
	struct wait *wait = wait_of(transaction);

	if (wait->wishes_known ||
	    !(transaction->scope->precompressed || transaction->scope->compress.codings))
		return;
	wait->wishes_known = true;
	wait->orders = accept_codings_by(transaction->request, transaction->scope->compress.order,
					 wait->order);
}

static void static_gone(struct transaction *transaction)
{
	file_cache_leave(&wait_of(transaction)->waiter);
}

static const struct transaction_responder waits = {.gone = static_gone};

static enum respond look(struct transaction *transaction)
{
	struct wait *wait = wait_of(transaction);

	if (file_cache_tick_get(transaction->thread->tick, file_cache_of(transaction),
				file_path(transaction), &wait->waiter))
		return arrived_now(transaction);
	learn_wishes(transaction);
	transaction->responder = &waits;
	return RESPOND_LATER;
}

/* Looks up the codings in their order until one exists. */
static enum respond next_sibling(struct transaction *transaction)
{
	struct wait *wait = wait_of(transaction);

	while (wait->tried < wait->orders) {
		enum coding coding = wait->order[wait->tried++];

		if (!(wait->siblings & 1u << coding))
			continue;
		if (append(transaction, coding_suffix(coding)))
			return look(transaction);
	}
	return answer_plain(transaction);
}

static enum respond sibling_arrived(struct transaction *transaction)
{
	struct wait *wait = wait_of(transaction);
	enum coding coding = wait->order[wait->tried - 1];
	struct file_cache_entry *entry = wait->waiter.result.entry;

	if (!wait->waiter.result.error &&
	    file_version_follows(&file_cache_view(entry)->version,
				 &file_cache_view(wait->entry)->version)) {
		wait->sibling = entry;
		wait->coding = coding;
		cut(transaction);
		return answer(transaction);
	}
	if (!wait->waiter.result.error)
		file_cache_tick_put(transaction->thread->tick, file_cache_of(transaction), entry);
	file_cache_sibling_unfit(wait->entry, coding);
	wait->siblings &= ~(1u << coding);
	wait->varies = wait->siblings;
	return next_sibling(transaction);
}

/* A file that a program names has no scope. */
static bool is_source(const struct transaction *transaction)
{
	return config_is_source(transaction->config_ref->config,
				transaction->route.files ? NULL : transaction->scope,
				transaction->path);
}

static bool is_missing(const struct transaction *transaction)
{
	struct file_version version;

	return docroot_peek(file_cache_root(file_cache_of(transaction)), file_path(transaction),
			    &version) == -ENOENT;
}

/* Looks up the next index name of a directory. */
static enum respond next_index(struct transaction *transaction)
{
	struct wait *wait = wait_of(transaction);
	char **names = transaction->scope->index;

	while (names[wait->index] && !transaction->route.no_index) {
		if (!append(transaction, names[wait->index++]))
			return transaction_fail(transaction, 414, NULL);
		/* A script that no pool runs here does not exist. */
		if (static_hides(transaction) || is_source(transaction))
			continue;
		/* Skip a missing name here: cheaper than to ask a helper. */
		if (!names[wait->index] || !is_missing(transaction))
			return look(transaction);
	}
	return answer_folder(transaction);
}

static enum respond file_arrived(struct transaction *transaction)
{
	struct wait *wait = wait_of(transaction);
	int error = wait->waiter.result.error;

	if (wait->folder && (error == -ENOENT || error == -EISDIR))
		return next_index(transaction);
	if (error)
		return refuse(transaction, error);
	/* Its pool runs it; here its source would be sent. */
	if (is_source(transaction)) {
		file_cache_tick_put(transaction->thread->tick, file_cache_of(transaction),
				    wait->waiter.result.entry);
		return transaction_fail(transaction, 404, NULL);
	}
	wait->entry = wait->waiter.result.entry;
	if (transaction->scope->precompressed)
		wait->siblings = file_cache_siblings(wait->entry, transaction->thread->loop);
	wait->varies = wait->siblings;
	if (wait->siblings || transaction->scope->compress.codings)
		learn_wishes(transaction);
	if (!wait->siblings)
		return answer_plain(transaction);
	wait->length = strlen(transaction->path);
	return next_sibling(transaction);
}

static enum respond arrived_now(struct transaction *transaction)
{
	return wait_of(transaction)->entry ? sibling_arrived(transaction)
					   : file_arrived(transaction);
}

/* The client has left meanwhile: there is nothing more to look up. */
static enum respond end_left(struct transaction *transaction)
{
	struct wait *wait = wait_of(transaction);
	struct file_cache_tick *tick = transaction->thread->tick;

	if (!wait->waiter.result.error)
		file_cache_tick_put(tick, file_cache_of(transaction), wait->waiter.result.entry);
	if (wait->entry)
		file_cache_tick_put(tick, file_cache_of(transaction), wait->entry);
	return refuse(transaction, -ECANCELED);
}

static void static_arrived(struct file_cache_waiter *waiter)
{
	struct transaction *transaction = container_of(waiter, struct wait, waiter)->transaction;

	transaction->responder = NULL;
	if (waiter->left ? end_left(transaction) == RESPOND_NOW
			 : arrived_now(transaction) == RESPOND_NOW)
		transaction_done(transaction);
}

enum respond static_respond(struct transaction *transaction)
{
	const struct request *request = transaction->request;
	const struct scope *scope = transaction->scope;
	struct slice query = transaction_query(transaction);
	struct wait *wait = wait_of(transaction);

	*wait = (struct wait){.waiter = {.arrived = static_arrived,
					 .loop = transaction->thread->loop,
					 .client = client_address(transaction->peer.remote)},
			      .transaction = transaction,
			      .length = strlen(transaction->path)};
	if (static_hides(transaction))
		return transaction_fail(transaction, 404, NULL);
	if (!file_response_begin(transaction))
		return RESPOND_NOW;
	if (transaction->path[wait->length - 1] == '/') {
		/* A program names a file, not a folder with its index or list. */
		if (transaction->route.files)
			return transaction_fail(transaction, 404, NULL);
		wait->folder = true;
		if (scope->listing)
			wait->browse = autoindex_wish(request);
		return next_index(transaction);
	}
	/* If the path is a directory, the redirect keeps the query. */
	if (query.length && query.length < sizeof(transaction->head_buffer)) {
		memcpy(transaction->head_buffer, query.at, query.length);
		wait->query_length = query.length;
	}
	return look(transaction);
}
