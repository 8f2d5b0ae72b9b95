/* SPDX-License-Identifier: MIT */
/*
 * nabc-async.c - the calls of nabc-async.h: each finds the cache, calls one
 * function of a lower floor and turns its error into errno.
 */
#include <errno.h>

#include <nabc-async.h>

#include "api/registry.h"
#include "send/async.h"

NC_operation *NC_operation_open(NC_cache *cache, int sock_fd, const struct NC_send *message,
				unsigned flags)
{
	NC_operation *operation = NULL;
	int error;

	cache = nc_registry_find(cache, &error);
	if (cache)
		error = nc_operation_open(&cache->operations, &cache->transmit, sock_fd, message,
					  flags, &operation);
	if (operation)
		nc_operation_consider_zerocopy(operation);
	nc_api_result(error);
	return operation;
}

int NC_prep_send(struct io_uring_sqe *sqe, NC_operation *operation)
{
	return nc_api_result(sqe && operation ? nc_operation_prep(operation, sqe) : -EINVAL);
}

int NC_operation_complete(NC_operation *operation, const struct io_uring_cqe *cqe)
{
	return nc_api_result(operation && cqe
				     ? nc_operation_complete(operation, cqe->res, cqe->flags)
				     : -EINVAL);
}

size_t NC_operation_sent(const NC_operation *operation)
{
	return operation ? operation->message.at - operation->spec.skip : 0;
}

int NC_operation_close(NC_operation *operation)
{
	if (!operation)
		return nc_api_result(-EINVAL);
	if (nc_operation_busy(operation))
		return nc_api_result(-EBUSY);
	nc_operation_free(operation);
	return 0;
}

int NC_operation_abandon(NC_operation *operation)
{
	if (!operation)
		return nc_api_result(-EINVAL);
	nc_operation_abandon(operation);
	return 0;
}

NC_ring *NC_ring_open(NC_cache *cache, unsigned depth, unsigned flags)
{
	NC_ring *ring = NULL;
	int error;

	cache = nc_registry_find(cache, &error);
	if (cache)
		error = nc_async_open(&cache->operations, &cache->transmit, depth, flags, &ring);
	nc_api_result(error);
	return ring;
}

int NC_ring_fd(NC_ring *ring)
{
	return nc_api_result(ring ? ring->epoll : -EINVAL);
}

int NC_ring_send(NC_ring *ring, int sock_fd, const struct NC_send *message, void *data)
{
	return nc_api_result(ring ? nc_async_send(ring, sock_fd, message, data) : -EINVAL);
}

int NC_ring_submit(NC_ring *ring)
{
	return nc_api_result(ring ? nc_async_submit(ring) : -EINVAL);
}

int NC_ring_reap(NC_ring *ring, struct NC_completion *done, unsigned count)
{
	return nc_api_result(ring && done && count ? nc_async_reap(ring, done, count) : -EINVAL);
}

int NC_ring_cancel(NC_ring *ring, int sock_fd)
{
	return nc_api_result(ring ? nc_async_cancel(ring, sock_fd) : -EINVAL);
}

int NC_ring_close(NC_ring *ring)
{
	if (!ring)
		return nc_api_result(-EINVAL);
	nc_async_close(ring);
	return 0;
}
