/* SPDX-License-Identifier: MIT */
/*
 * gw-worker.c - see gw-worker.h.  All on the server's thread.
 *
 * What a worker answers is checked twice: the library has made sure that the
 * unit is the worker's own and holds it; here the tag must name a request
 * that this very worker has, and the header lines must be fit to be sent.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <glib.h>

#include <gateway.h>
#include <meta.h>
#include <response.h>

#define ANSWER_MS 60000 /* for a worker to answer in */
#define WAIT_MS 10000	/* for a worker to come */
#define SLOT_NONE UINT32_MAX
#define BODY_VARIABLES 128 /* bytes of CONTENT_LENGTH and NABC_BODY_ID */

/* In the transaction's scratch. */
struct gw_request {
	struct timer timer;
	struct transaction *transaction;
	struct gateway_pool *pool;
	struct transaction *next; /* in a queue */
	struct gw_lane *lane;	  /* while in a worker */
	char *block;		  /* a copy, while in a queue or the body comes; NULL */
	size_t block_length;
	size_t held;	     /* id of the answer's unit */
	bool counted_length; /* the request did not tell the length of its body */
};

static_assert(sizeof(struct gw_request) <= TRANSACTION_SCRATCH, "fits the scratch");

static struct gw_request *request_of(struct transaction *transaction)
{
	return (struct gw_request *)(void *)transaction->scratch;
}

static void finish(struct transaction *transaction)
{
	struct gw_request *request = request_of(transaction);

	if (request->held)
		(void)NC_release(request->held);
	request->held = 0;
	g_free(request->block);
	request->block = NULL;
}

/* The answer when no worker gave one. */
static enum respond refuse(struct transaction *transaction, int status, const char *detail)
{
	server_count(&transaction->server->counters.worker_failures, 1);
	if (status == 503) {
		transaction->head = "Retry-After: 1\r\n";
		transaction->head_length = strlen(transaction->head);
	}
	return transaction_fail(transaction, status, detail);
}

static void fail(struct transaction *transaction, int status, const char *detail)
{
	timer_stop(&request_of(transaction)->timer);
	refuse(transaction, status, detail);
	transaction->done(transaction);
}

/* --- a request in a worker ------------------------------------------------- */

static void lane_reset(struct gw_lane *lane)
{
	lane->in_flight = 0;
	lane->free = 0;
	for (uint32_t i = 0; i < GW_IN_FLIGHT; i++) {
		lane->pending[i].transaction = NULL;
		lane->pending[i].next = i + 1 < GW_IN_FLIGHT ? i + 1 : SLOT_NONE;
	}
}

static struct transaction *take_pending(struct gw_lane *lane, uint64_t tag)
{
	uint32_t slot = (uint32_t)tag;
	struct gw_pending *pending;
	struct transaction *transaction;

	if (slot >= GW_IN_FLIGHT)
		return NULL;
	pending = &lane->pending[slot];
	if (!pending->transaction || pending->generation != tag >> 32)
		return NULL;
	transaction = pending->transaction;
	pending->transaction = NULL;
	pending->generation++;
	pending->next = lane->free;
	lane->free = slot;
	lane->in_flight--;
	server_count(&lane->ended, 1);
	return transaction;
}

static void too_late(struct timer *timer)
{
	struct gw_request *request = (struct gw_request *)timer;

	/* A worker does one thing at a time: its end answers all that it has. */
	gateway_kill(request->lane->worker, "took too long to answer");
}

