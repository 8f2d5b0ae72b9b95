/* SPDX-License-Identifier: MIT */
/*
 * gw-lane.c - see gw-lane.h.  A lane belongs to its thread.
 *
 * What a worker answers is checked twice: the library has made sure that the
 * units are the worker's own, holds them, and has seen that pieces come in their
 * order; here the tag must name a call that this very worker has, and the header
 * lines must be fit to be sent.
 */
#include <assert.h>

#include "backend/gw-lane-inside.h"
#include "core/page-memory.h"

#define SLOT_NONE UINT32_MAX

/* In a turn of the loop, of one worker, which may write as fast as they are read. */
#define RECORDS_MAX 64u

/* That a queue can hold: whoever else has it mapped may go on writing after the worker's end. */
#define RECORDS_LEFT 4096u

static_assert(sizeof(struct lane_call) <= GW_CALL_OWN, "fits a call");

/* --- slots --------------------------------------------------------------------------- */

void gw_lane_reset(struct gw_lane *lane, NC_exchange *exchange)
{
	lane->exchange = exchange;
	lane->dirty = lane->retiring = lane->owing = false;
	lane->in_flight = lane->deserted = 0;
	lane->submitted = 0;
	lane->free = 0;
	for (uint32_t i = 0; i < GW_IN_FLIGHT; i++) {
		struct gw_pending *pending = &lane->pending[i];

		pending->call = NULL;
		pending->deserted = pending->untold = false;
		pending->next = i + 1 < GW_IN_FLIGHT ? i + 1 : SLOT_NONE;
	}
}

static struct gw_pending *find(struct gw_lane *lane, uint64_t tag)
{
	uint32_t slot = (uint32_t)tag;
	struct gw_pending *pending;

	if (slot >= GW_IN_FLIGHT)
		return NULL;
	pending = &lane->pending[slot];
	return pending->generation == tag >> 32 && (pending->call || pending->deserted) ? pending
											: NULL;
}

static void set_streams(struct gw_lane *lane, struct gw_pending *pending, bool streams)
{
	if (pending->streams == streams)
		return;
	pending->streams = streams;
	if (streams)
		atomic_fetch_add_explicit(&lane->process->streams, 1, memory_order_relaxed);
	else
		atomic_fetch_sub_explicit(&lane->process->streams, 1, memory_order_relaxed);
}

/* No record for it comes any more. */
void gw_lane_vacate(struct gw_lane *lane, struct gw_pending *pending)
{
	set_streams(lane, pending, false);
	if (pending->call)
		gw_lane_call(pending->call)->lane = NULL;
	if (pending->deserted && --lane->deserted == 0)
		timer_stop(&lane->patience);
	pending->call = NULL;
	pending->deserted = pending->untold = false;
	pending->generation++;
	pending->next = lane->free;
	lane->free = (uint32_t)(pending - lane->pending);
	lane->in_flight--;
	server_count(&lane->ended, 1);
}

/* The last record for it has come, or the worker is gone. */
void gw_lane_leave(struct gw_lane *lane, struct gw_pending *pending)
{
	struct gw_process *process = lane->process;

	gw_lane_vacate(lane, pending);
	gw_process_leaves(process, loop_now_ms(lane->server->loop));
	/* It may leave no page, but with one request less there is more room. */
	if (page_memory_tells(&process->pool->pages[process->number]))
		gw_room_everywhere(process->pool);
}

void gw_lane_complain(const struct gw_lane *lane, const char *what)
{
	log_warning("worker %s[%u] (pid %d): %s", lane->process->pool->settings->name,
		    lane->process->number, (int)NC_exchange_pid(lane->exchange), what);
}

/*
 * Whether the worker has told nothing of it while another answer leaves, of this
 * thread or not: that one has bounds of its own, and is no fault.
 */
static bool is_behind_another(const struct gw_lane *lane, const struct gw_pending *pending)
{
	return !pending->heard &&
	       atomic_load_explicit(&lane->process->streams, memory_order_relaxed) > 0;
}

/* --- calls that nobody waits for ------------------------------------------------------ */

static void out_of_patience(struct timer *timer)
{
	struct gw_lane *lane =
		(struct gw_lane *)((char *)timer - offsetof(struct gw_lane, patience));
	unsigned most = lane->process->pool->settings->answer_ms;
	uint64_t now = loop_now_ms(lane->server->loop);

	for (uint32_t i = 0; i < GW_IN_FLIGHT; i++) {
		struct gw_pending *pending = &lane->pending[i];

		if (!pending->deserted || now - pending->deserted_ms < most)
			continue;
		if (!is_behind_another(lane, pending)) {
			gw_process_kill(lane->process, "does not end what nobody waits for");
			return;
		}
		/* When the other one is over, it has its time. */
		pending->deserted_ms = now;
	}
	loop_timer_start(lane->server->loop, &lane->patience, most, out_of_patience);
}

