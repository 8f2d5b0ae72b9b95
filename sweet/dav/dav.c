/* SPDX-License-Identifier: MIT */
/*
 * dav.c - see dav.h: from a request to the method that helper threads run, and to the response.
 *
 * What a call has is freed by a helper if that may block: to close a file without a name frees its
 * disk space.
 */
#include <assert.h>
#include <glib.h>
#include <nabc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "base/list.h"
#include "base/slice.h"
#include "config/configuration.h"
#include "core/file-path.h"
#include "core/server.h"
#include "core/text-response.h"
#include "dav/dav-body.h"
#include "dav/dav-call.h"
#include "dav/dav-if.h"
#include "dav/dav-locks.h"
#include "dav/dav-multistatus.h"
#include "dav/dav-place.h"
#include "dav/dav-request.h"
#include "dav/dav.h"
#include "event/client-limit.h"
#include "event/thread-pool.h"

#define LOCKS_MAX 4096u
#define PIECE ((size_t)256 << 10) /* bytes of a body that are written at a time */

static_assert(sizeof(struct dav_call *) <= TRANSACTION_SCRATCH, "fits the scratch");

/* --- the server's part ----------------------------------------------------------------------- */

struct dav *dav_open(unsigned helpers)
{
	struct dav *dav = calloc(1, sizeof(*dav));

	if (!dav)
		return NULL;
	pthread_mutex_init(&dav->mutex, NULL);
	dav->helpers = helpers;
	dav->locks = dav_locks_open(LOCKS_MAX);
	if (dav->locks)
		return dav;
	dav_close(dav);
	return NULL;
}

void dav_stop(struct dav *dav)
{
	if (!dav)
		return;
	atomic_store(&dav->leaving, true);
	thread_pool_close(dav->threads);
	dav->threads = NULL;
}

void dav_close(struct dav *dav)
{
	if (!dav)
		return;
	dav_stop(dav);
	dav_locks_close(dav->locks);
	pthread_mutex_destroy(&dav->mutex);
	free(dav);
}

/* Returns the threads for what takes long; NULL: they cannot be started. */
static struct thread_pool *own_threads(struct dav *dav)
{
	struct thread_pool *threads;

	pthread_mutex_lock(&dav->mutex);
	if (!dav->threads)
		dav->threads = thread_pool_open_low(dav->helpers, dav->helpers / 2);
	threads = dav->threads;
	pthread_mutex_unlock(&dav->mutex);
	return threads;
}

/* --- the methods ------------------------------------------------------------------------------- */

static const struct method {
	void (*run)(struct dav_call *call);
	bool reads_xml; /* its body */
	bool changes;	/* what its path names, which then must not be the root of all */
	bool folders;	/* may take as long as a folder is large, on threads of its own */
	bool slow;	/* the same, on the server's with low priority */
	bool makes;	/* what its path names need not exist */
} methods[DAV_METHODS] = {
	[DAV_PUT] = {.run = dav_put_begin, .changes = true, .makes = true},
	[DAV_DELETE] = {.run = dav_delete, .changes = true, .folders = true},
	[DAV_MKCOL] = {.run = dav_mkcol, .makes = true},
	[DAV_COPY] = {.run = dav_copy, .folders = true},
	[DAV_MOVE] = {.run = dav_move, .changes = true, .folders = true},
	[DAV_PROPFIND] = {.run = dav_propfind, .reads_xml = true, .slow = true},
	[DAV_PROPPATCH] = {.run = dav_proppatch, .reads_xml = true},
	[DAV_LOCK] = {.run = dav_lock, .reads_xml = true, .makes = true},
	[DAV_UNLOCK] = {.run = dav_unlock},
};

bool dav_takes(const struct request *request)
{
	return dav_method_of(request) != DAV_METHODS;
}

static struct dav_call *call_of(const struct transaction *transaction)
{
	return *(struct dav_call *const *)(const void *)transaction->scratch;
}

static void add_call(struct dav *dav, struct dav_call *call)
{
	pthread_mutex_lock(&dav->mutex);
	list_prepend(&dav->calls, &call->node);
	pthread_mutex_unlock(&dav->mutex);
}

static void remove_call(struct dav_call *call)
{
	pthread_mutex_lock(&call->dav->mutex);
	list_remove(&call->node);
	pthread_mutex_unlock(&call->dav->mutex);
}

static void free_call(struct dav_call *call)
{
	remove_call(call);
	dav_put_discard(call);
	dav_request_clear(&call->request);
	dav_place_clear(&call->at);
	dav_place_clear(&call->to);
	for (unsigned i = 0; call->tagged && i < call->request.condition.list_count; i++)
		dav_place_clear(&call->tagged[i]);
	free(call->tagged);
	free(call->body);
	if (call->lines)
		g_string_free(call->lines, TRUE);
	if (call->text)
		g_string_free(call->text, TRUE);
	free(call);
}

static void dav_discard_work(struct job *job)
{
	dav_put_discard(container_of(job, struct dav_call, job));
}

static void dav_discarded(struct job *job)
{
	free_call(container_of(job, struct dav_call, job));
}

