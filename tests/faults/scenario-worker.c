/* SPDX-License-Identifier: MIT */
/*
 * scenario-worker.c - requests and responses between two processes: this one is the
 * server and meets the faults, with this program as a worker; or it is the worker of a
 * server without faults.  Each round has four requests, which differ in DO.
 */
#include "scenario.h"

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nabc-worker.h>
#include <nabc.h>

#define SIZE ((size_t)30000)
#define REQUESTS 4u

static const char *const orders[REQUESTS] = {"DO=plain", "DO=echo", "DO=pieces", "DO=nothing"};

static bool has_body(unsigned number)
{
	return strcmp(orders[number], "DO=echo") == 0;
}

/* Returns the length of a response's body. */
static size_t length_of(unsigned number)
{
	return number == 3 ? 0 : SIZE;
}

/* --- a worker without faults ------------------------------------------------------------------ */

static size_t make_plainly(void)
{
	char bytes[SIZE];
	NC_handle handle;

	for (size_t i = 0; i < SIZE; i++)
		bytes[i] = (char)byte_of(i);
	if (NC_alloc(&handle, SIZE, 0) < 0 || NC_write(&handle, bytes, SIZE, 0) < 0 ||
	    NC_insert(&handle) < 0)
		_exit(3);
	return NC_cache_id(&handle);
}

static void answer_plainly(NC_worker *worker, struct NC_request *request)
{
	const char *order = NC_request_variable(request, "DO");
	struct NC_response response = NC_RESPONSE_INIT(.status = 200);
	struct NC_range piece;

	while (request->flags & NC_REQUEST_BODY && NC_worker_body(worker, request, &piece, 0) > 0)
		;
	if (strcmp(order, "nothing") != 0)
		response.body = (struct NC_range){.id = make_plainly(), .length = SIZE};
	if (strcmp(order, "pieces") == 0) {
		response.flags = NC_RESPONSE_MORE | NC_RESPONSE_KEEP;
		response.body.length = SIZE / 2;
	}
	if (NC_worker_respond(worker, request, &response) < 0 ||
	    !(response.flags & NC_RESPONSE_MORE))
		return;
	response.body.offset = SIZE / 2;
	(void)NC_worker_send(worker, request, &response.body, 1, 0);
}

int worker_main(void)
{
	NC_worker *worker = NC_worker_open(NULL);
	struct NC_request request;

	while (worker && NC_worker_accept(worker, &request, sizeof(request), 0) == 1)
		answer_plainly(worker, &request);
	NC_worker_close(worker);
	return 0;
}

/* --- the server that is tested --------------------------------------------------------------- */

static pid_t started;

static void become_worker(int socket, char *const *environment)
{
	char *const argv[] = {(char *)(uintptr_t)("library"), (char *)(uintptr_t)AS_WORKER, NULL};

	if (dup2(socket, 3) < 0)
		_exit(127);
	execve("/proc/self/exe", argv, environment);
	_exit(127);
}

/* A start that reports its process later. */
static int start(void *context, int socket, char *const *environment, pid_t *pid, int *pidfd)
{
	(void)context, (void)pidfd;
	callback_begin();
	started = fork();
	if (started == 0)
		become_worker(socket, environment);
	callback_end();
	*pid = 0;
	return 0;
}

/* Checks the content of a response; *at: its bytes so far. */
static void check_answer(const struct NC_response *response, size_t *at)
{
	const unsigned char *bytes = response->data;
	size_t run;

	for (unsigned i = 0; i < response->range_count; i++) {
		const struct NC_range *range = &response->ranges[i];
		struct NC_hold hold = response->holds[i];

		if (GOT(bytes, NC_data(&hold, &run, range->offset)))
			MUST(run > 0 && bytes[0] == byte_of(range->offset));
		*at += range->length;
		(void)OK(NC_release(&hold));
	}
	for (size_t i = 0; i < response->data_length; i++, (*at)++)
		if (bytes[i] != byte_of(*at))
			wrong("a wrong byte in an answer");
	if (response->data)
		DO(NC_backend_data_free(response->data));
}

