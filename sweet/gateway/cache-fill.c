/* SPDX-License-Identifier: MIT */
/*
 * cache-fill.c - see cache-fill.h.  Runs on the transaction's thread.
 *
 * A fetch for the cache always requests the whole response, even if its own client has a part of
 * it, so that the response can be stored.
 *
 * A refresh is a transaction of its own without a connection: it releases the body as soon as it
 * comes.  It may outlive the client whose request caused it, and so copies what it needs of the
 * request.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <netinet/in.h>

#include <glib.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "backend/backend-call.h"
#include "backend/cache-store.h"
#include "backend/cache-validate.h"
#include "backend/pool.h"
#include "backend/protocol.h"
#include "base/container.h"
#include "base/date.h"
#include "base/slice.h"
#include "config/configuration.h"
#include "core/transaction.h"
#include "event/piece.h"
#include "gateway/cache-fill.h"
#include "http/request.h"
#include "respcache/respcache.h"

/* --- for a client ----------------------------------------------------------------------- */

static bool is_condition(struct slice name)
{
	return slice_is(name, "Range") || (name.length > 3 && strncasecmp(name.at, "If-", 3) == 0);
}

/* Makes the request unconditional and without ranges. */
static void make_plain(struct request *plain, const struct request *request)
{
	request_copy(plain, request);
	plain->header_count = 0;
	for (unsigned i = 0; i < request->header_count; i++)
		if (!is_condition(request->headers[i].name))
			plain->headers[plain->header_count++] = request->headers[i];
	plain->conditional = false;
}

enum respond cache_fill(struct gateway_pool *pool, struct transaction *transaction, size_t skip,
			struct respcache_flight *flight, struct respcache_entry *outdated,
			bool client_has_it)
{
	const struct request *request = transaction->request;
	char date[DATE_LENGTH];
	enum respond respond;
	struct request plain;

	cache_store_flight(transaction, flight);
	if (request->conditional || outdated) {
		make_plain(&plain, request);
		transaction->request = &plain;
	}
	if (outdated && pool->protocol->validates &&
	    cache_validate_ask(&plain, respcache_view(outdated), date))
		cache_store_outdated(transaction, outdated, client_has_it);
	else if (outdated)
		respcache_put(outdated);
	respond = backend_call_start(pool, transaction, skip);
	transaction->request = request;
	/* The call was refused at once: only this tells the requests that wait for the fetch. */
	if (respond == RESPOND_NOW)
		cache_store_drop(transaction, RESPCACHE_LOST);
	return respond;
}

/* --- for the cache alone ---------------------------------------------------------------- */

struct refresh {
	struct transaction transaction;
	struct sockaddr_storage remote, local;
	char *remote_addr, *server_addr;
	uint64_t taken; /* bytes of the body */
	bool begun;
};

static void end(struct refresh *refresh)
{
	struct transaction *transaction = &refresh->transaction;

	transaction_finish(transaction);
	cache_store_drop(transaction, RESPCACHE_LOST);
	transaction_release(transaction);
	g_free(refresh->remote_addr);
	g_free(refresh->server_addr);
	g_free(refresh);
}

/* Whether nothing follows the current piece. */
static bool is_last(const struct refresh *refresh, uint64_t piece)
{
	const struct transaction *transaction = &refresh->transaction;

	/* 101: what follows is no response. */
	if (transaction->response.status == 0 || transaction->response.status == 101 ||
	    !transaction_has_next(transaction))
		return true;
	if (transaction->response.length == TRANSACTION_UNKNOWN)
		return refresh->begun && piece == 0;
	return refresh->taken >= transaction->response.length || (refresh->begun && piece == 0);
}

static void fill_done(struct transaction *transaction)
{
	struct refresh *refresh = container_of(transaction, struct refresh, transaction);

	for (;;) {
		uint64_t piece = transaction->piece.length;

		refresh->taken += piece;
		if (is_last(refresh, piece))
			break;
		refresh->begun = true;
		if (transaction_next(transaction) == RESPOND_LATER)
			return;
	}
	end(refresh);
}

static void fill_resume(struct transaction *transaction,
			enum respond (*respond)(struct transaction *transaction, void *context),
			void *context)
{
	if (respond(transaction, context) == RESPOND_NOW)
		fill_done(transaction);
}

