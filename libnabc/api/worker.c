/* SPDX-License-Identifier: MIT */
/*
 * worker.c - the calls of nabc-worker.h, both ends.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <nabc-worker.h>
#include <nabc.h>

#include "api/registry.h"
#include "base/diagnostics.h"
#include "base/versioned.h"
#include "cache/index.h"
#include "os/process.h"
#include "wire/wire.h"
#include "worker/backend.h"
#include "worker/responder.h"
#include "worker/response-head.h"

/* Size of each structure in version 1.0: callers know at least these bytes. */
#define REQUEST_LEAST 40u
#define RESPONSE_LEAST 96u
#define WORKER_OPTIONS_LEAST 32u
#define BACKEND_OPTIONS_LEAST 64u

static_assert(sizeof(struct NC_request) == REQUEST_LEAST, "grows at its end only");
static_assert(sizeof(struct NC_response) == RESPONSE_LEAST, "grows at its end only");
static_assert(sizeof(struct NC_worker_options) == WORKER_OPTIONS_LEAST, "grows at its end only");
static_assert(sizeof(struct NC_backend_options) == BACKEND_OPTIONS_LEAST, "grows at its end only");

struct NC_worker {
	struct NC_cache *cache;
	struct nc_responder *responder;
};

/* --- the worker's end ---------------------------------------------------- */