/* Waits for a response; returns false if the worker has exited, or is silent. */
static bool await_answer(NC_backend *backend, NC_cache *cache, bool posix)
{
	struct pollfd fds[3] = {{.events = POLLIN}, {.events = POLLIN}, {.events = POLLIN}};
	uint64_t count;

	/* None of these can fail. */
	fds[0].fd = NC_backend_fd(backend, 0);
	fds[1].fd = NC_cache_fd(cache);
	fds[2].fd = NC_backend_pidfd(backend);
	if (poll(fds, 3, 3000) <= 0) {
		wrong("a worker does not answer");
		return false;
	}
	if (fds[0].revents & POLLIN && !posix)
		(void)!read(fds[0].fd, &count, sizeof(count));
	if (fds[1].revents)
		(void)OK(NC_cache_dispatch(cache));
	return !fds[2].revents;
}

static bool take_answer(NC_backend *backend, NC_cache *cache, unsigned number, bool posix)
{
	struct NC_response response;
	size_t length = 0;
	bool lives = true;
	uint64_t tag;
	int got;

	for (;;) {
		if (!NUMBER(got, NC_backend_reap(backend, 0, &tag, &response, sizeof(response))))
			return false;
		if (got == 1) {
			MUST(tag == number + 1);
			if (response.flags & NC_RESPONSE_TAKEN)
				continue;
			check_answer(&response, &length);
			if (response.flags & NC_RESPONSE_MORE) {
				(void)OK(NC_backend_sent(backend, 0, tag));
				continue;
			}
			MUST(!is_clean() ||
			     (response.status == 200 || response.flags & NC_RESPONSE_PIECE));
			MUST(!is_clean() || length == length_of(number));
			return true;
		}
		if (!lives)
			return false;
		if (!NUMBER(got, NC_backend_arm(backend, 0, 1)))
			return false;
		if (got == 0)
			lives = await_answer(backend, cache, posix);
	}
}

static bool give_body(NC_backend *backend, NC_cache *cache, uint64_t tag, size_t id)
{
	const struct NC_range piece = {.id = id, .length = SIZE};

	if (id && OK(NC_grant(cache, id, NC_USER, getuid())) &&
	    OK(NC_backend_body(backend, 0, tag, &piece, NC_BODY_LAST)))
		return true;
	/* Or there is none, which must be reported. */
	return OK(NC_backend_body(backend, 0, tag, NULL, NC_BODY_LAST));
}

static void ask_worker(NC_backend *backend, NC_cache *cache, bool posix)
{
	size_t id = 0;

	for (unsigned i = 0; i < REQUESTS; i++) {
		unsigned flags = has_body(i) ? NC_REQUEST_BODY : 0;

		if (!OK(NC_backend_submit(backend, 0, i + 1, orders[i], strlen(orders[i]) + 1,
					  flags)))
			continue;
		if (flags) {
			id = make_unit(cache, NC_KIND_SEALED, SIZE, 0);
			if (!give_body(backend, cache, i + 1, id))
				break;
		}
		(void)OK(NC_backend_kick(backend, 0));
		if (!take_answer(backend, cache, i, posix)) {
			MUST(!is_clean());
			break;
		}
	}
	if (id)
		(void)OK(NC_destroy(cache, id));
	if (OK(NC_backend_submit(backend, 0, 9, orders[0], strlen(orders[0]) + 1, 0)))
		(void)OK(NC_backend_cancel(backend, 0, 9));
}

static NC_backend *start_backend(NC_cache *cache, unsigned way)
{
	char *const argv[] = {(char *)(uintptr_t)("/proc/self/exe"), (char *)(uintptr_t)AS_WORKER,
			      NULL};
	const struct NC_backend_options options =
		NC_BACKEND_OPTIONS_INIT(.argv = argv, .channels = 1,
					.start = way == 2 ? start : NULL,
					.flags = way == 1 ? NC_BACKEND_POSIX : 0);
	NC_backend *backend;
	int pidfd;

	started = 0;
	if (!GOT(backend, NC_backend_start(cache, &options)))
		return NULL;
	if (started) {
		pidfd = (int)syscall(SYS_pidfd_open, started, 0);
		if (!OK(NC_backend_started(backend, started, pidfd)))
			close(pidfd);
	}
	return backend;
}

