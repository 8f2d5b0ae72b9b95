/* SPDX-License-Identifier: MIT */
/*
 * ring-buffers.c - see ring-buffers.h.
 */
#include <errno.h>
#include <nabc-async.h>
#include <nabc-worker.h>
#include <nabc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "cache/index.h"
#include "os/registered.h"
#include "send/kernel.h"
#include "send/message.h"
#include "send/ring-buffers.h"
#include "send/send-op.h"
#include "send/transmit.h"
#include "send/zerocopy.h"
#include "store/store.h"
#include "store/unit.h"

int nc_ring_buffers_open(struct nc_send_ops *all, struct nc_transmit *transmit,
			 struct io_uring *ring, void (*stale)(void *data), void *data,
			 struct NC_ring_buffers **buffers)
{
	struct nc_zerocopy *zerocopy = &transmit->zerocopy;
	struct NC_ring_buffers *made;

	if (!nc_zerocopy_registers(zerocopy))
		return -EOPNOTSUPP;
	made = malloc(sizeof(*made));
	if (!made)
		return -ENOMEM;
	*made = (struct NC_ring_buffers){
		.all = all, .zerocopy = zerocopy, .table = nc_zerocopy_open_table(zerocopy, ring)};
	if (!made->table) {
		free(made);
		return -ENOMEM;
	}
	nc_registered_own(made->table, stale, data);
	atomic_fetch_add_explicit(&all->open, 1, memory_order_relaxed);
	*buffers = made;
	return 0;
}

int nc_ring_buffers_close(struct NC_ring_buffers *buffers)
{
	if (nc_registered_busy(buffers->table))
		return -EBUSY;
	nc_zerocopy_close_table(buffers->zerocopy, buffers->table);
	/* Pairs with the acquire in close_locked() of the registry. */
	atomic_fetch_sub_explicit(&buffers->all->open, 1, memory_order_release);
	free(buffers);
	return 0;
}

/* Whether the rest of the message is one piece that may be sent from registered memory. */
static bool suits(const struct NC_send_op *op, const struct NC_ring_buffers *buffers)
{
	const struct nc_message *message = &op->message;

	return op->zerocopy && !op->gathered && op->spec.range_count == 1 && !op->spec.text_count &&
	       ((!op->held[0] && !op->held[1]) || op->use.table == buffers->table) &&
	       message->range == 0 && nc_message_piece(message) >= NC_RING_BUFFERS_MIN &&
	       !(op->kernel && nc_kernel_has(message->views[0].unit)) &&
	       nc_zerocopy_prefers_registered(&op->route, nc_message_piece(message));
}

int nc_send_op_steps(struct NC_send_op *op, struct NC_ring_buffers *buffers)
{
	const struct nc_message *message = &op->message;
	const struct nc_unit *unit;
	size_t at, length;

	if (op->in_flight || op->error || op->over || &op->transmit->zerocopy != buffers->zerocopy)
		return -EINVAL;
	nc_send_op_unselect(op);
	if (!suits(op, buffers))
		return 1;
	unit = message->views[0].unit;
	at = unit->at + op->spec.ranges[0].offset + message->within;
	length = nc_message_piece(message);
	if (!nc_registered_take(buffers->table, &unit->store->segment, at, length, &op->use))
		return 1;
	op->uses_registered = true;
	op->held[op->use.period]++;
	if (op->use.length == length)
		return message->at < op->spec.header_length ? 2 : 1;
	/* It continues in another block. */
	nc_send_op_unselect(op);
	return 1;
}
