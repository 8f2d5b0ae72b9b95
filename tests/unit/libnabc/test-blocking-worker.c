/* SPDX-License-Identifier: MIT */
/*
 * test-blocking-worker.c - which calls of nabc-worker.h wait, and for what.  This process is a
 * worker whose server is stopped, with full queues; and a server whose worker is stopped.
 */
#include <errno.h>
#include <nabc-worker.h>
#include <nabc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include "os/peer.h"

#include "blocking-fixture.h"
#include "process-fixture.h"
#include "suite.h"

#define SIZE 100u
#define REQUESTS 200u /* more than records fit in what two large responses leave of a queue */

static char folder[64], path[100];
static int commands; /* to the server */

static NC_worker *worker;
static struct NC_request request; /* the last one that was accepted */
static size_t others, own;
static char headers[NC_BLOCK_MAX];

/* --- the server's process -------------------------------------------------------------------- */

static NC_cache *server_cache;
static NC_backend *server;
static uint64_t tags;

/* Passes the socket on: the process that runs the test is the worker. */
static int server_start(void *context, int socket, char *const *environment, pid_t *pid, int *pidfd)
{
	(void)environment;
	*pid = getppid();
	*pidfd = (int)syscall(SYS_pidfd_open, *pid, 0);
	return *pidfd >= 0 && nc_peer_send(*(int *)context, "!", 1, &socket, 1) == 0 ? 0 : -1;
}

static size_t server_unit(void)
{
	NC_handle handle;
	size_t id;

	GOOD(NC_unit_alloc(server_cache, &handle, SIZE, 0, NC_KIND_AUTO, 0) == 0);
	GOOD(NC_printf(&handle, 0, "others") == 6);
	GOOD(NC_insert(&handle) == 0);
	id = NC_cache_id(&handle);
	GOOD(NC_free(&handle) == 0);
	GOOD(NC_grant(server_cache, id, NC_USER, getuid()) == 0);
	return id;
}

static void server_submit(unsigned flags)
{
	GOOD(NC_backend_submit(server, 0, ++tags, "A=B", 4, flags) == 0);
	GOOD(NC_backend_kick(server, 0) == 0);
}

/* Takes all that is in the queue, as if it was sent. */
static void server_drain(void)
{
	struct NC_response response;
	uint64_t tag;

	while (NC_backend_reap(server, 0, &tag, &response, sizeof(response)) == 1) {
		for (unsigned i = 0; i < response.range_count; i++) {
			struct NC_hold hold = response.holds[i];

			GOOD(NC_release(&hold) == 0);
		}
		(void)NC_backend_sent(server, 0, tag);
	}
	(void)NC_backend_kick(server, 0);
}

static void server_run(int socket)
{
	struct NC_cache_options options = NC_CACHE_OPTIONS_INIT(.memory = 64 << 20);
	struct NC_backend_options start =
		NC_BACKEND_OPTIONS_INIT(.channels = 1, .start = server_start, .context = &socket);
	char command;

	server_cache = NC_cache_open(&options);
	GOOD(server_cache && NC_cache_serve(server_cache, path, NULL) == 0);
	server = NC_backend_start(server_cache, &start);
	GOOD(server);
	while (read(socket, &command, 1) == 1) {
		size_t id = 0;

		switch (command) {
		case 'u':
			id = server_unit();
			break;
		case 'r':
			for (unsigned i = 0; i < REQUESTS; i++)
				server_submit(i ? 0 : NC_REQUEST_BODY);
			break;
		case 'l':
			GOOD(NC_backend_body(server, 0, 1, NULL, NC_BODY_LAST) == 0);
			GOOD(NC_backend_kick(server, 0) == 0);
			break;
		default:
			server_drain();
		}
		GOOD(write(socket, &id, sizeof(id)) == sizeof(id));
	}
	_exit(0);
}

static size_t ask(char command)
{
	size_t id;

	ck_assert_int_eq(write(commands, &command, 1), 1);
	read_exactly(commands, &id, sizeof(id));
	return id;
}

static void receive_socket(void)
{
	char byte, text[16];
	int fds[NC_PEER_FDS_MAX];
	unsigned count;

	ck_assert_int_eq(nc_peer_receive(commands, &byte, 1, fds, &count, -1), 1);
	ck_assert_uint_eq(count, 1);
	snprintf(text, sizeof(text), "%d", fds[0]);
	setenv("NABC_WORKER_FD", text, 1);
}

static void open_server(void)
{
	int pair[2];

	make_directory(folder);
	snprintf(path, sizeof(path), "%s/server", folder);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	peer = fork_alone();
	ck_assert_int_ge(peer, 0);
	if (peer == 0) {
		close(pair[0]);
		server_run(pair[1]);
	}
	close(pair[1]);
	commands = pair[0];
	receive_socket();
}