/* True: it is in the lane's queue now. */
static bool submit(struct gw_lane *lane, struct transaction *transaction, const char *block,
		   size_t length)
{
	struct gw_request *request = request_of(transaction);
	uint32_t slot = lane->free;
	struct gw_pending *pending = &lane->pending[slot];
	unsigned number = lane->server->number;

	/* The worker, and nobody else, may read the body. */
	if (slot == SLOT_NONE ||
	    (transaction->upload && NC_grant(NULL, transaction->upload, NC_PROCESS_FD,
					     (id_t)NC_exchange_pidfd(lane->exchange)) < 0) ||
	    NC_exchange_submit(lane->exchange, number, (uint64_t)pending->generation << 32 | slot,
			       block, length, 0) < 0)
		return false;
	lane->free = pending->next;
	pending->transaction = transaction;
	lane->in_flight++;
	server_count(&lane->requests, 1);
	lane->dirty = true;
	request->lane = lane;
	loop_timer_start(lane->server->loop, &request->timer, ANSWER_MS, too_late);
	server_count(&lane->server->counters.worker_requests, 1);
	server_count(&lane->server->counters.worker_messages, length);
	return true;
}

/* The lane of the pool with the fewest requests in flight, or NULL. */
static struct gw_lane *choose(struct gateway_pool *pool, unsigned number)
{
	struct gw_lane *best = NULL;

	for (unsigned i = 0; i < pool->count; i++) {
		struct gw_lane *lane = &pool->workers[i].lanes[number];

		if (lane->exchange && lane->free != SLOT_NONE &&
		    (!best || lane->in_flight < best->in_flight))
			best = lane;
	}
	return best;
}

/* --- requests that wait ----------------------------------------------------- */

static void queue_remove(struct gw_queue *queue, struct transaction *transaction)
{
	struct transaction **link = &queue->first;

	while (*link != transaction)
		link = &request_of(*link)->next;
	*link = request_of(transaction)->next;
	if (queue->last == &request_of(transaction)->next)
		queue->last = link;
	server_count(&queue->count, (uint64_t)-1);
	g_free(request_of(transaction)->block);
	request_of(transaction)->block = NULL;
}

static void none_came(struct timer *timer)
{
	struct gw_request *request = (struct gw_request *)timer;
	struct transaction *transaction = request->transaction;

	queue_remove(&request->pool->queues[transaction->server->number], transaction);
	fail(transaction, 503, "No worker is free.");
}

static bool enqueue(struct gw_queue *queue, struct transaction *transaction, const char *block,
		    size_t length)
{
	struct gw_request *request = request_of(transaction);

	if (atomic_load_explicit(&queue->count, memory_order_relaxed) >= GW_QUEUE_MAX)
		return false;
	/* That of a request with a body is a copy already. */
	if (block != request->block)
		request->block = g_memdup2(block, length);
	request->block_length = length;
	request->next = NULL;
	*queue->last = transaction;
	queue->last = &request->next;
	server_count(&queue->count, 1);
	loop_timer_start(queue->server->loop, &request->timer, WAIT_MS, none_came);
	return true;
}

/* Workers have room again. */
static void drain(struct gateway_pool *pool, struct server *server)
{
	struct gw_queue *queue = &pool->queues[server->number];

	while (queue->first) {
		struct transaction *transaction = queue->first;
		struct gw_request *request = request_of(transaction);
		struct gw_lane *lane = choose(pool, server->number);

		if (!lane || !submit(lane, transaction, request->block, request->block_length))
			return;
		queue_remove(queue, transaction);
	}
}

/* To a worker, or to the queue for one. */
static enum respond hand_on(struct transaction *transaction, const char *block, size_t length)
{
	struct gateway_pool *pool = request_of(transaction)->pool;
	struct gw_queue *queue = &pool->queues[transaction->server->number];
	struct gw_lane *lane = choose(pool, transaction->server->number);

	/* Who waits already goes first. */
	if (lane && !queue->first && submit(lane, transaction, block, length))
		return RESPOND_LATER;
	if ((lane || atomic_load_explicit(&pool->failing, memory_order_relaxed) < pool->count) &&
	    enqueue(queue, transaction, block, length))
		return RESPOND_LATER;
	return refuse(transaction, 503, "No worker is free.");
}

