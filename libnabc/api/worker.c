/* SPDX-License-Identifier: MIT */
/*
 * worker.c - the calls of nabc-worker.h, both ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <nabc-worker.h>

#include "api/registry.h"
#include "worker/backend.h"
#include "worker/responder.h"

struct NC_worker {
	struct NC_cache *cache;
	struct nc_responder *responder;
};

/* A server's end knows its cache to count itself out. */
struct NC_exchange {
	struct NC_cache *cache;
	struct nc_backend *backend;
};

/* --- the worker's end ---------------------------------------------------- */

static int inherited_socket(void)
{
	const char *text = getenv("NABC_WORKER_FD");
	char *end;
	long fd;

	if (!text || !*text)
		return -ENXIO;
	errno = 0;
	fd = strtol(text, &end, 10);
	if (errno || *end || fd < 0 || fd > INT_MAX)
		return -ENXIO;
	return (int)fd;
}

static int join(struct nc_index *cache, int socket, void *context)
{
	return nc_responder_open(cache, socket, context);
}

NC_worker *NC_worker_open(void)
{
	struct NC_worker *worker = calloc(1, sizeof(*worker));
	int error, socket = inherited_socket();

	if (!worker || socket < 0) {
		nc_api_result(worker ? socket : -ENOMEM);
		free(worker);
		return NULL;
	}
	error = nc_registry_adopt(socket, join, &worker->responder, &worker->cache);
	if (error) {
		if (worker->responder)
			nc_responder_close(worker->responder);
		/* Whatever the number stands for, it is not a server's socket. */
		nc_api_result(error == -ENOTSOCK || error == -EBADF ? -EPROTO : error);
		free(worker);
		return NULL;
	}
	/* What the worker starts must not inherit its membership. */
	fcntl(socket, F_SETFD, FD_CLOEXEC);
	worker->responder->index = &worker->cache->index;
	return worker;
}

int NC_worker_accept(NC_worker *worker, struct NC_request *request)
{
	return nc_api_result(worker && request ? nc_responder_accept(worker->responder, request)
					       : -EINVAL);
}

const char *NC_request_variable(const struct NC_request *request, const char *name)
{
	const char *at, *end;
	size_t length;

	if (!request || !request->variables || !name)
		return NULL;
	length = strlen(name);
	at = request->variables;
	end = at + request->variables_length;
	while (at < end) {
		size_t here = strlen(at);

		if (here > length && at[length] == '=' && memcmp(at, name, length) == 0)
			return at + length + 1;
		at += here + 1;
	}
	return NULL;
}

int NC_worker_respond(NC_worker *worker, const struct NC_request *request,
		      const struct NC_response *response)
{
	if (!worker || !request || !response)
		return nc_api_result(-EINVAL);
	return nc_api_result(nc_responder_respond(worker->responder, request, response));
}

int NC_worker_send(NC_worker *worker, const struct NC_request *request,
		   const struct NC_range *ranges, unsigned count, unsigned flags)
{
	if (!worker || !request)
		return nc_api_result(-EINVAL);
	return nc_api_result(nc_responder_send(worker->responder, request, ranges, count, flags));
}

static size_t number_in(const struct NC_request *request, const char *name)
{
	const char *text = NC_request_variable(request, name);

	return text ? strtoull(text, NULL, 10) : 0;
}

int NC_worker_body(NC_worker *worker, struct NC_request *request, struct NC_range *piece)
{
	struct NC_range whole = {0};

	if (!worker || !request || !piece)
		return nc_api_result(-EINVAL);
	if (!(request->flags & NC_REQUEST_BODY))
		whole = (struct NC_range){.id = number_in(request, "NABC_BODY_ID"),
					  .length = number_in(request, "CONTENT_LENGTH")};
	return nc_api_result(nc_responder_body(worker->responder, request, &whole, piece));
}

int NC_worker_abort(NC_worker *worker, const struct NC_request *request)
{
	return nc_api_result(worker && request ? nc_responder_abort(worker->responder, request)
					       : -EINVAL);
}

int NC_worker_gone(NC_worker *worker, const struct NC_request *request)
{
	return nc_api_result(worker && request ? nc_responder_gone(worker->responder, request)
					       : -EINVAL);
}

void NC_worker_close(NC_worker *worker)
{
	if (!worker)
		return;
	nc_responder_close(worker->responder);
	/* With handles open the cache outlives the worker; the process ends soon. */
	(void)nc_registry_close(worker->cache);
	free(worker);
}

/* --- the server's end ---------------------------------------------------- */