static void tell_deserted(struct gw_lane *lane, struct gw_pending *pending)
{
	uint32_t slot = (uint32_t)(pending - lane->pending);

	pending->untold = NC_exchange_cancel(lane->exchange, lane->server->number,
					     gw_lane_tag(lane, slot)) < 0;
	lane->owing |= pending->untold;
	lane->dirty = true;
}

/* The worker goes on with it, or sees that there is no need to. */
void gw_lane_desert(struct gw_call *call)
{
	struct gw_lane *lane = gw_lane_call(call)->lane;
	struct gw_pending *pending;

	if (!lane)
		return;
	pending = &lane->pending[gw_lane_call(call)->slot];
	set_streams(lane, pending, false);
	gw_lane_call(call)->lane = NULL;
	pending->call = NULL;
	pending->deserted = true;
	pending->deserted_ms = loop_now_ms(lane->server->loop);
	if (lane->deserted++ == 0)
		loop_timer_start(lane->server->loop, &lane->patience,
				 lane->process->pool->settings->answer_ms, out_of_patience);
	tell_deserted(lane, pending);
}

void gw_lane_gone(struct gw_call *call)
{
	gw_lane_desert(call);
	timer_stop(&call->timer);
	call->transaction->done(call->transaction);
}

/* The page that the answer holds; a request may wait for its memory. */
static void release(struct gw_call *call)
{
	struct lane_call *own = gw_lane_call(call);

	(void)NC_release(own->held);
	own->held = 0;
	page_memory_release(own->pages, own->page);
	if (page_memory_tells(own->pages))
		gw_room_everywhere(call->pool);
}

void gw_lane_finish(struct gw_call *call)
{
	struct lane_call *own = gw_lane_call(call);

	gw_lane_desert(call);
	if (own->held)
		release(call);
	gw_parts_clear(&own->parts);
}

/* --- requests ---------------------------------------------------------------------------- */

/* The worker, and no other process, may read it. */
static bool grant_upload(struct gw_lane *lane, const struct transaction *transaction)
{
	return !transaction->upload || NC_grant(NULL, transaction->upload, NC_PROCESS_FD,
						(id_t)NC_exchange_pidfd(lane->exchange)) == 0;
}

/* Tells the worker of the piece that it was granted. */
static void give_piece(struct gw_call *call)
{
	struct lane_call *own = gw_lane_call(call);
	struct transaction *transaction = call->transaction;
	struct gw_lane *lane = own->lane;
	struct NC_range piece = {.id = transaction->upload,
				 .length = (size_t)(transaction->upload_length - own->given)};

	own->owed = NC_exchange_body(lane->exchange, lane->server->number,
				     gw_lane_tag(lane, own->slot), piece.id ? &piece : NULL,
				     transaction->upload_more ? 0 : NC_BODY_LAST) < 0;
	lane->owing |= own->owed;
	lane->dirty = true;
	if (own->owed)
		return;
	own->given = transaction->upload_length;
	own->has_piece = transaction->upload_more;
}

bool gw_lane_submit(struct gw_lane *lane, struct gw_call *call, const char *block, size_t length)
{
	struct lane_call *own = gw_lane_call(call);
	bool in_pieces = call->transaction->upload_more;
	uint32_t slot = lane->free;

	if (!grant_upload(lane, call->transaction) ||
	    NC_exchange_submit(lane->exchange, lane->server->number, gw_lane_tag(lane, slot), block,
			       length, in_pieces ? NC_REQUEST_BODY : 0) < 0)
		return false;
	lane->free = lane->pending[slot].next;
	lane->pending[slot].call = call;
	lane->pending[slot].heard = false;
	lane->pending[slot].number = ++lane->submitted;
	lane->in_flight++;
	gw_process_takes(lane->process, loop_now_ms(lane->server->loop));
	server_count(&lane->requests, 1);
	lane->dirty = true;
	own->lane = lane;
	own->slot = slot;
	own->shared = &call->pool->ahead[lane->process->number];
	if (in_pieces)
		give_piece(call);
	return true;
}