static void close_server(void)
{
	peer_end();
	close(commands);
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(rmdir(folder), 0);
}

/* --- the worker's rows ----------------------------------------------------------------------- */

static long open_worker(void)
{
	worker = NC_worker_open(NULL);
	return worker ? 0 : -1;
}

static long close_worker(void)
{
	NC_worker_close(worker);
	return 0;
}

static long accept_one(void)
{
	return NC_worker_accept(worker, &request, sizeof(request), 0) == 1 ? 0 : -1;
}

static long respond(size_t id, size_t length, unsigned flags)
{
	struct NC_response response =
		NC_RESPONSE_INIT(.status = 200, .flags = flags, .headers = headers,
				 .headers_length = length, .body = {.id = id, .length = SIZE});

	return NC_worker_respond(worker, &request, &response);
}

/* More than the queue takes. */
static long respond_to_some(void)
{
	for (unsigned i = 0; i < 4; i++)
		if (accept_one() < 0 || respond(own, NC_BLOCK_MAX, NC_RESPONSE_KEEP) < 0)
			return -1;
	return 0;
}

static long interim(size_t length)
{
	struct NC_response response =
		NC_RESPONSE_INIT(.status = 103, .headers = headers, .headers_length = length);

	return NC_worker_interim(worker, &request, &response);
}

/* More than the queue takes. */
static long interim_many(void)
{
	for (unsigned i = 0; i < 4; i++)
		if (interim(NC_BLOCK_MAX) < 0)
			return -1;
	return 0;
}

static long abort_many(void)
{
	if (accept_one() < 0 || respond(own, NC_BLOCK_MAX, NC_RESPONSE_KEEP) < 0 ||
	    accept_one() < 0 || respond(own, NC_BLOCK_MAX - 4096, NC_RESPONSE_KEEP) < 0)
		return -1;
	for (unsigned i = 3; i < REQUESTS; i++)
		if (accept_one() < 0 || NC_worker_abort(worker, &request) < 0)
			return -1;
	return 0;
}

/* Pieces, one more than the window takes. */
static long send_pieces(void)
{
	struct NC_range range = {.id = own, .length = SIZE};

	if (respond(own, 0, NC_RESPONSE_KEEP | NC_RESPONSE_MORE) < 0)
		return -1;
	for (unsigned i = 0; i < NC_WORKER_WINDOW; i++)
		if (NC_worker_send(worker, &request, &range, 1,
				   NC_RESPONSE_KEEP | NC_RESPONSE_MORE) < 0)
			return -1;
	return NC_worker_send(worker, &request, NULL, 0, 0);
}

/* Behind as many pieces as the window takes. */
static long send_trailers(void)
{
	struct NC_range range = {.id = own, .length = SIZE};

	if (respond(own, 0, NC_RESPONSE_KEEP | NC_RESPONSE_MORE) < 0)
		return -1;
	for (unsigned i = 1; i < NC_WORKER_WINDOW; i++)
		if (NC_worker_send(worker, &request, &range, 1,
				   NC_RESPONSE_KEEP | NC_RESPONSE_MORE) < 0)
			return -1;
	return NC_worker_trailers(worker, &request, headers, 6, 0);
}

static long send_others(void)
{
	struct NC_range range = {.id = others, .length = 1};

	if (respond(own, 0, NC_RESPONSE_KEEP | NC_RESPONSE_MORE) < 0)
		return -1;
	return NC_worker_send(worker, &request, &range, 1, NC_RESPONSE_KEEP);
}

static long read_body(void)
{
	struct NC_range piece;

	return NC_worker_body(worker, &request, &piece, 0);
}

static long find_variable(void)
{
	const char *value = NC_request_variable(&request, "A");

	return value && strcmp(value, "B") == 0 ? 0 : -1;
}

static long parse_head(void)
{
	struct NC_response response = NC_RESPONSE_INIT(.status = 0);
	char text[] = "Status: 404 Not Found\r\n\r\n";

	return NC_response_headers_parse(&response, text, strlen(text));
}

