/* SPDX-License-Identifier: MIT */
/*
 * test-glib.c - unit tests of libnabc-glib: the sources in a context of the test.
 * Each test owns its cache, ring and context.
 */
#include <errno.h>
#include <glib.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nabc-async.h>
#include <nabc-glib.h>
#include <nabc.h>

#include "nabc-fixture.h"
#include "suite.h"

static GMainContext *context;
static NC_sender *ring;

static void open_all(void)
{
	open_cache(4 * MIB);
	ring = NC_sender_open(cache, 0, getenv("NABC_TEST_NO_URING") ? NC_SENDER_NO_URING : 0);
	ck_assert_ptr_nonnull(ring);
	context = g_main_context_new();
}

static void close_all(void)
{
	g_main_context_unref(context);
	ck_assert_int_eq(NC_sender_close(ring), 0);
	close_cache();
}

struct completed {
	unsigned count, wanted;
	struct NC_completion last;
	bool destroy;
	GSource *source;
};

/* Returns FALSE, or destroys the source, at the last completion that the test needs. */
static gboolean on_completion(NC_sender *of, const struct NC_completion *done, gpointer data)
{
	struct completed *completed = data;

	ck_assert_ptr_eq(of, ring);
	completed->last = *done;
	completed->count++;
	if (completed->count != completed->wanted)
		return G_SOURCE_CONTINUE;
	if (completed->destroy)
		g_source_destroy(completed->source);
	return completed->destroy;
}

static void send_text(int fd, const char *text, void *data)
{
	struct NC_send message = NC_SEND_INIT(.header = text, .header_length = strlen(text));

	ck_assert_int_eq(NC_sender_send(ring, fd, &message, data), 0);
}

/* Queued by any other source, submitted and reported by the source of the ring. */
START_TEST(test_ring)
{
	struct completed completed = {0};
	GSource *source;
	char got[12];
	int pair[2];

	open_all();
	tcp_pair(pair);
	source = NC_sender_source_new(ring);
	ck_assert_ptr_nonnull(source);
	g_source_set_callback(source, G_SOURCE_FUNC(on_completion), &completed, NULL);
	g_source_attach(source, context);
	ck_assert(!g_main_context_iteration(context, FALSE));
	send_text(pair[0], "hello ", &completed);
	send_text(pair[0], "world\n", NULL);
	while (completed.count < 2)
		g_main_context_iteration(context, TRUE);
	read_exactly(pair[1], got, 12);
	ck_assert_mem_eq(got, "hello world\n", 12);
	ck_assert_int_eq(completed.last.error, 0);
	ck_assert_uint_eq(completed.last.sent, 6);
	ck_assert_ptr_null(completed.last.data);
	g_source_destroy(source);
	g_source_unref(source);
	close_pair(pair);
	close_all();
}
END_TEST

/* Completions after the last one that the test needs stay in the ring. */
START_TEST(test_ring_end)
{
	struct NC_completion done[4];
	struct completed completed = {.wanted = 2, .destroy = _i};
	unsigned left = 0;
	int pair[2];

	open_all();
	tcp_pair(pair);
	completed.source = NC_sender_source_new(ring);
	g_source_set_callback(completed.source, G_SOURCE_FUNC(on_completion), &completed, NULL);
	g_source_attach(completed.source, context);
	for (unsigned i = 0; i < 4; i++)
		send_text(pair[0], "x", NULL);
	while (!g_source_is_destroyed(completed.source))
		g_main_context_iteration(context, TRUE);
	ck_assert_uint_eq(completed.count, 2);
	g_source_unref(completed.source);
	while (left < 2) {
		int count = NC_sender_reap(ring, done, sizeof(*done), 4);

		ck_assert_int_ge(count, 0);
		left += (unsigned)count;
		if (count == 0)
			await(NC_sender_fd(ring), POLLIN);
	}
	ck_assert_uint_eq(left, 2);
	close_pair(pair);
	close_all();
}
END_TEST