bool gw_lane_body(struct gw_call *call)
{
	if (!grant_upload(gw_lane_call(call)->lane, call->transaction)) {
		gw_lane_desert(call);
		return false;
	}
	give_piece(call);
	return true;
}

/* The worker has done with the piece that it had; of the last one there is nothing to do. */
static void take_piece_back(struct gw_lane *lane, struct gw_call *call)
{
	struct lane_call *own = gw_lane_call(call);

	if (!own->has_piece)
		return;
	own->has_piece = false;
	if (call->state == GW_UNDER_WAY) {
		gw_next_body(call);
		return;
	}
	/* The rest of the body was let go of with the beginning of the answer. */
	gw_lane_complain(lane, "began to answer and went on with the body");
	gw_lane_break_off(call, 502, NULL);
}

/* --- records ------------------------------------------------------------------------------- */

static void take_record(struct gw_lane *lane, struct gw_pending *pending,
			const struct NC_response *response)
{
	struct gw_call *call = pending->call;

	pending->heard = true;
	if (response->flags & NC_RESPONSE_TAKEN) {
		if (call)
			take_piece_back(lane, call);
		return;
	}
	if (!(response->flags & NC_RESPONSE_MORE)) {
		gw_lane_leave(lane, pending);
		gw_process_served(lane->process);
	} else if (call) {
		set_streams(lane, pending, true);
	}
	if (!call)
		gw_response_release(response);
	else if (response->flags & (NC_RESPONSE_PIECE | NC_RESPONSE_ABORTED))
		gw_lane_piece(call, response);
	else
		gw_lane_answer(lane, call, response);
}

bool gw_lane_reap(struct gw_lane *lane)
{
	struct gateway_pool *pool = lane->process->pool;
	bool any = false;

	for (unsigned i = 0; i < RECORDS_MAX && lane->exchange; i++) {
		struct NC_response response;
		struct gw_pending *pending;
		uint64_t tag;
		int got = NC_exchange_reap(lane->exchange, lane->server->number, &tag, &response);

		if (got < 0)
			gw_process_kill(lane->process, "broke the protocol of the queues");
		if (got <= 0)
			break;
		any = true;
		pending = find(lane, tag);
		if (!pending) {
			/* An answer that nobody asked for spoils the worker's name only. */
			gw_response_release(&response);
			gw_process_kill(lane->process, "answered what it was not asked");
			break;
		}
		take_record(lane, pending, &response);
	}
	if (any)
		gw_room(pool, lane->server);
	return any;
}

void gw_lane_reap_last(struct gw_lane *lane)
{
	unsigned turns = 0;

	while (turns++ < RECORDS_LEFT / RECORDS_MAX && gw_lane_reap(lane))
		;
}

/* What the full queue kept back. */
static void pay(struct gw_lane *lane)
{
	lane->owing = false;
	for (uint32_t i = 0; i < GW_IN_FLIGHT; i++) {
		struct gw_pending *pending = &lane->pending[i];

		if (pending->untold)
			tell_deserted(lane, pending);
		else if (pending->call && gw_lane_call(pending->call)->owed)
			give_piece(pending->call);
	}
}

bool gw_lane_settle(struct gw_lane *lane)
{
	if (lane->owing)
		pay(lane);
	if (lane->dirty)
		(void)NC_exchange_kick(lane->exchange, lane->server->number);
	lane->dirty = false;
	return lane->in_flight && NC_exchange_arm(lane->exchange, lane->server->number) > 0 &&
	       gw_lane_reap(lane);
}

/* --- the worker's end ------------------------------------------------------------------------ */

void gw_lane_too_late(struct gw_call *call)
{
	struct lane_call *own = gw_lane_call(call);

	if (is_behind_another(own->lane, &own->lane->pending[own->slot])) {
		gw_lane_break_off(call, 503, "No worker is free.");
		return;
	}
	/* A worker does one thing at a time: its end answers what it began with. */
	own->late = true;
	gw_process_kill(own->lane->process, "took too long to answer");
}

void gw_lane_abandon(struct gw_lane *lane)
{
	for (uint32_t i = 0; i < GW_IN_FLIGHT; i++) {
		struct gw_pending *pending = &lane->pending[i];
		struct gw_call *call = pending->call;

		if (!call && !pending->deserted)
			continue;
		gw_lane_leave(lane, pending);
		if (!call)
			continue;
		server_count(&lane->failures, 1);
		if (gw_lane_call(call)->late)
			gw_lane_break_off(call, 504, "The worker took too long.");
		else
			gw_lane_break_off(call, 502, "The worker ended while it was at work.");
	}
}