/* A request with a body is not refreshed: there is none to receive. */
static void fill_receive(struct transaction *transaction, uint64_t limit)
{
	(void)limit;
	end(container_of(transaction, struct refresh, transaction));
}

static void fill_receive_piece(struct transaction *transaction, uint64_t limit, size_t window)
{
	(void)limit;
	(void)window;
	end(container_of(transaction, struct refresh, transaction));
}

static void fill_drop_upload(struct transaction *transaction)
{
	(void)transaction;
}

static uint64_t fill_moved(const struct transaction *transaction)
{
	return container_of(transaction, const struct refresh, transaction)->taken;
}

static void fill_give_up(struct transaction *transaction)
{
	end(container_of(transaction, struct refresh, transaction));
}

/* Nothing comes from a client. */
static void fill_hold_input(struct transaction *transaction, bool hold)
{
	(void)transaction;
	(void)hold;
}

/* There is no client. */
static void fill_interim(struct transaction *transaction, int status, struct slice lines)
{
	(void)transaction;
	(void)status;
	(void)lines;
}

static const struct transaction_owner owner = {
	.done = fill_done,
	.resume = fill_resume,
	.receive = fill_receive,
	.receive_piece = fill_receive_piece,
	.drop_upload = fill_drop_upload,
	.moved = fill_moved,
	.give_up = fill_give_up,
	.hold_input = fill_hold_input,
	.interim = fill_interim,
};

/* A redirection to another path, or to a file, is not stored for this path. */
static void fill_again(struct transaction *transaction, const struct kept_request *kept,
		       struct slice target)
{
	(void)kept;
	(void)target;
	end(container_of(transaction, struct refresh, transaction));
}

static void fill_send_file(struct transaction *transaction, const struct kept_request *kept,
			   const struct scope *files, const char *path)
{
	(void)kept;
	(void)files;
	(void)path;
	end(container_of(transaction, struct refresh, transaction));
}

/* No phase has made it wait. */
static enum respond fill_proceed(struct transaction *transaction)
{
	return transaction_fail(transaction, 500, NULL);
}

static const struct transaction_router router = {
	.again = fill_again, .send_file = fill_send_file, .proceed = fill_proceed};

static void take_address(struct sockaddr_storage *to, const struct sockaddr *from)
{
	socklen_t length = from->sa_family == AF_INET	 ? sizeof(struct sockaddr_in)
			   : from->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
							 : sizeof(from->sa_family);

	memcpy(to, from, length);
}

static struct refresh *create(const struct transaction *like)
{
	struct refresh *refresh = g_new0(struct refresh, 1);
	struct transaction *transaction = &refresh->transaction;

	refresh->remote_addr = g_strdup(like->peer.remote_addr);
	refresh->server_addr = g_strdup(like->peer.server_addr);
	take_address(&refresh->remote, like->peer.remote);
	take_address(&refresh->local, like->peer.local);
	transaction_init(transaction, like->thread, like->config_ref);
	transaction->host = like->host;
	transaction->scope = like->scope;
	transaction->peer.remote_addr = refresh->remote_addr;
	transaction->peer.remote_port = like->peer.remote_port;
	transaction->peer.remote = (struct sockaddr *)&refresh->remote;
	transaction->peer.server_addr = refresh->server_addr;
	transaction->peer.server_port = like->peer.server_port;
	transaction->peer.secure = like->peer.secure;
	transaction->peer.https = like->peer.https;
	transaction->peer.policy = like->peer.policy;
	transaction->peer.local = (struct sockaddr *)&refresh->local;
	strcpy(transaction->path, like->path);
	transaction->route.query = g_strdup(like->route.query);
	strcpy(transaction->remote_user, like->remote_user);
	strcpy(transaction->trace.id, like->trace.id);
	strcpy(transaction->trace.traceparent, like->trace.traceparent);
	transaction->trace.begins = like->trace.begins;
	transaction->route.captures = like->route.captures;
	transaction->owner = &owner;
	transaction->router = &router;
	return refresh;
}

void cache_fill_refresh(struct gateway_pool *pool, const struct transaction *transaction,
			size_t skip, struct respcache_flight *flight)
{
	struct refresh *refresh = create(transaction);
	struct transaction *own = &refresh->transaction;

	own->request = transaction->request;
	if (cache_fill(pool, own, skip, flight, NULL, false) == RESPOND_NOW)
		end(refresh);
	else
		own->request = NULL;
}