static void round_of_server(void)
{
	const struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = 4 * MIB, .member_size = 512 * KIB,
				      .flags = NC_CACHE_NO_THREAD);

	for (unsigned way = 0; way < 3; way++) {
		NC_backend *backend;
		NC_cache *cache;

		if (!GOT(cache, NC_cache_open(&options)))
			continue;
		backend = start_backend(cache, way);
		if (backend) {
			if (NC_backend_pidfd(backend) >= 0)
				ask_worker(backend, cache, way == 1);
			(void)OK(NC_backend_close(backend));
		}
		if (started > 0) {
			kill(started, SIGKILL);
			waitpid(started, NULL, 0);
		}
		(void)OK(NC_cache_dispatch(cache));
		(void)OK(NC_cache_close(cache));
	}
	MUST(waitpid(-1, NULL, WNOHANG) < 0);
}

const struct scenario scenario_server = {.name = "server", .round = round_of_server};

/* --- the server of the worker that is tested --------------------------------------------------- */

static pid_t server;
static int control;

/* To the process that is the worker. */
static int pass_on(void *context, int socket, char *const *environment, pid_t *pid, int *pidfd)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} rights = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)),
			       .cmsg_level = SOL_SOCKET,
			       .cmsg_type = SCM_RIGHTS}};
	struct iovec iov = {.iov_base = (char[]){'s'}, .iov_len = 1};
	struct msghdr message = {.msg_iov = &iov,
				 .msg_iovlen = 1,
				 .msg_control = &rights,
				 .msg_controllen = sizeof(rights)};

	(void)environment, (void)pidfd;
	memcpy(CMSG_DATA(&rights.header), &socket, sizeof(socket));
	*pid = 0;
	return sendmsg(*(int *)context, &message, 0) == 1 ? 0 : -1;
}

static void release_all(const struct NC_response *response)
{
	for (unsigned i = 0; i < response->range_count; i++) {
		struct NC_hold hold = response->holds[i];

		NC_release(&hold);
	}
}

/* All requests at once, then what comes until the worker says that it is over. */
static unsigned serve_worker(NC_backend *backend, size_t body, int worker)
{
	const struct NC_range piece = {.id = body, .length = SIZE};
	struct pollfd over = {.fd = worker, .events = POLLIN};
	struct NC_response response;
	unsigned answers = 0;
	uint64_t tag;
	bool last;

	for (unsigned i = 0; i < REQUESTS; i++) {
		if (NC_backend_submit(backend, 0, i + 1, orders[i], strlen(orders[i]) + 1,
				      has_body(i) ? NC_REQUEST_BODY : 0) < 0 ||
		    (has_body(i) && NC_backend_body(backend, 0, i + 1, &piece, NC_BODY_LAST) < 0))
			_exit(4);
	}
	NC_backend_kick(backend, 0);
	do {
		last = poll(&over, 1, 1) != 0;
		while (NC_backend_reap(backend, 0, &tag, &response, sizeof(response)) == 1) {
			release_all(&response);
			if (response.flags & NC_RESPONSE_MORE)
				NC_backend_sent(backend, 0, tag);
			else if (!(response.flags & (NC_RESPONSE_TAKEN | NC_RESPONSE_ABORTED)))
				answers += response.status == 200 || response.status == 0;
		}
	} while (!last);
	return answers;
}

static void live_as_server(int worker)
{
	const struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = 8 * MIB, .member_size = MIB);
	const struct NC_backend_options how =
		NC_BACKEND_OPTIONS_INIT(.channels = 1, .start = pass_on, .context = &worker);
	NC_cache *cache = NC_cache_open(&options);
	size_t body = cache ? make_plainly() : 0;
	char byte;

	if (!body || NC_grant(cache, body, NC_USER, getuid()) < 0)
		_exit(5);
	while (read(worker, &byte, 1) == 1) {
		NC_backend *backend = NC_backend_start(cache, &how);
		unsigned answers = backend ? serve_worker(backend, body, worker) : 0;

		/* That it is over. */
		if (!backend || read(worker, &byte, 1) != 1)
			break;
		NC_backend_close(backend);
		if (write(worker, &answers, sizeof(answers)) != sizeof(answers))
			break;
	}
	NC_cache_close(cache);
}

