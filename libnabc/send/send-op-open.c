/* SPDX-License-Identifier: MIT */
/*
 * send-op-open.c - what an operation keeps of its message: a copy of header, texts and ranges,
 * holds of its units, the methods that it may use; see send-op.h.
 */
#include <errno.h>
#include <nabc-async.h>
#include <nabc-worker.h>
#include <nabc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "base/fragment.h"
#include "cache/index.h"
#include "os/ring.h"
#include "send/kernel.h"
#include "send/message.h"
#include "send/route.h"
#include "send/send-op.h"
#include "send/transmit.h"
#include "send/zerocopy.h"
#include "store/store.h"
#include "store/unit.h"

/* The most pieces of memory of one step. */
#define IOVECS 64u

/*
 * Bytes.  A message up to this size costs the kernel less as one piece of memory than as
 * pieces, by more than it costs to copy them together.
 */
#define GATHER_MAX ((size_t)4 << 10)

/* What an operation keeps of its message: iovecs, views, ranges and texts, then bytes. */
struct plan {
	bool gathered; /* the bytes are those of the whole message, not of header and texts alone */
	unsigned iovecs;
	size_t bytes;
};

static struct plan plan_of(const struct nc_message *message)
{
	const struct NC_send *spec = message->spec;
	unsigned pieces = 1 + spec->range_count + spec->text_count;
	size_t memory = message->total;
	bool kernel = false, gapless = true;

	for (unsigned i = 0; i < spec->range_count; i++) {
		const struct nc_unit *unit = message->views[i].unit;

		kernel |= nc_kernel_has(unit);
		gapless &= nc_layout_gapless(&unit->layout);
		memory -= spec->ranges[i].length;
	}
	if (!spec->range_count || (!kernel && message->total <= GATHER_MAX))
		return (struct plan){.gathered = true, .bytes = message->total};
	return (struct plan){.iovecs = gapless && pieces < IOVECS ? pieces : IOVECS,
			     .bytes = memory};
}

static size_t size_of(const struct plan *plan, const struct NC_send *spec)
{
	return plan->iovecs * sizeof(struct iovec) +
	       spec->range_count * (sizeof(struct nc_view) + sizeof(struct NC_range)) +
	       spec->text_count * sizeof(struct NC_text) + plan->bytes;
}

/* Copies a text of the message to the operation's memory; returns where its bytes end. */
static char *keep_text(struct NC_text *kept, const struct NC_text *text, char *to)
{
	*kept = (struct NC_text){.data = to, .length = text->length, .before = text->before};
	if (text->length)
		memcpy(to, text->data, text->length);
	return to + text->length;
}

/* Copies the texts, and the ranges between them if all is gathered, behind the header. */
static void keep_rest(struct NC_send_op *op, const struct NC_send *spec, struct NC_text *texts,
		      char *to)
{
	unsigned text = 0;

	for (unsigned i = 0; i <= spec->range_count; i++) {
		const struct NC_range *range = &op->spec.ranges[i];

		for (; text < spec->text_count && spec->texts[text].before <= i; text++)
			to = keep_text(&texts[text], &spec->texts[text], to);
		if (!op->gathered || i == spec->range_count)
			continue;
		/* In memory, so that this cannot fail. */
		(void)nc_unit_read(op->message.views[i].unit, range->offset, to, range->length);
		to += range->length;
	}
}

/* Copies the message into the operation's memory, which is large enough. */
static void keep(struct NC_send_op *op, const struct plan *plan, const struct nc_message *message)
{
	const struct NC_send *spec = message->spec;
	unsigned count = spec->range_count;
	struct NC_range *ranges;
	struct NC_text *texts;
	char *bytes;

	*op = (struct NC_send_op){.all = op->all,
				  .transmit = op->transmit,
				  .memory = op->memory,
				  .room = op->room,
				  .message = *message,
				  .spec = *spec,
				  .gathered = plan->gathered,
				  .iovecs = plan->iovecs};
	op->iov = op->memory;
	op->message.spec = &op->spec;
	op->message.views = (struct nc_view *)(op->iov + plan->iovecs);
	ranges = (struct NC_range *)(op->message.views + count);
	texts = (struct NC_text *)(ranges + count);
	bytes = (char *)(texts + spec->text_count);
	op->spec.ranges = ranges;
	op->spec.texts = texts;
	op->spec.cookie = NULL;
	op->spec.holds = NULL;
	op->spec.hold_count = 0;
	op->spec.header = bytes;
	if (count) {
		memcpy(op->message.views, message->views, count * sizeof(*message->views));
		memcpy(ranges, spec->ranges, count * sizeof(*ranges));
	}
	if (spec->header_length)
		memcpy(bytes, spec->header, spec->header_length);
	if (plan->gathered || spec->text_count)
		keep_rest(op, spec, texts, bytes + spec->header_length);
}

