/* SPDX-License-Identifier: MIT */
/*
 * errorpage.c - see errorpage.h.  Runs on the transaction's thread.
 *
 * The response is complete, so its resources are released first and the scratch memory is reused.
 * The lines of the head (WWW-Authenticate, Allow, Retry-After) stay.
 */
#include <assert.h>
#include <nabc.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <glib.h>

#include "base/container.h"
#include "base/slice.h"
#include "config/config-script.h"
#include "config/path-rules.h"
#include "event/piece.h"
#include "core/server.h"
#include "core/site.h"
#include "event/client-limit.h"
#include "event/loop.h"
#include "files/docroot.h"
#include "files/file-cache-tick.h"
#include "files/file-cache.h"
#include "files/filehead.h"
#include "handler/errorpage.h"
#include "http/fields.h"
#include "rules/path-pattern.h"

/* Lies in the transaction's scratch memory. */
struct page {
	struct file_cache_waiter waiter;
	struct transaction *transaction;
	struct file_cache *cache;
	struct file_cache_entry *entry;
	int as; /* the status that is sent */
};

static_assert(sizeof(struct page) <= TRANSACTION_SCRATCH, "fits the scratch");

static struct page *page_of(struct transaction *transaction)
{
	return (struct page *)(void *)transaction->scratch;
}

static void errorpage_finish(struct transaction *transaction)
{
	struct page *page = page_of(transaction);

	file_cache_tick_put(transaction->thread->tick, page->cache, page->entry);
}

/* The page is sent. */
static const struct transaction_responder has_page = {.finish = errorpage_finish};

/* Returns the page for the status, or NULL. */
static const struct error_page *page_for(const struct transaction *transaction)
{
	const struct scope *scope = transaction->scope;

	for (unsigned i = 0; i < scope->error_page_count; i++)
		if (scope->error_pages[i].status == transaction->response.status)
			return &scope->error_pages[i];
	return NULL;
}

/* Returns false if the page cannot be sent. */
static bool set_body(struct transaction *transaction, const struct file_cache_entry *entry)
{
	size_t room = sizeof(transaction->head_buffer) - transaction->response.head_length;
	const struct file_cache_view *view = file_cache_view(entry);
	const struct filehead *head;
	struct filehead made;

	/* Too large for a unit: such a file is not an error page. */
	if (!view->id && view->version.size > 0)
		return false;
	/* Only the file's type and length apply to the page, not its other fields. */
	head = file_cache_head(entry, &made);
	if (room < head->own)
		return false;
	memcpy(transaction->head_buffer + transaction->response.head_length, head->text, head->own);
	transaction->response.head_length += head->own;
	transaction->response.length = (uint64_t)view->version.size;
	transaction->response.bodiless = !view->id;
	if (view->id)
		transaction->piece = piece_range(
			(struct NC_range){.id = view->id, .length = (size_t)view->version.size},
			view->hold);
	return true;
}

static void answer(struct transaction *transaction)
{
	struct page *page = page_of(transaction);

	if (page->waiter.result.error)
		return;
	page->entry = page->waiter.result.entry;
	if (set_body(transaction, page->entry)) {
		transaction->responder = &has_page;
		transaction->response.status = page->as;
	} else {
		file_cache_tick_put(transaction->thread->tick, page->cache, page->entry);
	}
}

static void errorpage_gone(struct transaction *transaction)
{
	file_cache_leave(&page_of(transaction)->waiter);
}

static const struct transaction_responder waits = {.gone = errorpage_gone};

static void errorpage_arrived(struct file_cache_waiter *waiter)
{
	struct transaction *transaction = container_of(waiter, struct page, waiter)->transaction;

	transaction->responder = NULL;
	answer(transaction);
	transaction_done(transaction);
}

/* Of the program's lines, those that belong to the status stay (RFC 9110). */
static void keep_lines(struct transaction *transaction)
{
	static const field_set names = FIELD_BIT(FIELD_ALLOW) | FIELD_BIT(FIELD_RETRY_AFTER) |
				       FIELD_BIT(FIELD_WWW_AUTHENTICATE);
	struct slice lines = {transaction->head_buffer, transaction->response.head_length};

	transaction->response.head_length =
		field_filter(lines, names, true, transaction->head_buffer);
}

/* What a program has answered is not sent. */
static void drop_body(struct transaction *transaction)
{
	keep_lines(transaction);
	transaction->response.length = 0;
	transaction->response.bodiless = transaction->response.live = false;
}

/* Copies the lines of the head to memory that lasts, and releases the response's resources. */
static bool take_over(struct transaction *transaction)
{
	if (transaction->response.head_length > sizeof(transaction->head_buffer))
		return false;
	if (transaction->response.head_length &&
	    transaction->response.head != transaction->head_buffer)
		memmove(transaction->head_buffer, transaction->response.head,
			transaction->response.head_length);
	transaction->response.head = transaction->head_buffer;
	transaction_dismiss(transaction);
	return true;
}

enum respond errorpage_find(struct transaction *transaction)
{
	const struct error_page *found = page_for(transaction);
	struct page *page = page_of(transaction);
	struct path_captures captures;
	const struct scope *scope;
	const struct path_rule *rule;
	bool bare = transaction_is_bare(transaction);

	transaction->response.error_page = true;
	if (!found || !(bare || transaction->scope->intercept_errors))
		return RESPOND_NOW;
	/* A path of the host: its scope may differ from that of the error. */
	scope = path_rules_find(transaction->config_ref->site->number, transaction->host,
				found->path, &transaction->thread->paths, &captures, &rule);
	/* Its pool is not asked, and its source is not sent. */
	if (!scope || config_is_source(transaction->config_ref->config, scope, found->path) ||
	    !take_over(transaction))
		return RESPOND_NOW;
	if (!bare)
		drop_body(transaction);
	*page = (struct page){
		.waiter = {.arrived = errorpage_arrived,
			   .loop = transaction->thread->loop,
			   .client = client_address(transaction->peer.remote)},
		.transaction = transaction,
		.cache = site_scope(transaction->config_ref, scope)->file_cache,
		.as = found->as,
	};
	if (!file_cache_tick_get(transaction->thread->tick, page->cache,
				 found->path + (scope->alias ? scope->alias_skip : 0),
				 &page->waiter)) {
		transaction->responder = &waits;
		return RESPOND_LATER;
	}
	answer(transaction);
	return RESPOND_NOW;
}