/* The server has submitted many requests, of which the first is accepted and has a body. */
#define AS_A_WORKER(CALL)                                                                          \
	CALL(NC_worker_fd, NEVER, NC_worker_fd(worker) < 0 ? -1 : 0)                               \
	CALL(NC_worker_accept, SERVER, accept_one())                                               \
	CALL(NC_request_variable, NEVER, find_variable())                                          \
	CALL(NC_response_headers_parse, NEVER, parse_head())                                       \
	CALL(NC_response_headers_check, NEVER, NC_response_headers_check("A: b\r\n", 6, NULL))     \
	CALL(NC_worker_gone, NEVER, NC_worker_gone(worker, &request))                              \
	CALL(NC_worker_interim, NEVER, interim(6))                                                 \
	CALL(NC_worker_interim, SERVER, interim_many())                                            \
	CALL(NC_worker_trailers, SERVER, send_trailers())                                          \
	CALL(NC_worker_replace, NEVER, NC_worker_replace(worker))                                  \
	CALL(NC_worker_respond, NEVER, respond(own, 0, NC_RESPONSE_KEEP))                          \
	CALL(NC_worker_respond, OWNER, respond(others, 0, NC_RESPONSE_KEEP))                       \
	CALL(NC_worker_respond, SERVER, respond_to_some())                                         \
	CALL(NC_worker_send, OWNER, send_others())                                                 \
	CALL(NC_worker_send, SERVER, send_pieces())                                                \
	CALL(NC_worker_body, SERVER, read_body())                                                  \
	CALL(NC_worker_abort, NEVER, NC_worker_abort(worker, &request))                            \
	CALL(NC_worker_abort, SERVER, abort_many())

/* While another thread attaches to the stopped server. */
#define WITH_AN_ATTACHMENT(CALL)                                                                   \
	CALL(NC_worker_open, ATTACHMENT, open_worker())                                            \
	CALL(NC_worker_close, ATTACHMENT, close_worker())

/* --- the server's rows ------------------------------------------------------------------------ */

static NC_cache *cache;
static NC_backend *backend;

static NC_backend *start_backend(void)
{
	char *const argv[] = {(char *)helper_path("WORKER_FIXTURE", "worker-fixture"), NULL};
	struct NC_backend_options options =
		NC_BACKEND_OPTIONS_INIT(.argv = argv, .channels = 1, .memory = 1 << 20);

	return NC_backend_start(cache, &options);
}

static long start_another(void)
{
	NC_backend *another = start_backend();

	return another ? NC_backend_close(another) : -1;
}

static long fails_with(long result, int error)
{
	return result == -1 && errno == error ? 0 : -1;
}

/* Until the queue is full. */
static long submit_many(unsigned flags)
{
	uint64_t tag = flags ? 1 << 20 : 1;

	while (NC_backend_submit(backend, 0, tag, "A=B", 4, flags) == 0)
		tag++;
	return errno == EAGAIN ? 0 : -1;
}

static long give_pieces(void)
{
	struct NC_range piece = {.id = 1, .length = 1};

	while (NC_backend_body(backend, 0, 1 << 20, &piece, 0) == 0)
		;
	return errno == EAGAIN ? 0 : -1;
}

static long cancel_many(void)
{
	uint64_t tag = 1;

	while (NC_backend_cancel(backend, 0, tag) == 0)
		tag++;
	return errno == EAGAIN ? 0 : -1;
}

static long reap(void)
{
	struct NC_response response;
	uint64_t tag;

	return NC_backend_reap(backend, 0, &tag, &response, sizeof(response));
}

static long withdraw(void)
{
	unsigned left;

	return NC_backend_withdraw(backend, 0, 1, &left);
}

static long free_data(void)
{
	NC_backend_data_free(NULL);
	return 0;
}

static long submit_with_body(void)
{
	return NC_backend_submit(backend, 0, 1 << 20, "A=B", 4, NC_REQUEST_BODY);
}

/* In this order: the queue of requests is full from NC_backend_submit() on. */
#define AS_A_SERVER(CALL)                                                                          \
	CALL(NC_backend_start, NEVER, start_another())                                             \
	CALL(NC_backend_started, NEVER, fails_with(NC_backend_started(backend, 1, 1), EALREADY))   \
	CALL(NC_backend_pid, NEVER, NC_backend_pid(backend))                                       \
	CALL(NC_backend_pidfd, NEVER, NC_backend_pidfd(backend))                                   \
	CALL(NC_backend_fd, NEVER, NC_backend_fd(backend, 0))                                      \
	CALL(NC_backend_body, NEVER, submit_with_body() < 0 ? -1 : give_pieces())                  \
	CALL(NC_backend_submit, NEVER, submit_many(0))                                             \
	CALL(NC_backend_cancel, NEVER, cancel_many())                                              \
	CALL(NC_backend_kick, NEVER, NC_backend_kick(backend, 0))                                  \
	CALL(NC_backend_reap, NEVER, reap())                                                       \
	CALL(NC_backend_sent, NEVER, NC_backend_sent(backend, 0, 1))                               \
	CALL(NC_backend_arm, NEVER, NC_backend_arm(backend, 0, 1))                                 \
	CALL(NC_backend_pending, NEVER, fails_with(NC_backend_pending(backend, 0), EBUSY))         \
	CALL(NC_backend_withdraw, NEVER, withdraw())                                               \
	CALL(NC_backend_data_free, NEVER, free_data())                                             \
	CALL(NC_backend_stop, NEVER, NC_backend_stop(backend))