NC_exchange *NC_exchange_start(NC_cache *cache, const struct NC_exchange_options *options)
{
	struct NC_exchange *exchange = NULL;
	int error = 0;

	cache = nc_registry_find(cache, &error);
	if (cache) {
		exchange = calloc(1, sizeof(*exchange));
		error = exchange ? nc_backend_open(&cache->serve, options, &exchange->backend)
				 : -ENOMEM;
	}
	if (error) {
		free(exchange);
		nc_api_result(error);
		return NULL;
	}
	exchange->cache = cache;
	atomic_fetch_add_explicit(&cache->exchanges, 1, memory_order_relaxed);
	return exchange;
}

int NC_exchange_started(NC_exchange *exchange, pid_t pid, int pidfd)
{
	return nc_api_result(exchange ? nc_backend_adopt(exchange->backend, pid, pidfd) : -EINVAL);
}

static bool is_started(const NC_exchange *exchange)
{
	return exchange && exchange->backend->process.pidfd >= 0;
}

pid_t NC_exchange_pid(const NC_exchange *exchange)
{
	return is_started(exchange) ? exchange->backend->process.pid : nc_api_result(-EINVAL);
}

int NC_exchange_pidfd(const NC_exchange *exchange)
{
	return is_started(exchange) ? exchange->backend->process.pidfd : nc_api_result(-EINVAL);
}

static bool has_lane(const NC_exchange *exchange, unsigned lane)
{
	return exchange && lane < exchange->backend->lanes;
}

int NC_exchange_fd(const NC_exchange *exchange, unsigned lane)
{
	return has_lane(exchange, lane) ? exchange->backend->lane[lane].doorbell
					: nc_api_result(-EINVAL);
}

int NC_exchange_submit(NC_exchange *exchange, unsigned lane, uint64_t tag, const char *variables,
		       size_t length, unsigned flags)
{
	if (!has_lane(exchange, lane) || (length && !variables))
		return nc_api_result(-EINVAL);
	return nc_api_result(
		nc_backend_send(exchange->backend, lane, tag, variables, length, flags));
}

int NC_exchange_body(NC_exchange *exchange, unsigned lane, uint64_t tag,
		     const struct NC_range *piece, unsigned flags)
{
	if (!has_lane(exchange, lane))
		return nc_api_result(-EINVAL);
	return nc_api_result(nc_backend_give(exchange->backend, lane, tag, piece, flags));
}

int NC_exchange_kick(NC_exchange *exchange, unsigned lane)
{
	if (!has_lane(exchange, lane))
		return nc_api_result(-EINVAL);
	nc_backend_wake(exchange->backend, lane);
	return 0;
}

int NC_exchange_reap(NC_exchange *exchange, unsigned lane, uint64_t *tag,
		     struct NC_response *response)
{
	if (!has_lane(exchange, lane) || !tag || !response)
		return nc_api_result(-EINVAL);
	return nc_api_result(nc_backend_take(exchange->backend, lane, tag, response));
}

void NC_exchange_data_free(const void *data)
{
	free((void *)(uintptr_t)data);
}

int NC_exchange_sent(NC_exchange *exchange, unsigned lane, uint64_t tag)
{
	if (!has_lane(exchange, lane))
		return nc_api_result(-EINVAL);
	return nc_api_result(nc_backend_sent(exchange->backend, lane, tag));
}

int NC_exchange_cancel(NC_exchange *exchange, unsigned lane, uint64_t tag)
{
	if (!has_lane(exchange, lane))
		return nc_api_result(-EINVAL);
	return nc_api_result(nc_backend_cancel(exchange->backend, lane, tag));
}

int NC_exchange_arm(NC_exchange *exchange, unsigned lane)
{
	return NC_exchange_arm_for(exchange, lane, 1);
}

int NC_exchange_arm_for(NC_exchange *exchange, unsigned lane, unsigned responses)
{
	if (!has_lane(exchange, lane) || responses == 0)
		return nc_api_result(-EINVAL);
	return nc_backend_sleep(exchange->backend, lane, responses);
}

int NC_exchange_untaken(const NC_exchange *exchange, unsigned lane)
{
	if (!has_lane(exchange, lane))
		return nc_api_result(-EINVAL);
	return nc_api_result(nc_backend_untaken(exchange->backend, lane));
}

int NC_exchange_withdraw(NC_exchange *exchange, unsigned lane, unsigned most, unsigned *left)
{
	if (!has_lane(exchange, lane) || !left)
		return nc_api_result(-EINVAL);
	return nc_api_result(nc_backend_withdraw(exchange->backend, lane, most, left));
}

int NC_exchange_close(NC_exchange *exchange)
{
	if (!exchange)
		return nc_api_result(-EINVAL);
	nc_backend_end(exchange->backend);
	atomic_fetch_sub_explicit(&exchange->cache->exchanges, 1, memory_order_relaxed);
	free(exchange);
	return 0;
}