/* A large message, over many turns of the loop; each completion reaches a callback. */
START_TEST(test_ring_large)
{
	struct NC_range range = {.length = MIB};
	struct NC_send message =
		NC_SEND_INIT(.ranges = &range, .range_count = 1, .flags = NC_SEND_CLOSE);
	char *got = must_alloc(MIB + 1);
	size_t have = 0;
	GSource *source;
	int pair[2];

	open_all();
	range.id = insert(5, MIB);
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 4608, 4608);
	set_nonblocking(pair[0]);
	source = NC_sender_source_new(ring);
	g_source_attach(source, context);
	ck_assert_int_eq(NC_sender_send(ring, pair[0], &message, NULL), 0);
	for (;;) {
		ssize_t more;

		while (g_main_context_iteration(context, FALSE))
			;
		more = recv(pair[1], got + have, MIB + 1 - have, MSG_DONTWAIT);
		if (more == 0)
			break;
		if (more > 0)
			have += (size_t)more;
		else
			ck_assert_int_eq(errno, EAGAIN);
	}
	ck_assert_uint_eq(have, MIB);
	ck_assert_uint_eq(pattern_match(got, 5, 0, MIB), MIB);
	free(got);
	g_source_destroy(source);
	g_source_unref(source);
	close_pair(pair);
	close_all();
}
END_TEST

static gboolean count_down(gpointer data)
{
	return --*(unsigned *)data > 0;
}

/* A process that attaches and stays until the test tells it to exit. */
static pid_t start_member(const char *path, int *go)
{
	int ends[2];
	pid_t pid;

	ck_assert_int_eq(pipe(ends), 0);
	pid = fork_alone();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		char byte;
		bool good = NC_cache_attach(path, NULL) != NULL;

		close(ends[1]);
		(void)!read(ends[0], &byte, 1);
		_exit(!good);
	}
	close(ends[0]);
	*go = ends[1];
	return pid;
}

/* Members attach and exit while the loop runs; a callback that returns FALSE ends the source. */
START_TEST(test_cache)
{
	struct NC_cache_stat stat = {0};
	char directory[64], path[100];
	unsigned left = 100;
	GSource *source;
	int go, status;
	pid_t member;

	open_all();
	make_directory(directory);
	snprintf(path, sizeof(path), "%s/cache", directory);
	ck_assert_int_eq(NC_cache_serve(cache, path, NULL), 0);
	source = NC_source_new(cache);
	ck_assert_ptr_nonnull(source);
	g_source_set_callback(source, count_down, &left, NULL);
	g_source_attach(source, context);
	member = start_member(path, &go);
	while (stat.members == 0) {
		g_main_context_iteration(context, TRUE);
		ck_assert_int_eq(NC_cache_stat(cache, &stat, sizeof(stat)), 0);
	}
	ck_assert_uint_lt(left, 100);
	left = 1;
	close(go);
	while (!g_source_is_destroyed(source))
		g_main_context_iteration(context, TRUE);
	ck_assert_int_eq(waitpid(member, &status, 0), member);
	ck_assert_int_eq(status, 0);
	g_source_unref(source);
	close_all();
	rmdir(directory);
}
END_TEST

START_TEST(test_bad_input)
{
	setenv("NABC_CACHE", "/nonexistent/socket", 1);
	NULL_FAILS(NC_source_new(NULL), ENOENT);
	NULL_FAILS(NC_source_new((NC_cache *)1), EINVAL);
	NULL_FAILS(NC_sender_source_new(NULL), EINVAL);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_ring);
	tcase_add_loop_test(tcase, test_ring_end, 0, 2);
	tcase_add_test(tcase, test_ring_large);
	tcase_add_test(tcase, test_cache);
	tcase_add_test(tcase, test_bad_input);
}

RUN_SUITE("glib", fill)