#define NOT_MADE(UNTESTED)                                                                         \
	UNTESTED(NC_backend_close, WORKER, "the kernel ends a stopped process at once")

AS_A_WORKER(BLOCKING_DEFINE)
WITH_AN_ATTACHMENT(BLOCKING_DEFINE)
AS_A_SERVER(BLOCKING_DEFINE)
NOT_MADE(BLOCKING_UNTESTED)

/* --- the tests ---------------------------------------------------------------------------------- */

static long attach_and_close(void)
{
	NC_cache *attached = NC_cache_attach(path, NULL);

	return attached ? NC_cache_close(attached) : -1;
}

static void check_beside_attachment(const struct blocking_call *call)
{
	struct blocking_thread first, thread;

	peer_stop();
	blocking_start(&first, attach_and_close);
	blocking_await_sleep(&first, "NC_cache_attach");
	blocking_start(&thread, call->make);
	blocking_await_sleep(&thread, call->name);
	peer_continue();
	blocking_join(&first, "NC_cache_attach");
	blocking_join(&thread, call->name);
}

static void insert_own(void)
{
	NC_handle handle;

	ck_assert_int_eq(NC_alloc(&handle, SIZE, 0), 0);
	ck_assert_int_eq(NC_insert(&handle), 0);
	own = NC_cache_id(&handle);
	ck_assert_int_eq(NC_free(&handle), 0);
}

/* Until the call has ended: its server does what it waits for. */
static void serve_worker(const struct blocking_thread *thread, const struct blocking_call *call)
{
	if (call->make == NC_worker_accept_SERVER)
		ask('r');
	if (call->make == NC_worker_body_SERVER)
		ask('l');
	while (!atomic_load(&thread->done)) {
		ask('d');
		blocking_pause();
	}
}

static void check_as_a_worker(const struct blocking_call *call)
{
	struct blocking_thread thread;

	open_server();
	others = ask('u');
	/* Also NC_worker_open() does not wait for the server. */
	peer_stop();
	blocking_start(&thread, open_worker);
	blocking_await_end(&thread, "NC_worker_open");
	peer_continue();
	blocking_join(&thread, "NC_worker_open");
	insert_own();
	if (call->make != NC_worker_accept_SERVER) {
		ask('r');
		ck_assert_int_eq(accept_one(), 0);
	}
	peer_stop();
	blocking_start(&thread, call->make);
	if (call->waits == NEVER)
		blocking_await_end(&thread, call->name);
	else
		blocking_await_sleep(&thread, call->name);
	peer_continue();
	serve_worker(&thread, call);
	blocking_join(&thread, call->name);
	NC_worker_close(worker);
	close_server();
}

START_TEST(test_as_a_worker)
{
	static const struct blocking_call calls[] = BLOCKING_ROWS(AS_A_WORKER);

	if (!blocking_is_shown() || skip_without_pidfds("test-blocking-worker"))
		return;
	memset(headers, 'a', sizeof(headers));
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		check_as_a_worker(&calls[i]);
}
END_TEST

START_TEST(test_with_an_attachment)
{
	static const struct blocking_call calls[] = BLOCKING_ROWS(WITH_AN_ATTACHMENT);

	if (!blocking_is_shown() || skip_without_pidfds("test-blocking-worker"))
		return;
	open_server();
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		check_beside_attachment(&calls[i]);
	close_server();
}
END_TEST

static long close_backend(void)
{
	return NC_backend_close(backend);
}

static void check_never(long (*make)(void), const char *name)
{
	struct blocking_thread thread;

	blocking_start(&thread, make);
	blocking_await_end(&thread, name);
	blocking_join(&thread, name);
}

START_TEST(test_as_a_server)
{
	static const struct blocking_call calls[] = BLOCKING_ROWS(AS_A_SERVER);
	struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = 4 << 20, .flags = NC_CACHE_NO_THREAD);

	if (!blocking_is_shown())
		return;
	cache = NC_cache_open(&options);
	ck_assert_ptr_nonnull(cache);
	backend = start_backend();
	ck_assert_ptr_nonnull(backend);
	peer = NC_backend_pid(backend);
	peer_stop();
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		check_never(calls[i].make, calls[i].name);
	check_never(close_backend, "NC_backend_close");
	ck_assert_int_eq(NC_cache_close(cache), 0);
}
END_TEST

static void fill_suite(TCase *tcase)
{
	tcase_add_test(tcase, test_as_a_worker);
	tcase_add_test(tcase, test_with_an_attachment);
	tcase_add_test(tcase, test_as_a_server);
}

RUN_SUITE("blocking-worker", fill_suite)
