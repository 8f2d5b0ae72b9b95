/* SPDX-License-Identifier: MIT */
/*
 * test-blocking-locks.c - which calls of nabc.h wait for sockets and other descriptors, for threads
 * of this process that wait themselves, and for those of the library.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include <nabc.h>

#include "blocking-fixture.h"
#include "blocking-peer.h"
#include "suite.h"

static NC_cache *spare, *other;
static NC_handle plain;
static struct NC_range range;

static _Atomic bool purging;

static int wait_in_purger(void *context, const char *name)
{
	char byte;

	(void)context;
	(void)name;
	atomic_store(&purging, true);
	return (int)read(empty[0], &byte, 1);
}

static void wait_when_evicted(void *context, size_t id, size_t size, enum NC_eviction why)
{
	(void)id;
	(void)size;
	(void)why;
	(void)wait_in_purger(context, NULL);
}

static long send_file(void)
{
	int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct NC_sendfile message = NC_SENDFILE_INIT(.file = file, .length = SIZE);

	ssize_t sent = NC_sendfile(cache, full[0], &message);

	close(file);
	return sent;
}

static long send_unit(void)
{
	const struct NC_send message = NC_SEND_INIT(.ranges = &range, .range_count = 1);

	return NC_send(cache, full[0], &message);
}

static long alloc_and_free(void)
{
	NC_handle handle;

	if (NC_unit_alloc_wait(other, &handle, 200 << 10, 0, NC_KIND_SEALED, 0, -1) < 0)
		return -1;
	return NC_free(&handle);
}

/* While a socket is full, and another one has no bytes. */
#define WITH_DESCRIPTORS(CALL)                                                                     \
	CALL(NC_read, DESCRIPTOR, NC_read(empty[0], &plain, 0, 1))                                 \
	CALL(NC_unit_read, DESCRIPTOR, NC_unit_read(&plain, empty[0], 1, 0))                       \
	CALL(NC_send, SOCKET, send_unit())                                                         \
	CALL(NC_socksend, SOCKET, NC_socksend(full[0], range.id, 0, SIZE))                         \
	CALL(NC_sendfile, SOCKET, send_file())

/* While the purger runs in another thread. */
#define WITH_A_PURGER(CALL)                                                                        \
	CALL(NC_purge, PURGER, NC_purge(mine, "name"))                                             \
	CALL(NC_cache_on_purge, PURGER, NC_cache_on_purge(mine, wait_in_purger, NULL))

/* While another thread attaches. */
#define WITH_AN_ATTACHMENT(CALL)                                                                   \
	CALL(NC_cache_open, ATTACHMENT, open_spare())                                              \
	CALL(NC_cache_attach, ATTACHMENT, attach_and_close())                                      \
	CALL(NC_cache_close, ATTACHMENT, NC_cache_close(spare))

/* While a thread of the library runs the purger. */
#define WITH_A_THREAD(CALL) CALL(NC_cache_close, THREAD, NC_cache_close(other))

/* While a thread of the library tells the program of a unit. */
#define WITH_AN_EVICTION(CALL) CALL(NC_cache_on_evict, THREAD, NC_cache_on_evict(other, NULL, NULL))

/* While all memory of a cache is in use. */
#define WITHOUT_MEMORY(CALL) CALL(NC_unit_alloc_wait, MEMORY, alloc_and_free())

/* A call is a row all the same. */
#define NOT_MADE(UNTESTED) UNTESTED(NC_sendfile, FILE, "no test can stop a disk")

WITH_DESCRIPTORS(BLOCKING_DEFINE)
WITH_A_PURGER(BLOCKING_DEFINE)
WITH_AN_ATTACHMENT(BLOCKING_DEFINE)
WITH_A_THREAD(BLOCKING_DEFINE)
WITH_AN_EVICTION(BLOCKING_DEFINE)
WITHOUT_MEMORY(BLOCKING_DEFINE)
NOT_MADE(BLOCKING_UNTESTED)