static struct NC_send_op *create(struct nc_send_ops *all, struct nc_transmit *transmit, size_t room)
{
	struct NC_send_op *op = malloc(sizeof(*op) + room);

	if (!op)
		return NULL;
	*op = (struct NC_send_op){.all = all, .transmit = transmit, .memory = op + 1, .room = room};
	atomic_fetch_add_explicit(&all->open, 1, memory_order_relaxed);
	return op;
}

static void free_memory(struct NC_send_op *op)
{
	if (op->memory != op + 1)
		free(op->memory);
}

static int make_room(struct NC_send_op *op, size_t room)
{
	void *memory;

	if (op->room >= room)
		return 0;
	memory = malloc(room);
	if (!memory)
		return -ENOMEM;
	free_memory(op);
	op->memory = memory;
	op->room = room;
	return 0;
}

/*
 * Returns the class of the largest range if all ranges are contiguous in memory; 0:
 * zero-copy does not pay.
 */
static unsigned largest_class(const struct nc_message *message)
{
	const struct NC_send *spec = message->spec;
	unsigned largest = 0;

	if (message->end - message->at < NC_ROUTE_CLASS_MIN)
		return 0;
	for (unsigned i = 0; i < spec->range_count; i++) {
		unsigned class = nc_route_class(nc_message_share(message, i));

		if (!nc_layout_gapless(&message->views[i].unit->layout) ||
		    !nc_unit_present(message->views[i].unit))
			return 0;
		if (class > largest)
			largest = class;
	}
	return largest;
}

/* Whether no range is in memory that is written again. */
static bool all_lasting(const struct nc_message *message)
{
	for (unsigned i = 0; i < message->spec->range_count; i++)
		if (!nc_unit_spliceable(message->views[i].unit))
			return false;
	return true;
}

enum zerocopy { NEVER, ALWAYS, LEARNT };

/* Whether a message is sent without a copy; LEARNT: what the route has learned decides. */
static enum zerocopy zerocopy_of(const struct nc_transmit *transmit,
				 const struct nc_message *message, const struct nc_route_use *route)
{
	if (!largest_class(message) || !route->route || !transmit->zerocopy.ring.usable ||
	    message->spec->flags & NC_SEND_COPY)
		return NEVER;
	if (nc_route_fixed(route) == NC_ROUTE_LEARN)
		return LEARNT;
	return nc_route_fixed(route) == NC_METHOD_ZEROCOPY ? ALWAYS : NEVER;
}

/* The same, but false also if nc_transmit_send() is to send it, to measure it. */
static bool is_settled(const struct nc_transmit *transmit, const struct nc_message *message,
		       const struct nc_route_use *route)
{
	enum zerocopy zerocopy = zerocopy_of(transmit, message, route);

	if (zerocopy != LEARNT)
		return zerocopy == ALWAYS;
	return !nc_route_level(route) &&
	       nc_transmit_settled(route, all_lasting(message), largest_class(message),
				   NC_METHOD_ZEROCOPY);
}

bool nc_send_op_may_zerocopy(const struct NC_send_op *op)
{
	enum zerocopy zerocopy = zerocopy_of(op->transmit, &op->message, &op->route);

	if (zerocopy != LEARNT)
		return zerocopy == ALWAYS;
	return nc_transmit_prefers(op->transmit, &op->route, all_lasting(&op->message),
				   largest_class(&op->message),
				   1u << NC_METHOD_COPY | 1u << NC_METHOD_ZEROCOPY) ==
	       NC_METHOD_ZEROCOPY;
}

void nc_send_op_consider_zerocopy(struct NC_send_op *op)
{
	static _Thread_local unsigned ticks;
	const struct nc_route_use *route = &op->route;
	bool sampled;

	/* It was opened only for that, or may not. */
	if (op->zerocopy || !nc_send_op_may_zerocopy(op))
		return;
	sampled = ++ticks % NC_ROUTE_SAMPLE == 0;
	op->zerocopy =
		nc_route_fixed(route) != NC_ROUTE_LEARN || nc_route_tries_zerocopy(route, sampled);
}

/* Whether the module may send; it does not know indices of the ring's registered files. */
static bool may_ask_kernel(const struct NC_send_op *op)
{
	int fixed = nc_route_fixed(&op->route);

	return !op->fixed && !op->route.kernel_refused &&
	       (fixed == NC_ROUTE_LEARN || fixed == NC_METHOD_KERNEL);
}

/* A message that an operation begins to send, and where it goes. */
struct beginning {
	struct nc_message message;
	int socket;
	unsigned flags;
	bool holds; /* the units, of a small message, too */
	struct nc_route_use route;
	unsigned weight; /* of the message in the route's counters */
};

