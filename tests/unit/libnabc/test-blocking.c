/* SPDX-License-Identifier: MIT */
/*
 * test-blocking.c - which calls of nabc.h and nabc-async.h wait for the owner: each is made while
 * it is stopped.
 */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <nabc-async.h>
#include <nabc-worker.h>
#include <nabc.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "blocking-fixture.h"
#include "blocking-peer.h"
#include "suite.h"

static struct io_uring ring;
static NC_ring_buffers *buffers;

/* What each call can use; made again for each. */
static struct {
	size_t others;	   /* granted by the peer, and never used here */
	size_t own, given; /* in this process's segment; given is granted */
	size_t sealed;	   /* inserted by this process */
	size_t mine;	   /* in the cache of this process */
	NC_handle plain, unsealed, fresh;
	struct NC_hold hold, imported, result;
	struct NC_range range;
	struct NC_send message;
	NC_send_op *op;
	NC_sender *sender;
} with;

/* --- what the rows use ------------------------------------------------------------------ */

static void prepare(void)
{
	size_t known = peer_ask('u');

	memset(&with, 0, sizeof(with));
	with.others = peer_ask('u');
	with.own = insert(cache, NC_KIND_RECYCLED);
	with.given = insert(cache, NC_KIND_RECYCLED);
	with.sealed = insert(cache, NC_KIND_SEALED);
	with.mine = insert(mine, NC_KIND_AUTO);
	ck_assert_int_eq(NC_grant(cache, with.given, NC_USER, getuid()), 0);
	ck_assert_int_eq(NC_hold(cache, with.own, &with.hold), 0);
	ck_assert_int_eq(NC_hold(cache, known, &with.imported), 0);
	fill(cache, &with.plain, NC_KIND_RECYCLED);
	fill(cache, &with.unsealed, NC_KIND_SEALED);
	with.range = (struct NC_range){.id = with.own, .length = SIZE};
	with.message = (struct NC_send)NC_SEND_INIT(.ranges = &with.range, .range_count = 1);
	with.op = NC_send_op_open(cache, full[0], &with.message, 0);
	with.sender = NC_sender_open(cache, 0, 0);
	ck_assert(with.op && with.sender);
	ck_assert_int_eq(NC_sender_send(with.sender, full[0], &with.message, NULL), 0);
}

/* The calls may have ended any of these already. */
static void finish(void)
{
	if (with.op)
		ck_assert_int_eq(NC_send_op_abandon(with.op), 0);
	if (with.sender)
		ck_assert_int_eq(NC_sender_close(with.sender), 0);
	(void)NC_free(&with.plain);
	(void)NC_free(&with.unsealed);
	(void)NC_free(&with.fresh);
	(void)NC_release(&with.hold);
	(void)NC_release(&with.imported);
	(void)NC_release(&with.result);
	(void)NC_destroy(cache, with.own);
	(void)NC_destroy(cache, with.given);
	(void)NC_destroy(cache, with.sealed);
	(void)NC_destroy(mine, with.mine);
}

/* For the calls that open: what they opened is closed again. */
static long with_op(NC_send_op *op)
{
	return op ? NC_send_op_close(op) : -1;
}

static long with_sender(NC_sender *sender)
{
	return sender ? NC_sender_close(sender) : -1;
}

static long is_there(const void *pointer)
{
	return pointer ? 0 : -1;
}

/* Sends the peer's unit instead. */
static struct NC_send *others(void)
{
	with.range.id = with.others;
	return &with.message;
}

static struct NC_send *to_fill(void)
{
	return &with.message;
}

static long print_later(NC_handle *handle, ...)
{
	va_list arguments;
	long result;

	va_start(arguments, handle);
	result = NC_vprintf(handle, 0, "%d", arguments);
	va_end(arguments);
	return result;
}

static long close_op(int (*end)(NC_send_op *))
{
	NC_send_op *op = with.op;

	with.op = NULL;
	return end(op);
}

static long close_sender(void)
{
	NC_sender *sender = with.sender;

	with.sender = NULL;
	return NC_sender_close(sender);
}