static int inherited_socket(void)
{
	/* A program with more privileges than its caller must not trust the environment. */
	const char *text = secure_getenv("NABC_WORKER_FD");
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

/* What worker_join() needs and makes. */
struct joining {
	const struct NC_worker_options *options;
	struct nc_responder *responder;
};

static int worker_join(struct nc_index *cache, int socket, void *context)
{
	struct joining *joining = context;
	int error = nc_responder_open(cache, socket, &joining->responder);

	if (!error)
		nc_diagnostics_init(&cache->diagnostics, joining->options->log,
				    joining->options->log_context);
	return error;
}

/* Copies the options, which may be NULL.  Returns the socket to the server, or -errno. */
static int read_options(const struct NC_worker_options *given, struct NC_worker_options *known)
{
	int error;

	*known = (struct NC_worker_options){0};
	error = given ? nc_versioned_read(known, sizeof(*known), WORKER_OPTIONS_LEAST, given) : 0;
	if (error)
		return error;
	if (known->flags & ~NC_WORKER_SOCKET)
		return -EINVAL;
	if (!(known->flags & NC_WORKER_SOCKET))
		return inherited_socket();
	return known->socket < 0 ? -EINVAL : known->socket;
}

NC_worker *NC_worker_open(const struct NC_worker_options *options)
{
	struct NC_worker_options known;
	struct joining joining = {.options = &known};
	int error, socket = read_options(options, &known);
	struct NC_worker *worker = socket < 0 ? NULL : calloc(1, sizeof(*worker));

	if (!worker) {
		nc_api_result(socket < 0 ? socket : -ENOMEM);
		return NULL;
	}
	error = nc_registry_adopt(socket, worker_join, &joining, &worker->cache);
	worker->responder = joining.responder;
	if (error) {
		if (worker->responder)
			nc_responder_close(worker->responder);
		/* The descriptor is not a server's socket. */
		nc_api_result(error == -ENOTSOCK || error == -EBADF ? -EPROTO : error);
		free(worker);
		return NULL;
	}
	/* Processes that the worker starts must not inherit its membership. */
	fcntl(socket, F_SETFD, FD_CLOEXEC);
	worker->responder->index = &worker->cache->index;
	return worker;
}

int NC_worker_fd(NC_worker *worker)
{
	return nc_api_result(worker ? nc_responder_fd(worker->responder) : -EINVAL);
}

int NC_worker_accept(NC_worker *worker, struct NC_request *request, size_t size, unsigned flags)
{
	struct NC_request known;
	int got;

	if (!worker || !request || size < REQUEST_LEAST ||
	    (flags & ~(NC_ACCEPT_NOWAIT | NC_ACCEPT_EVENTS)))
		return nc_api_result(-EINVAL);
	got = nc_responder_accept(worker->responder, &known, flags);
	if (got > 0) {
		known.size = size < sizeof(known) ? size : sizeof(known);
		nc_versioned_write(request, size, &known, sizeof(known));
	}
	return nc_api_result(got);
}

const char *NC_request_variable(const struct NC_request *request, const char *name)
{
	return request && request->variables && name
		       ? nc_wire_variable(request->variables, request->variables_length, name)
		       : NULL;
}

/* Passes the response on with the fields that this library knows. */
static int pass_response(NC_worker *worker, const struct NC_request *request,
			 const struct NC_response *response,
			 int (*pass)(struct nc_responder *responder,
				     const struct NC_request *request,
				     const struct NC_response *response))
{
	struct NC_response known;
	int error;

	if (!worker || !request || !response)
		return nc_api_result(-EINVAL);
	error = nc_versioned_read(&known, sizeof(known), RESPONSE_LEAST, response);
	return nc_api_result(error ? error : pass(worker->responder, request, &known));
}

int NC_worker_respond(NC_worker *worker, const struct NC_request *request,
		      const struct NC_response *response)
{
	return pass_response(worker, request, response, nc_responder_respond);
}

int NC_worker_send(NC_worker *worker, const struct NC_request *request,
		   const struct NC_range *ranges, unsigned count, unsigned flags)
{
	if (!worker || !request)
		return nc_api_result(-EINVAL);
	return nc_api_result(nc_responder_send(worker->responder, request, ranges, count, flags));
}

int NC_worker_trailers(NC_worker *worker, const struct NC_request *request, const char *lines,
		       size_t length, unsigned flags)
{
	if (!worker || !request)
		return nc_api_result(-EINVAL);
	return nc_api_result(
		nc_responder_trailers(worker->responder, request, lines, length, flags));
}

int NC_worker_body(NC_worker *worker, struct NC_request *request, struct NC_range *piece,
		   unsigned flags)
{
	if (!worker || !request || !piece || (flags & ~NC_BODY_NOWAIT))
		return nc_api_result(-EINVAL);
	return nc_api_result(nc_responder_body(worker->responder, request, piece, flags));
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

int NC_worker_interim(NC_worker *worker, const struct NC_request *request,
		      const struct NC_response *response)
{
	return pass_response(worker, request, response, nc_responder_interim);
}

int NC_worker_replace(NC_worker *worker)
{
	return nc_api_result(worker ? nc_responder_replace(worker->responder) : -EINVAL);
}

void NC_worker_close(NC_worker *worker)
{
	if (!worker)
		return;
	nc_responder_close(worker->responder);
	/* With open handles the cache outlives the worker; the process ends soon. */
	(void)nc_registry_close(worker->cache);
	free(worker);
}

ssize_t NC_response_headers_parse(struct NC_response *response, char *text, size_t length)
{
	struct nc_response_head head;
	ssize_t got;

	if (!response || response->size < RESPONSE_LEAST || (length && !text))
		return nc_api_result(-EINVAL);
	got = length ? nc_response_head_parse(&head, text, length) : -EAGAIN;
	if (got > 0) {
		response->status = head.status;
		response->headers = head.headers;
		response->headers_length = head.headers_length;
	}
	return nc_api_result(got);
}

int NC_response_headers_check(const char *headers, size_t length, size_t *wrong)
{
	size_t offset = 0;
	int error;

	if (length && !headers)
		return nc_api_result(-EINVAL);
	if (length > NC_BLOCK_MAX)
		return nc_api_result(-EMSGSIZE);
	error = length ? nc_response_head_check(headers, length, &offset) : 0;
	if (error && wrong)
		*wrong = offset;
	return nc_api_result(error);
}

/* --- the server's end ---------------------------------------------------- */

NC_backend *NC_backend_start(NC_cache *cache, const struct NC_backend_options *options)
{
	struct NC_backend_options known;
	NC_backend *backend = NULL;
	int error;

	cache = nc_registry_find(cache, &error);
	if (cache && !cache->index.owner)
		error = -EPERM;
	else if (cache)
		error = options ? nc_versioned_read(&known, sizeof(known), BACKEND_OPTIONS_LEAST,
						    options)
				: -EINVAL;
	if (!error)
		error = nc_backend_open(&cache->serve, &cache->backends, &known, &backend);
	nc_api_result(error);
	return backend;
}

int NC_backend_started(NC_backend *backend, pid_t pid, int pidfd)
{
	return nc_api_result(backend ? nc_backend_adopt(backend, pid, pidfd) : -EINVAL);
}

static bool is_started(const NC_backend *backend)
{
	return backend && backend->process.pidfd >= 0;
}

pid_t NC_backend_pid(const NC_backend *backend)
{
	return is_started(backend) ? backend->process.pid : nc_api_result(-EINVAL);
}

int NC_backend_pidfd(const NC_backend *backend)
{
	return is_started(backend) ? backend->process.pidfd : nc_api_result(-EINVAL);
}

static bool has_channel(const NC_backend *backend, unsigned channel)
{
	return backend && channel < backend->channels;
}

int NC_backend_fd(const NC_backend *backend, unsigned channel)
{
	return has_channel(backend, channel) ? backend->channel[channel].doorbell
					     : nc_api_result(-EINVAL);
}

int NC_backend_submit(NC_backend *backend, unsigned channel, uint64_t tag, const char *variables,
		      size_t length, unsigned flags)
{
	if (!has_channel(backend, channel) || (length && !variables))
		return nc_api_result(-EINVAL);
	return nc_api_result(nc_backend_send(backend, channel, tag, variables, length, flags));
}

int NC_backend_body(NC_backend *backend, unsigned channel, uint64_t tag,
		    const struct NC_range *piece, unsigned flags)
{
	if (!has_channel(backend, channel))
		return nc_api_result(-EINVAL);
	return nc_api_result(nc_backend_give(backend, channel, tag, piece, flags));
}

int NC_backend_kick(NC_backend *backend, unsigned channel)
{
	if (!has_channel(backend, channel))
		return nc_api_result(-EINVAL);
	nc_backend_wake(backend, channel);
	return 0;
}

int NC_backend_reap(NC_backend *backend, unsigned channel, uint64_t *tag,
		    struct NC_response *response, size_t size)
{
	struct NC_response known;
	int got;

	if (!has_channel(backend, channel) || !tag || !response || size < RESPONSE_LEAST)
		return nc_api_result(-EINVAL);
	got = nc_backend_take(backend, channel, tag, &known);
	if (got > 0) {
		known.size = size < sizeof(known) ? size : sizeof(known);
		nc_versioned_write(response, size, &known, sizeof(known));
	}
	return nc_api_result(got);
}

void NC_backend_data_free(const void *data)
{
	free((void *)(uintptr_t)data);
}

int NC_backend_sent(NC_backend *backend, unsigned channel, uint64_t tag)
{
	if (!has_channel(backend, channel))
		return nc_api_result(-EINVAL);
	return nc_api_result(nc_backend_sent(backend, channel, tag));
}

int NC_backend_cancel(NC_backend *backend, unsigned channel, uint64_t tag)
{
	if (!has_channel(backend, channel))
		return nc_api_result(-EINVAL);
	return nc_api_result(nc_backend_cancel(backend, channel, tag));
}

int NC_backend_arm(NC_backend *backend, unsigned channel, unsigned responses)
{
	if (!has_channel(backend, channel) || responses == 0)
		return nc_api_result(-EINVAL);
	return nc_backend_sleep(backend, channel, responses);
}

int NC_backend_pending(const NC_backend *backend, unsigned channel)
{
	if (!has_channel(backend, channel))
		return nc_api_result(-EINVAL);
	return nc_api_result(nc_backend_pending(backend, channel));
}

int NC_backend_withdraw(NC_backend *backend, unsigned channel, unsigned most, unsigned *left)
{
	if (!has_channel(backend, channel) || !left)
		return nc_api_result(-EINVAL);
	return nc_api_result(nc_backend_withdraw(backend, channel, most, left));
}

int NC_backend_stop(NC_backend *backend)
{
	if (!backend)
		return nc_api_result(-EINVAL);
	nc_backend_stop(backend);
	return 0;
}

int NC_backend_close(NC_backend *backend)
{
	if (!backend)
		return nc_api_result(-EINVAL);
	nc_backend_end(backend);
	return 0;
}
