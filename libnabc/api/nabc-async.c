/* SPDX-License-Identifier: MIT */
/*
 * nabc-async.c - the calls of nabc-async.h: each finds the cache, calls one
 * function of a lower folder, and sets errno on failure.
 */
#include <errno.h>
#include <liburing.h>
#include <stdbool.h>
#include <stddef.h>

#include <nabc-async.h>
#include <nabc-worker.h>
#include <nabc.h>

#include "api/registry.h"
#include "base/versioned.h"
#include "os/registered.h"
#include "send/async.h"
#include "send/message.h"
#include "send/ring-buffers.h"
#include "send/send-op.h"

#define REAP_STEP 64u

NC_send_op *NC_send_op_open(NC_cache *cache, int sock_fd, const struct NC_send *message,
			    unsigned flags)
{
	NC_send_op *op = NULL;
	struct NC_send known;
	int error;

	cache = nc_registry_find(cache, &error);
	if (cache)
		error = nc_api_message(&message, &known);
	if (!error)
		error = nc_send_op_open(&cache->operations, &cache->transmit, sock_fd, message,
					flags, false, &op);
	if (op)
		nc_send_op_consider_zerocopy(op);
	nc_api_result(error);
	return op;
}

int NC_send_op_reopen(NC_send_op *op, int sock_fd, const struct NC_send *message, unsigned flags)
{
	struct NC_send known;
	int error = op ? nc_api_message(&message, &known) : -EINVAL;

	if (!error)
		error = nc_send_op_reopen(op, sock_fd, message, flags);
	if (!error)
		nc_send_op_consider_zerocopy(op);
	return nc_api_result(error);
}

int NC_prep_send(struct io_uring_sqe *sqe, NC_send_op *op)
{
	return nc_api_result(sqe && op ? nc_send_op_prep(op, sqe) : -EINVAL);
}

int NC_send_op_complete(NC_send_op *op, const struct io_uring_cqe *cqe)
{
	return nc_api_result(op && cqe ? nc_send_op_complete(op, cqe->res, cqe->flags) : -EINVAL);
}

size_t NC_send_op_sent(const NC_send_op *op)
{
	return op ? op->message.at - op->spec.skip : 0;
}

int NC_send_op_close(NC_send_op *op)
{
	if (!op)
		return nc_api_result(-EINVAL);
	if (nc_send_op_busy(op))
		return nc_api_result(-EBUSY);
	nc_send_op_free(op);
	return 0;
}

int NC_send_op_abandon(NC_send_op *op)
{
	if (!op)
		return nc_api_result(-EINVAL);
	nc_send_op_abandon(op);
	return 0;
}

NC_ring_buffers *NC_ring_buffers_open(NC_cache *cache, struct io_uring *ring,
				      void (*stale)(void *data), void *data)
{
	NC_ring_buffers *buffers = NULL;
	int error = -EINVAL;

	cache = ring ? nc_registry_find(cache, &error) : NULL;
	if (cache)
		error = nc_ring_buffers_open(&cache->operations, &cache->transmit, ring, stale,
					     data, &buffers);
	nc_api_result(error);
	return buffers;
}

int NC_ring_buffers_clear(NC_ring_buffers *buffers)
{
	if (!buffers)
		return nc_api_result(-EINVAL);
	nc_registered_clear(buffers->table);
	return 0;
}

int NC_ring_buffers_close(NC_ring_buffers *buffers)
{
	return nc_api_result(buffers ? nc_ring_buffers_close(buffers) : -EINVAL);
}

int NC_send_op_steps(NC_send_op *op, NC_ring_buffers *buffers)
{
	return nc_api_result(op && buffers ? nc_send_op_steps(op, buffers) : -EINVAL);
}

NC_sender *NC_sender_open(NC_cache *cache, unsigned depth, unsigned flags)
{
	NC_sender *sender = NULL;
	int error;

	cache = nc_registry_find(cache, &error);
	if (cache)
		error = nc_async_open(&cache->operations, &cache->transmit, depth, flags, &sender);
	nc_api_result(error);
	return sender;
}

int NC_sender_fd(NC_sender *sender)
{
	return nc_api_result(sender ? sender->epoll : -EINVAL);
}

int NC_sender_send(NC_sender *sender, int sock_fd, const struct NC_send *message, void *data)
{
	struct NC_send known;
	int error = sender ? nc_api_message(&message, &known) : -EINVAL;

	return nc_api_result(error ? error : nc_async_send(sender, sock_fd, message, data));
}

int NC_sender_submit(NC_sender *sender)
{
	return nc_api_result(sender ? nc_async_submit(sender) : -EINVAL);
}

int NC_sender_reap(NC_sender *sender, struct NC_completion *done, size_t stride, unsigned count)
{
	struct NC_completion known[REAP_STEP];
	int total = 0, found;

	if (!sender || !done || !stride || !count)
		return nc_api_result(-EINVAL);
	if (stride == sizeof(*done))
		return nc_api_result(nc_async_reap(sender, done, count));
	do {
		unsigned more = count - (unsigned)total;

		found = nc_async_reap(sender, known, more < REAP_STEP ? more : REAP_STEP);
		if (found <= 0)
			break;
		nc_versioned_write_all((char *)done + (size_t)total * stride, stride, known,
				       sizeof(known[0]), (size_t)found);
		total += found;
	} while (found == (int)REAP_STEP && (unsigned)total < count);
	return nc_api_result(found < 0 && !total ? found : total);
}

int NC_sender_cancel(NC_sender *sender, int sock_fd)
{
	return nc_api_result(sender ? nc_async_cancel(sender, sock_fd) : -EINVAL);
}

int NC_sender_close(NC_sender *sender)
{
	if (!sender)
		return nc_api_result(-EINVAL);
	nc_async_close(sender);
	return 0;
}