static long reopen(struct NC_send *message)
{
	NC_send_op *op = with.op;
	const struct io_uring_cqe cqe = {.res = SIZE};
	struct io_uring_sqe sqe;

	/* It must have ended. */
	if (NC_prep_send(&sqe, op) < 0 || NC_send_op_complete(op, &cqe) != NC_PROGRESS_DONE)
		return -1;
	return NC_send_op_reopen(op, full[0], message, 0);
}

static long prepare_send(bool complete)
{
	const struct io_uring_cqe cqe = {.res = SIZE};
	struct io_uring_sqe sqe;
	int result = NC_prep_send(&sqe, with.op);

	return complete ? NC_send_op_complete(with.op, &cqe) : result;
}

static long list(size_t cursor)
{
	struct NC_stat units[4];

	return NC_list(cache, &cursor, units, sizeof(units[0]), 4);
}

static long stat_unit(size_t id)
{
	struct NC_stat stat;

	return NC_stat(cache, id, &stat, sizeof(stat));
}

static long stat_cache(NC_cache *of)
{
	struct NC_cache_stat stat;

	return NC_cache_stat(of, &stat, sizeof(stat));
}

static long checksum(void)
{
	uint32_t value;

	return NC_checksum(cache, with.others, &value, NC_CHECKSUM_DEFAULT, 6, 0);
}

static long read_unit(size_t id)
{
	char byte;

	return NC_pread(cache, id, &byte, 1, 0);
}

static long routes(NC_cache *of)
{
	struct NC_route route;

	return NC_routes(of, &route, sizeof(route), 1);
}

static long grants(void)
{
	struct NC_grant_info info;

	return NC_grants(cache, with.given, &info, sizeof(info), 1);
}

static long as_memory(void)
{
	size_t run;

	return is_there(NC_data(&with.imported, &run, 0));
}

static long as_file(void)
{
	uint64_t position;
	size_t run;

	return NC_file(&with.imported, &position, &run, 0);
}

static long fragment(void)
{
	return is_there(NC_fragment(&with.plain, 0, NULL));
}

static long stream(void)
{
	FILE *opened = NC_stream(&with.plain, "w");
	bool good = opened && fputs("text", opened) >= 0;

	return opened && fclose(opened) == 0 && good ? 0 : -1;
}

static long hold_nowait(void)
{
	return NC_hold_nowait(cache, with.others, &with.result) < 0 && errno == EAGAIN ? 0 : -1;
}

static long remove_name(void)
{
	return NC_name_remove(cache, "none", 0) < 0 && errno == ENOENT ? 0 : -1;
}

static long hold_name(NC_cache *in)
{
	return NC_name_hold(in, "none", &with.result, NULL) < 0 && errno == ENOENT ? 0 : -1;
}

/* The kernel may be without io_uring. */
static long use_buffers(int what)
{
	if (what == 0)
		buffers = NC_ring_buffers_open(cache, &ring, NULL, NULL);
	if (!buffers)
		return 0;
	return what == 1   ? NC_ring_buffers_clear(buffers)
	       : what == 2 ? NC_send_op_steps(with.op, buffers)
	       : what == 3 ? NC_ring_buffers_close(buffers)
			   : 0;
}

static long serve_again(void)
{
	return NC_cache_serve(mine, path[2], NULL) < 0 && errno == EALREADY ? 0 : -1;
}

/* Valgrind has no pidfd_open(). */
static long access_of_peer(void)
{
	if (NC_access(mine, with.mine, NC_PROCESS, (uint32_t)peer) == 0)
		return -1;
	return errno == EACCES || errno == ENOSYS ? 0 : -1;
}

static long reap_sender(void)
{
	struct NC_completion done;

	return NC_sender_reap(with.sender, &done, sizeof(done), 1);
}

/* --- the rows -------------------------------------------------------------------------------- */