/* Ends the call, without its transaction. */
static void end_call(struct dav_call *call)
{
	struct server *server = call->transaction->thread->server;

	call->over = true;
	/* At the end of the server there are no threads any more. */
	if (!call->upload || atomic_load(&call->dav->leaving)) {
		free_call(call);
		return;
	}
	call->job.class = JOB_QUICK;
	call->job.work = dav_discard_work;
	call->job.done = dav_discarded;
	thread_pool_submit(server->thread_pool, &call->job);
}

/* No thread runs any more, and no loop reports what they have done. */
void dav_end_requests(struct dav *dav)
{
	struct dav_call *call;

	while (dav && (call = list_first(&dav->calls, struct dav_call, node))) {
		if (call->over)
			free_call(call);
		else
			transaction_done(call->transaction);
	}
}

static void dav_finish(struct transaction *transaction)
{
	end_call(call_of(transaction));
}

/*
 * Nobody waits for the response: what has not begun is not done.  A change that has begun is
 * completed, a search stops.
 */
static void dav_gone(struct transaction *transaction)
{
	thread_pool_cancel(&call_of(transaction)->job);
}

/* Most such clients have left; but their changes keep the order of requests. */
static void dav_half_closed(struct transaction *transaction)
{
	struct dav_call *call = call_of(transaction);

	if (methods[call->request.method].slow)
		thread_pool_defer(&call->job);
}

/* --- the response ----------------------------------------------------------------------------- */

static void respond_with_text(struct transaction *transaction, GString *text)
{
	int error = text_response_set(transaction, DAV_XML_TYPE, text);

	if (!error)
		return;
	transaction->response.head_length = 0;
	(void)transaction_refuse(transaction, 503, "no memory for the response");
}

/* Sets the response of a call, and ends the call. */
static enum respond respond(struct dav_call *call)
{
	struct transaction *transaction = call->transaction;
	GString *text = g_steal_pointer(&call->text);
	size_t length = 0;

	transaction->responder = NULL;
	(void)transaction_refuse(transaction, call->status, call->reason);
	if (call->status == 405)
		length = (size_t)g_snprintf(transaction->head_buffer,
					    sizeof(transaction->head_buffer), "%s", DAV_ALLOW);
	else if (call->lines)
		length = (size_t)g_snprintf(transaction->head_buffer,
					    sizeof(transaction->head_buffer), "%s",
					    call->lines->str);
	if (!text && call->status == 201)
		length += (size_t)g_snprintf(transaction->head_buffer + length,
					     sizeof(transaction->head_buffer) - length,
					     "Content-Length: 0\r\n");
	transaction->response.head = transaction->head_buffer;
	transaction->response.head_length = length;
	transaction->response.bodiless = !text && call->status < 300;
	end_call(call);
	/* From here on the scratch memory belongs to the text response. */
	if (text)
		respond_with_text(transaction, text);
	return RESPOND_NOW;
}

static void answer(struct dav_call *call)
{
	struct transaction *transaction = call->transaction;

	(void)respond(call);
	transaction_done(transaction);
}

/* --- the work ----------------------------------------------------------------------------------- */

static void dav_work(struct job *job)
{
	struct dav_call *call = container_of(job, struct dav_call, job);

	methods[call->request.method].run(call);
}

/* Sets the response, which nobody gets, of a call whose client has left before its turn. */
static void end_cancelled(struct dav_call *call)
{
	if (!call->job.worked)
		dav_fail(call, 503, "the client has left");
}

static void dav_worked(struct job *job)
{
	struct dav_call *call = container_of(job, struct dav_call, job);

	end_cancelled(call);
	answer(call);
}

/*
 * own: what may take long runs on WebDAV's threads, so that files are opened meanwhile; what only
 * reads, but a whole folder, beside listings.  Both leave the processor to the event loops.
 */
static enum respond submit(struct dav_call *call, bool own, void (*run)(struct job *job),
			   void (*done)(struct job *job))
{
	const struct method *method = &methods[call->request.method];
	const struct server *server = call->transaction->thread->server;
	struct thread_pool *threads = own	     ? own_threads(call->dav)
				      : method->slow ? server->slow_pool
						     : server->thread_pool;

	if (!threads) {
		dav_fail(call, 503, "no threads for it");
		return respond(call);
	}
	call->job.class = method->folders || method->slow ? JOB_SLOW : JOB_QUICK;
	call->job.work = run;
	call->job.done = done;
	thread_pool_submit(threads, &call->job);
	return RESPOND_LATER;
}

/* --- bodies of XML -------------------------------------------------------------------------------- */

static enum respond received_xml(struct transaction *transaction)
{
	struct dav_call *call = call_of(transaction);
	size_t run;
	const void *bytes =
		transaction->upload.unit ? NC_data(&transaction->upload.hold, &run, 0) : NULL;

	if (bytes && transaction->upload.length && run >= transaction->upload.length) {
		call->body_length = (size_t)transaction->upload.length;
		call->body = malloc(call->body_length);
		if (call->body)
			memcpy(call->body, bytes, call->body_length);
	}
	transaction->owner->drop_upload(transaction);
	if (call->body_length && !call->body) {
		dav_fail(call, 503, "no memory for the body");
		return respond(call);
	}
	return submit(call, false, dav_work, dav_worked);
}