/* The body is there: the worker is told how long it is and where to find it. */
static enum respond received(struct transaction *transaction)
{
	struct gw_request *request = request_of(transaction);
	char *at = request->block + request->block_length;

	if (request->counted_length)
		at += sprintf(at, "CONTENT_LENGTH=%" PRIu64, transaction->upload_length) + 1;
	if (transaction->upload)
		at += sprintf(at, "NABC_BODY_ID=%zu", transaction->upload) + 1;
	return hand_on(transaction, request->block, (size_t)(at - request->block));
}

/* Waits for the body with the variables that are known. */
static void ask_body(struct transaction *transaction, const char *block, size_t length)
{
	struct gw_request *request = request_of(transaction);
	uint64_t limit = transaction->scope->max_body, most = transaction->server->site->max_unit;

	request->counted_length = transaction->request->chunked;
	request->block = g_malloc(length + BODY_VARIABLES);
	memcpy(request->block, block, length);
	request->block_length = length;
	transaction->received = received;
	/* It must fit a unit, whatever is allowed. */
	transaction->receive(transaction, limit && limit < most ? limit : most);
}

enum respond gw_respond(struct gateway_pool *pool, struct transaction *transaction,
			size_t prefix_length)
{
	struct server *server = transaction->server;
	struct meta_context context = {
		.script_name = pool->prefix,
		.path_info = transaction->path + prefix_length,
		.remote_addr = transaction->remote_addr,
		.remote_port = transaction->remote_port,
		.remote_user = transaction->remote_user,
		.server_addr = transaction->server_addr,
		.server_port = transaction->server_port,
		.software = SERVER_SOFTWARE,
	};
	char *block = server->workers->block;
	long length = meta_write(transaction->request, &context, block,
				 sizeof(server->workers->block) - BODY_VARIABLES);

	*request_of(transaction) = (struct gw_request){.transaction = transaction, .pool = pool};
	if (length < 0)
		return transaction_fail(transaction, 431, NULL);
	transaction->finish = finish;
	if (!transaction->has_upload)
		return hand_on(transaction, block, (size_t)length);
	ask_body(transaction, block, (size_t)length);
	return RESPOND_LATER;
}

/* --- answers ----------------------------------------------------------------- */

static void answer(struct gw_lane *lane, struct transaction *transaction,
		   const struct NC_response *response)
{
	struct gw_request *request = request_of(transaction);
	struct server *server = lane->server;
	struct slice lines = {.at = response->headers, .length = response->headers_length};
	bool has_type = false;
	long length = 0;

	timer_stop(&request->timer);
	request->held = response->body.id;
	server_count(&server->counters.worker_messages, response->headers_length);
	server_count(&server->counters.worker_bodies, response->body.length);
	if (lines.length)
		length = response_filter_headers(lines, transaction->head_buffer,
						 sizeof(transaction->head_buffer) - 128, &has_type);
	if (length < 0) {
		log_warning("worker %s[%u] (pid %d): malformed or too many header lines",
			    lane->worker->pool->prefix, lane->worker->number,
			    (int)NC_exchange_pid(lane->exchange));
		server_count(&lane->failures, 1);
		fail(transaction, 502, NULL);
		return;
	}
	if (!has_type && response->body.id)
		length += g_snprintf(transaction->head_buffer + length, 64,
				     "Content-Type: application/octet-stream\r\n");
	if (response->body.id || response->status < 400)
		length += g_snprintf(transaction->head_buffer + length, 64,
				     "Content-Length: %zu\r\n", response->body.length);
	transaction->status = response->status;
	transaction->head = transaction->head_buffer;
	transaction->head_length = (size_t)length;
	transaction->length = response->body.length;
	transaction->body = response->body;
	/* Without a body an error gets the usual page, any other answer none. */
	transaction->bodiless = !response->body.id && response->status < 400;
	transaction->done(transaction);
}