/* While the peer is stopped: the owner of cache, and a member of mine. */
#define WITH_THE_PEER(CALL)                                                                        \
	CALL(NC_version, NEVER, NC_version())                                                      \
	CALL(NC_sizeof, NEVER, NC_sizeof("struct NC_stat"))                                        \
	CALL(NC_cache_open, NEVER, open_spare())                                                   \
	CALL(NC_cache_attach, OWNER, attach_and_close())                                           \
	CALL(NC_cache_stat, NEVER, stat_cache(cache))                                              \
	CALL(NC_cache_stat, OWNER, stat_cache(operator_of))                                        \
	CALL(NC_cache_serve, NEVER, serve_again())                                                 \
	CALL(NC_cache_fd, NEVER, NC_cache_fd(cache))                                               \
	CALL(NC_cache_dispatch, NEVER, NC_cache_dispatch(cache) + NC_cache_dispatch(mine))         \
	CALL(NC_alloc, NEVER, NC_alloc(&with.fresh, SIZE, 0))                                      \
	CALL(NC_unit_alloc, NEVER, NC_unit_alloc(cache, &with.fresh, SIZE, 0, NC_KIND_SEALED, 0))  \
	CALL(NC_free, NEVER, NC_free(&with.unsealed))                                              \
	CALL(NC_write, NEVER, NC_write(&with.plain, "text", 4, 0))                                 \
	CALL(NC_printf, NEVER, NC_printf(&with.plain, 0, "text"))                                  \
	CALL(NC_vprintf, NEVER, print_later(&with.plain, 1))                                       \
	CALL(NC_fragment, NEVER, fragment())                                                       \
	CALL(NC_stream, NEVER, stream())                                                           \
	CALL(NC_unit_grow, NEVER, NC_unit_grow(&with.unsealed, 2 * SIZE))                          \
	CALL(NC_insert, NEVER, NC_insert(&with.plain))                                             \
	CALL(NC_insert, OWNER, NC_insert(&with.unsealed))                                          \
	CALL(NC_unit_insert, NEVER, NC_unit_insert(&with.plain, 1))                                \
	CALL(NC_unit_insert, OWNER, NC_unit_insert(&with.unsealed, 1))                             \
	CALL(NC_unit_insert_with, NEVER, NC_unit_insert_with(&with.plain, 1, NULL))                \
	CALL(NC_unit_insert_with, OWNER, NC_unit_insert_with(&with.unsealed, 1, NULL))             \
	CALL(NC_cache_id, NEVER, NC_cache_id(&with.plain))                                         \
	CALL(NC_destroy, NEVER, NC_destroy(cache, with.own))                                       \
	CALL(NC_destroy, OWNER, NC_destroy(cache, with.given))                                     \
	CALL(NC_hold, NEVER, NC_hold(cache, with.own, &with.result))                               \
	CALL(NC_hold, OWNER, NC_hold(cache, with.others, &with.result))                            \
	CALL(NC_hold_nowait, NEVER, hold_nowait())                                                 \
	CALL(NC_release, NEVER, NC_release(&with.imported))                                        \
	CALL(NC_stat, NEVER, stat_unit(with.own))                                                  \
	CALL(NC_stat, OWNER, stat_unit(with.others))                                               \
	CALL(NC_checksum, OWNER, checksum())                                                       \
	CALL(NC_verify, OWNER, NC_verify(cache, with.others) < 0 && errno == ENODATA ? 0 : -1)     \
	CALL(NC_set_priority, NEVER, NC_set_priority(mine, with.mine, NC_PRIORITY_LOW))            \
	CALL(NC_set_priority, OWNER, NC_set_priority(cache, with.sealed, NC_PRIORITY_LOW))         \
	CALL(NC_set_lifetime, OWNER, NC_set_lifetime(cache, with.sealed, 60000))                   \
	CALL(NC_list, OWNER, list(0))                                                              \
	CALL(NC_pread, NEVER, read_unit(with.own))                                                 \
	CALL(NC_pread, OWNER, read_unit(with.others))                                              \
	CALL(NC_data, NEVER, as_memory())                                                          \
	CALL(NC_file, NEVER, as_file())                                                            \
	CALL(NC_name_set, NEVER, NC_name_set(mine, "name", with.mine, 0))                          \
	CALL(NC_name_set, OWNER, NC_name_set(cache, "name", with.given, 0))                        \
	CALL(NC_name_hold, NEVER, hold_name(mine))                                                 \
	CALL(NC_name_hold, OWNER, hold_name(cache))                                                \
	CALL(NC_name_remove, OWNER, remove_name())                                                 \
	CALL(NC_cache_on_purge, NEVER, NC_cache_on_purge(mine, NULL, NULL))                        \
	CALL(NC_purge, OWNER, NC_purge(operator_of, "name") < 0 && errno == EOPNOTSUPP ? 0 : -1)   \
	CALL(NC_grant, NEVER, NC_grant(mine, with.mine, NC_USER, getuid()))                        \
	CALL(NC_grant, OWNER, NC_grant(cache, with.own, NC_USER, getuid()))                        \
	CALL(NC_revoke, OWNER, NC_revoke(cache, with.given, NC_USER, getuid()))                    \
	CALL(NC_access, NEVER, access_of_peer())                                                   \
	CALL(NC_grants, OWNER, grants())                                                           \
	CALL(NC_send, OWNER, NC_send(cache, empty[0], others()))                                   \
	CALL(NC_socksend, OWNER, NC_socksend(empty[0], with.others, 0, 1))                         \
	CALL(NC_routes, NEVER, routes(cache))                                                      \
	CALL(NC_routes, OWNER, routes(operator_of))                                                \
	CALL(NC_route_set, NEVER, NC_route_set(cache, "unix", NC_ROUTE_LEARN))                     \
	CALL(NC_route_set, OWNER, NC_route_set(operator_of, "unix", NC_ROUTE_LEARN))               \
	CALL(NC_send_op_open, OWNER, with_op(NC_send_op_open(cache, full[0], others(), 0)))        \
	CALL(NC_send_op_reopen, NEVER, reopen(to_fill()))                                          \
	CALL(NC_send_op_reopen, OWNER, reopen(others()))                                           \
	CALL(NC_prep_send, NEVER, prepare_send(false))                                             \
	CALL(NC_send_op_complete, NEVER, prepare_send(true))                                       \
	CALL(NC_send_op_sent, NEVER, NC_send_op_sent(with.op))                                     \
	CALL(NC_send_op_close, NEVER, close_op(NC_send_op_close))                                  \
	CALL(NC_send_op_abandon, NEVER, close_op(NC_send_op_abandon))                              \
	CALL(NC_ring_buffers_open, NEVER, use_buffers(0))                                          \
	CALL(NC_ring_buffers_clear, NEVER, use_buffers(1))                                         \
	CALL(NC_send_op_steps, NEVER, use_buffers(2))                                              \
	CALL(NC_ring_buffers_close, NEVER, use_buffers(3))                                         \
	CALL(NC_sender_open, NEVER, with_sender(NC_sender_open(cache, 1, 0)))                      \
	CALL(NC_sender_fd, NEVER, NC_sender_fd(with.sender))                                       \
	CALL(NC_sender_send, OWNER, NC_sender_send(with.sender, full[0], others(), NULL))          \
	CALL(NC_sender_submit, NEVER, NC_sender_submit(with.sender))                               \
	CALL(NC_sender_reap, NEVER, reap_sender())                                                 \
	CALL(NC_sender_cancel, NEVER, NC_sender_cancel(with.sender, full[0]))                      \
	CALL(NC_sender_close, NEVER, close_sender())

WITH_THE_PEER(BLOCKING_DEFINE)

/* --- the tests ---------------------------------------------------------------------------------- */

START_TEST(test_with_the_peer)
{
	static const struct blocking_call calls[] = BLOCKING_ROWS(WITH_THE_PEER);

	if (!blocking_is_shown())
		return;
	setup();
	if (io_uring_queue_init(8, &ring, 0) < 0)
		ring.ring_fd = -1;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		struct blocking_thread thread;

		prepare();
		peer_stop();
		blocking_start(&thread, calls[i].make);
		if (calls[i].waits == NEVER)
			blocking_await_end(&thread, calls[i].name);
		else
			blocking_await_sleep(&thread, calls[i].name);
		peer_continue();
		blocking_join(&thread, calls[i].name);
		finish();
	}
	if (ring.ring_fd >= 0)
		io_uring_queue_exit(&ring);
	teardown();
}
END_TEST

static void fill_suite(TCase *tcase)
{
	tcase_add_test(tcase, test_with_the_peer);
}

RUN_SUITE("blocking", fill_suite)