/* Begins to send the message, which is open, by an operation; on failure both are closed. */
static int begin(struct NC_send_op *op, const struct plan *plan, const struct beginning *beginning)
{
	const unsigned flags = beginning->flags;
	int error;

	keep(op, plan, &beginning->message);
	op->socket = beginning->socket;
	op->fixed = flags & NC_SEND_OP_FIXED_FILE;
	op->route = beginning->route;
	op->weight = beginning->weight;
	op->zerocopy = flags & NC_SEND_OP_ZEROCOPY;
	if (op->gathered && !beginning->holds) {
		nc_message_release_early(&op->message);
		return 0;
	}
	error = nc_message_keep(&op->message);
	if (error)
		return error;
	op->kernel = flags & NC_SEND_OP_UNLINKED && may_ask_kernel(op);
	/* Fetch now, since preparing a step must not fail. */
	return op->kernel || op->gathered ? 0
					  : nc_message_fetch(&op->message, op->spec.range_count);
}

/* Checks the flags, opens the message and finds its route. */
static int open_message(struct nc_transmit *transmit, struct beginning *beginning,
			const struct NC_send *spec, struct nc_view *views)
{
	const unsigned flags = beginning->flags;
	int error;

	/* shutdown() does not accept the index of a registered file, nor do routes. */
	if ((flags & ~(NC_SEND_OP_FIXED_FILE | NC_SEND_OP_UNLINKED | NC_SEND_OP_ZEROCOPY)) ||
	    (flags & NC_SEND_OP_FIXED_FILE && spec &&
	     (spec->flags & NC_SEND_CLOSE || flags & NC_SEND_OP_ZEROCOPY)))
		return -EINVAL;
	error = nc_message_open(&beginning->message, transmit->index, spec, views);
	if (error)
		return error;
	if (!(flags & NC_SEND_OP_FIXED_FILE))
		beginning->weight = nc_transmit_route(transmit, beginning->socket,
						      &beginning->message, &beginning->route);
	if (flags & NC_SEND_OP_ZEROCOPY &&
	    !is_settled(transmit, &beginning->message, &beginning->route)) {
		nc_message_close(&beginning->message);
		return -EAGAIN;
	}
	return 0;
}

int nc_send_op_open(struct nc_send_ops *all, struct nc_transmit *transmit, int socket,
		    const struct NC_send *spec, unsigned flags, bool holds, struct NC_send_op **op)
{
	struct beginning beginning = {.socket = socket, .flags = flags, .holds = holds};
	struct nc_view views[NC_RANGES_MAX];
	struct NC_send_op *made;
	struct plan plan;
	int error = open_message(transmit, &beginning, spec, views);

	if (error)
		return error;
	/* No overflow: nc_message_open() has checked the lengths. */
	plan = plan_of(&beginning.message);
	made = create(all, transmit, size_of(&plan, spec));
	if (!made) {
		nc_message_close(&beginning.message);
		return -ENOMEM;
	}
	error = begin(made, &plan, &beginning);
	if (error) {
		nc_send_op_free(made);
		return error;
	}
	*op = made;
	return 0;
}

/* Until a message is kept, there is nothing to send. */
static void empty(struct NC_send_op *op)
{
	nc_send_op_release(op);
	op->over = true;
}

int nc_send_op_reopen(struct NC_send_op *op, int socket, const struct NC_send *spec, unsigned flags)
{
	struct beginning beginning = {.socket = socket, .flags = flags};
	struct nc_view views[NC_RANGES_MAX];
	struct plan plan;
	int error;

	if (nc_send_op_busy(op))
		return -EBUSY;
	empty(op);
	error = open_message(op->transmit, &beginning, spec, views);
	if (error)
		return error;
	plan = plan_of(&beginning.message);
	error = make_room(op, size_of(&plan, spec));
	if (error) {
		nc_message_close(&beginning.message);
		return error;
	}
	error = begin(op, &plan, &beginning);
	if (error)
		empty(op);
	return error;
}

void nc_send_op_release(struct NC_send_op *op)
{
	nc_send_op_drop_registered(op);
	nc_message_close(&op->message);
	op->spec.range_count = 0;
}

void nc_send_op_free(struct NC_send_op *op)
{
	struct nc_send_ops *all = op->all;

	nc_send_op_release(op);
	free_memory(op);
	free(op);
	/* Last: with 0 the cache may be closed.  Pairs with the acquire in close_locked(). */
	atomic_fetch_sub_explicit(&all->open, 1, memory_order_release);
}

void nc_send_ops_fini(struct nc_send_ops *all)
{
	struct NC_send_op *op = atomic_load_explicit(&all->abandoned, memory_order_acquire);

	while (op) {
		struct NC_send_op *next = op->next;

		free_memory(op);
		free(op);
		op = next;
	}
}