/* Reads and writes until the call has ended. */
static void serve_descriptors(const struct blocking_thread *thread)
{
	char bytes[4096];

	while (!atomic_load(&thread->done)) {
		(void)recv(full[1], bytes, sizeof(bytes), MSG_DONTWAIT);
		(void)send(empty[1], "x", 1, MSG_DONTWAIT);
		blocking_pause();
	}
	while (recv(empty[0], bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	while (send(full[0], bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
}

START_TEST(test_with_descriptors)
{
	static const struct blocking_call calls[] = BLOCKING_ROWS(WITH_DESCRIPTORS);

	if (!blocking_is_shown())
		return;
	setup();
	range = (struct NC_range){.id = insert(cache, NC_KIND_RECYCLED), .length = SIZE};
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		struct blocking_thread thread;

		fill(cache, &plain, NC_KIND_RECYCLED);
		blocking_start(&thread, calls[i].make);
		blocking_await_sleep(&thread, calls[i].name);
		serve_descriptors(&thread);
		blocking_join(&thread, calls[i].name);
		ck_assert_int_eq(NC_free(&plain), 0);
	}
	teardown();
}
END_TEST

static long purge_mine(void)
{
	return NC_purge(mine, "name");
}

static void await_purger(void)
{
	while (!atomic_load(&purging))
		blocking_pause();
	atomic_store(&purging, false);
}

START_TEST(test_with_a_purger)
{
	static const struct blocking_call calls[] = BLOCKING_ROWS(WITH_A_PURGER);

	if (!blocking_is_shown())
		return;
	setup();
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		struct blocking_thread first, thread;

		ck_assert_int_eq(NC_cache_on_purge(mine, wait_in_purger, NULL), 0);
		blocking_start(&first, purge_mine);
		await_purger();
		blocking_start(&thread, calls[i].make);
		blocking_await_sleep(&thread, calls[i].name);
		serve_descriptors(&thread);
		blocking_join(&thread, calls[i].name);
		blocking_join(&first, "NC_purge");
		atomic_store(&purging, false);
	}
	teardown();
}
END_TEST

START_TEST(test_with_an_attachment)
{
	static const struct blocking_call calls[] = BLOCKING_ROWS(WITH_AN_ATTACHMENT);
	struct NC_cache_options options = NC_CACHE_OPTIONS_INIT(.memory = 1 << 20);

	if (!blocking_is_shown())
		return;
	setup();
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		struct blocking_thread first, thread;

		if (!spare)
			spare = NC_cache_open(&options);
		peer_stop();
		blocking_start(&first, attach_and_close);
		blocking_await_sleep(&first, "NC_cache_attach");
		blocking_start(&thread, calls[i].make);
		blocking_await_sleep(&thread, calls[i].name);
		peer_continue();
		blocking_join(&first, "NC_cache_attach");
		blocking_join(&thread, calls[i].name);
	}
	teardown();
}
END_TEST

static long purge_other(void)
{
	(void)NC_purge(spare, "name");
	return 0;
}

START_TEST(test_with_a_thread)
{
	static const struct blocking_call calls[] = BLOCKING_ROWS(WITH_A_THREAD);
	struct NC_attach_options whole = NC_ATTACH_OPTIONS_INIT(.flags = NC_ATTACH_OPERATOR);
	struct blocking_thread first, thread;

	if (!blocking_is_shown())
		return;
	setup();
	other = NC_cache_open(NULL);
	ck_assert_int_eq(NC_cache_serve(other, path[2], NULL), 0);
	ck_assert_int_eq(NC_cache_on_purge(other, wait_in_purger, NULL), 0);
	spare = NC_cache_attach(path[2], &whole);
	ck_assert_ptr_nonnull(spare);
	blocking_start(&first, purge_other);
	await_purger();
	blocking_start(&thread, calls[0].make);
	blocking_await_sleep(&thread, calls[0].name);
	serve_descriptors(&thread);
	blocking_join(&thread, calls[0].name);
	blocking_join(&first, "NC_purge");
	ck_assert_int_eq(NC_cache_close(spare), 0);
	teardown();
}
END_TEST

START_TEST(test_with_an_eviction)
{
	static const struct blocking_call calls[] = BLOCKING_ROWS(WITH_AN_EVICTION);
	struct blocking_thread thread;

	if (!blocking_is_shown())
		return;
	setup();
	other = NC_cache_open(NULL);
	ck_assert_int_eq(NC_cache_on_evict(other, wait_when_evicted, NULL), 0);
	ck_assert_int_eq(NC_set_lifetime(other, insert(other, NC_KIND_RECYCLED), 1), 0);
	await_purger();
	blocking_start(&thread, calls[0].make);
	blocking_await_sleep(&thread, calls[0].name);
	serve_descriptors(&thread);
	blocking_join(&thread, calls[0].name);
	ck_assert_int_eq(NC_cache_close(other), 0);
	teardown();
}
END_TEST

START_TEST(test_without_memory)
{
	static const struct blocking_call calls[] = BLOCKING_ROWS(WITHOUT_MEMORY);
	struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = 1 << 20, .flags = NC_CACHE_NO_THREAD);
	struct blocking_thread thread;
	NC_handle handles[5];

	if (!blocking_is_shown())
		return;
	other = NC_cache_open(&options);
	ck_assert_ptr_nonnull(other);
	for (unsigned i = 0; i < 5; i++)
		ck_assert_int_eq(NC_unit_alloc(other, &handles[i], 200 << 10, 0, NC_KIND_SEALED, 0),
				 0);
	blocking_start(&thread, calls[0].make);
	blocking_await_sleep(&thread, calls[0].name);
	ck_assert_int_eq(NC_free(&handles[0]), 0);
	blocking_join(&thread, calls[0].name);
	for (unsigned i = 1; i < 5; i++)
		ck_assert_int_eq(NC_free(&handles[i]), 0);
	ck_assert_int_eq(NC_cache_close(other), 0);
}
END_TEST

static void fill_suite(TCase *tcase)
{
	tcase_add_test(tcase, test_with_descriptors);
	tcase_add_test(tcase, test_with_a_purger);
	tcase_add_test(tcase, test_with_an_attachment);
	tcase_add_test(tcase, test_with_a_thread);
	tcase_add_test(tcase, test_with_an_eviction);
	tcase_add_test(tcase, test_without_memory);
}

RUN_SUITE("blocking-locks", fill_suite)