static void open_worker(void)
{
	server = start_beside(live_as_server, &control);
}

static void close_worker(void)
{
	close(control);
	waitpid(server, NULL, 0);
}

static int receive_socket(void)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} rights;
	char byte;
	struct iovec iov = {.iov_base = &byte, .iov_len = 1};
	struct msghdr message = {.msg_iov = &iov,
				 .msg_iovlen = 1,
				 .msg_control = &rights,
				 .msg_controllen = sizeof(rights)};
	int socket;

	if (write(control, "g", 1) != 1 || recvmsg(control, &message, MSG_CMSG_CLOEXEC) != 1 ||
	    message.msg_controllen == 0)
		abort();
	memcpy(&socket, CMSG_DATA(&rights.header), sizeof(socket));
	return socket;
}

/* Without a look: this process is not named to the owner, which would end it with the backend. */
static bool read_body(NC_worker *worker, struct NC_request *request)
{
	struct NC_range piece;
	size_t length = 0;
	int got;

	do {
		if (!NUMBER(got, NC_worker_body(worker, request, &piece, 0)))
			return false;
		length += got ? piece.length : 0;
	} while (got);
	MUST(length == SIZE);
	return true;
}

static void answer(NC_worker *worker, struct NC_request *request)
{
	struct NC_response response = NC_RESPONSE_INIT(.status = 200);
	const char *order;
	int gone;

	DO(order = NC_request_variable(request, "DO"));
	if (request->flags & NC_REQUEST_BODY && !read_body(worker, request)) {
		(void)OK(NC_worker_abort(worker, request));
		return;
	}
	if (NUMBER(gone, NC_worker_gone(worker, request)))
		MUST(gone == 0);
	if (strcmp(order, "nothing") != 0) {
		response.body = (struct NC_range){.id = make_unit(NULL, NC_KIND_RECYCLED, SIZE, 0),
						  .length = SIZE};
		if (!response.body.id) {
			(void)OK(NC_worker_abort(worker, request));
			return;
		}
	}
	if (strcmp(order, "pieces") == 0) {
		response.flags = NC_RESPONSE_MORE | NC_RESPONSE_KEEP;
		response.body.length = SIZE / 2;
	}
	if (!OK(NC_worker_respond(worker, request, &response))) {
		(void)OK(NC_worker_abort(worker, request));
		return;
	}
	if (!(response.flags & NC_RESPONSE_MORE))
		return;
	response.body.offset = SIZE / 2;
	if (!OK(NC_worker_send(worker, request, &response.body, 1, 0)))
		(void)OK(NC_worker_abort(worker, request));
}

static void round_of_worker(void)
{
	int socket = receive_socket(), got;
	struct NC_request request;
	unsigned answers;
	NC_worker *worker;
	char number[16];

	snprintf(number, sizeof(number), "%d", socket);
	setenv("NABC_WORKER_FD", number, 1);
	if (GOT(worker, NC_worker_open(NULL))) {
		for (unsigned i = 0; i < REQUESTS; i++) {
			/* What failed can be tried again. */
			if (!NUMBER(got, NC_worker_accept(worker, &request, sizeof(request), 0)) &&
			    !NUMBER(got, NC_worker_accept(worker, &request, sizeof(request), 0)))
				continue;
			MUST(got == 1);
			answer(worker, &request);
		}
		DO(NC_worker_close(worker));
	} else {
		close(socket);
	}
	unsetenv("NABC_WORKER_FD");
	if (write(control, "e", 1) != 1 ||
	    read(control, &answers, sizeof(answers)) != sizeof(answers))
		abort();
	MUST(!is_clean() || answers == REQUESTS);
}

const struct scenario scenario_worker = {
	.name = "worker", .open = open_worker, .close = close_worker, .round = round_of_worker};