/* Takes all answers of a lane; true: there were some. */
static bool reap(struct gw_lane *lane)
{
	bool any = false;

	while (lane->exchange) {
		struct transaction *transaction;
		struct NC_response response;
		uint64_t tag;
		int got = NC_exchange_reap(lane->exchange, lane->server->number, &tag, &response);

		if (got < 0)
			gateway_kill(lane->worker, "broke the protocol of the queues");
		if (got <= 0)
			break;
		any = true;
		transaction = take_pending(lane, tag);
		if (!transaction) {
			/* An answer that nobody asked for spoils the worker's name only. */
			if (response.body.id)
				(void)NC_release(response.body.id);
			gateway_kill(lane->worker, "answered what it was not asked");
			break;
		}
		answer(lane, transaction, &response);
	}
	if (any)
		drain(lane->worker->pool, lane->server);
	return any;
}

static void rung(struct loop_watch *watch)
{
	(void)reap((struct gw_lane *)((char *)watch - offsetof(struct gw_lane, doorbell)));
}

/* Kicks once for all requests of the turn, then looks, then lets sleep. */
static bool before_sleep(struct loop_hook *hook)
{
	struct gw_hook *all = (struct gw_hook *)hook;
	bool work = false;

	for (struct gw_lane *lane = all->active; lane; lane = lane->next_active) {
		if (lane->dirty)
			(void)NC_exchange_kick(lane->exchange, lane->server->number);
		lane->dirty = false;
		if (lane->in_flight && NC_exchange_arm(lane->exchange, lane->server->number) > 0)
			work |= reap(lane);
	}
	return work;
}

void gw_hook_add(struct gw_hook *hook, struct server *server)
{
	hook->hook.before_sleep = before_sleep;
	server->workers = hook;
	loop_hook_add(server->loop, &hook->hook);
}

/* --- workers that come and go ------------------------------------------------ */

void gw_lane_up(struct loop_task *task)
{
	struct gw_lane *lane = (struct gw_lane *)((char *)task - offsetof(struct gw_lane, up));
	struct server *server = lane->server;

	lane_reset(lane);
	lane->exchange = lane->worker->exchange;
	lane->dirty = false;
	lane->doorbell.ready = rung;
	if (loop_watch_start(server->loop, &lane->doorbell,
			     NC_exchange_fd(lane->exchange, server->number)) < 0) {
		lane->exchange = NULL;
		gateway_kill(lane->worker, "cannot be watched: out of memory");
		return;
	}
	lane->next_active = server->workers->active;
	server->workers->active = lane;
	drain(lane->worker->pool, server);
}

void gw_lane_abandon(struct gw_lane *lane)
{
	for (uint32_t i = 0; i < GW_IN_FLIGHT; i++) {
		struct gw_pending *pending = &lane->pending[i];
		struct transaction *transaction = pending->transaction;

		pending->transaction = NULL;
		pending->generation++;
		if (!transaction)
			continue;
		server_count(&lane->ended, 1);
		server_count(&lane->failures, 1);
		fail(transaction, 502, "The worker ended while it was at work.");
	}
}

void gw_queue_abandon(struct gw_queue *queue)
{
	while (queue->first) {
		struct transaction *transaction = queue->first;

		queue_remove(queue, transaction);
		fail(transaction, 503, "No worker is free.");
	}
}

void gw_lane_down(struct loop_task *task)
{
	struct gw_lane *lane = (struct gw_lane *)((char *)task - offsetof(struct gw_lane, down));
	struct server *server = lane->server;
	struct gw_lane **link = &server->workers->active;

	if (lane->exchange) {
		/* What it answered before its end is good. */
		(void)reap(lane);
		loop_watch_stop(server->loop, NC_exchange_fd(lane->exchange, server->number));
		while (*link != lane)
			link = &(*link)->next_active;
		*link = lane->next_active;
		lane->exchange = NULL;
		gw_lane_abandon(lane);
	}
	gateway_left(lane->worker);
}