static enum respond ask_xml(struct dav_call *call)
{
	struct transaction *transaction = call->transaction;
	uint64_t most = transaction->scope->max_body;

	transaction->owner->receive(transaction, most ? MIN(most, DAV_BODY_MAX) : DAV_BODY_MAX);
	return RESPOND_LATER;
}

/* --- PUT ------------------------------------------------------------------------------------------- */

static void dav_piece_work(struct job *job)
{
	struct dav_call *call = container_of(job, struct dav_call, job);

	dav_put_piece(call);
	if (!call->status && !call->transaction->upload.more)
		dav_put_end(call);
}

static void ask_piece(struct dav_call *call)
{
	struct transaction *transaction = call->transaction;
	uint64_t most = transaction->scope->max_body;
	size_t window = MIN(PIECE, transaction->thread->server->max_unit);

	transaction->owner->receive_piece(transaction, most ? most : UINT64_MAX, window);
}

static void dav_piece_done(struct job *job)
{
	struct dav_call *call = container_of(job, struct dav_call, job);

	end_cancelled(call);
	if (call->status)
		answer(call);
	else
		ask_piece(call);
}

static enum respond received_piece(struct transaction *transaction)
{
	/* The end of the file waits for the disk. */
	return submit(call_of(transaction), !transaction->upload.more, dav_piece_work,
		      dav_piece_done);
}

static void dav_put_begun(struct job *job)
{
	struct dav_call *call = container_of(job, struct dav_call, job);
	struct transaction *transaction = call->transaction;

	end_cancelled(call);
	if (call->status) {
		answer(call);
	} else if (transaction->upload.has) {
		ask_piece(call);
	} else {
		if (submit(call, true, dav_piece_work, dav_piece_done) == RESPOND_NOW)
			transaction_done(transaction);
	}
}

static enum respond dav_received(struct transaction *transaction)
{
	return methods[call_of(transaction)->request.method].reads_xml
		       ? received_xml(transaction)
		       : received_piece(transaction);
}

static const struct transaction_responder responder = {.received = dav_received,
						       .gone = dav_gone,
						       .half_closed = dav_half_closed,
						       .finish = dav_finish};

/* --- the request ------------------------------------------------------------------------------------ */

/* Finds the places of the request's fields. */
static int find_places(struct dav_call *call)
{
	struct transaction *transaction = call->transaction;
	const struct dav_request *request = &call->request;
	int status = dav_place_set(&call->at, transaction->config_ref, transaction->scope,
				   transaction->path, methods[request->method].changes);

	/* As for GET: hidden names do not exist, and cannot be made. */
	if (status == 403 && !methods[request->method].makes &&
	    file_path_is_hidden(transaction->scope, transaction->path))
		status = 404;
	if (!status && (request->method == DAV_COPY || request->method == DAV_MOVE))
		status = dav_place_find(&call->to, transaction, request->destination, true);
	if (request->has_if && request->condition.lists[0].resource.at)
		call->tagged = calloc(request->condition.list_count, sizeof(*call->tagged));
	if (request->has_if && request->condition.lists[0].resource.at && !call->tagged)
		return 503;
	/* Those of others have no locks and no tags. */
	for (unsigned i = 0; call->tagged && i < request->condition.list_count; i++)
		if (dav_place_find(&call->tagged[i], transaction,
				   request->condition.lists[i].resource, false))
			dav_place_clear(&call->tagged[i]);
	return status;
}

static enum respond begin(struct dav_call *call)
{
	struct transaction *transaction = call->transaction;
	const struct method *method = &methods[call->request.method];
	int status = find_places(call);

	if (status) {
		dav_fail(call, status,
			 status == 404	 ? "a hidden name"
			 : status == 503 ? "no memory for the resources of If"
					 : "a name or destination that must not be written");
		return respond(call);
	}
	if (method->reads_xml && transaction->upload.has)
		return ask_xml(call);
	if (call->request.method == DAV_PUT)
		return submit(call, false, dav_work, dav_put_begun);
	/* No body of MKCOL is defined (RFC 4918, section 9.3). */
	if (call->request.method == DAV_MKCOL && transaction->upload.has) {
		dav_fail(call, 415, "MKCOL with a body");
		return respond(call);
	}
	return submit(call, method->folders, dav_work, dav_worked);
}

enum respond dav_respond(struct transaction *transaction)
{
	struct dav_call *call = calloc(1, sizeof(*call));
	const char *reason;
	int status;

	if (!call)
		return transaction_refuse(transaction, 503, "no memory for the request");
	status = dav_request_read(&call->request, transaction->request, &reason);
	call->dav = transaction->thread->server->dav;
	call->transaction = transaction;
	call->job.loop = transaction->thread->loop;
	call->job.client = client_address(transaction->peer.remote);
	add_call(call->dav, call);
	memcpy(transaction->scratch, &call, sizeof(struct dav_call *));
	transaction->responder = &responder;
	if (status) {
		dav_fail(call, status, reason);
		return respond(call);
	}
	return begin(call);
}
