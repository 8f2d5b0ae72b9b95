/* SPDX-License-Identifier: MIT */
/*
 * test-handle-read.c - unit tests of handle.c: filling units from every kind of
 * descriptor.  A helper thread feeds pipes; each test owns its cache.
 */
#include <nabc-worker.h>
#include <nabc.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "cache/index.h"
#include "membership/handle.h"

#include "handle-fixture.h"
#include "suite.h"

static int temporary_file(uint64_t seed, size_t size)
{
	int fd = memfd_create("test", MFD_CLOEXEC);
	unsigned char *data = must_alloc(size);

	ck_assert_int_ge(fd, 0);
	pattern_fill(data, seed, 0, size);
	ck_assert_int_eq(pwrite(fd, data, size, 0), (ssize_t)size);
	free(data);
	return fd;
}

START_TEST(test_read_file)
{
	/* Small fragments need more iovecs than one system call accepts. */
	static const size_t sizes[] = {1, 1447, 1448, 5000, 200000};

	open_cache();
	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
		for (size_t f = 0; f < FRAGLENS; f++) {
			int fd = temporary_file(3, sizes[s]);
			unsigned char *got;
			NC_handle handle;

			must_alloc_unit(&handle, sizes[s], fraglens[f], NC_KIND_AUTO);
			ck_assert_int_eq(nc_handle_read(fd, &handle, 0, sizes[s]),
					 (ssize_t)sizes[s]);
			/* At the end of the file: 0. */
			ck_assert_int_eq(nc_handle_read(fd, &handle, 0, 1), 0);
			got = insert_and_copy(&handle);
			ck_assert_uint_eq(pattern_match(got, 3, 0, sizes[s]), sizes[s]);
			free(got);
			close(fd);
		}
	nc_index_fini(&cache);
}
END_TEST

/* A file shorter than the unit, read into its middle: zeroes around it. */
START_TEST(test_read_short_file)
{
	int fd = temporary_file(4, 1000);
	unsigned char *got;
	NC_handle handle;

	open_cache();
	soil(NC_KIND_RECYCLED, 10000);
	must_alloc_unit(&handle, 10000, 1448, NC_KIND_RECYCLED);
	ck_assert_int_eq(nc_handle_read(fd, &handle, 2000, 8000), 1000);
	got = insert_and_copy(&handle);
	for (size_t i = 0; i < 10000; i++)
		expect(got[i] == (i >= 2000 && i < 3000 ? pattern_at(4, i - 2000) : 0));
	free(got);
	close(fd);
	fd = open("/", O_RDONLY | O_CLOEXEC);
	must_alloc_unit(&handle, 100, 0, NC_KIND_AUTO);
	ck_assert_int_eq(nc_handle_read(fd, &handle, 0, 100), -EISDIR);
	ck_assert_int_eq(nc_handle_free(&handle), 0);
	close(fd);
	nc_index_fini(&cache);
}
END_TEST

struct feed {
	int to;
	size_t size, step;
	int ticks; /* an eventfd to wait for before each step, or -1 */
};

static void *feed(void *context)
{
	const struct feed *feed = context;
	unsigned char data[4096];
	uint64_t tick;

	for (size_t at = 0; at < feed->size;) {
		size_t length = feed->size - at < feed->step ? feed->size - at : feed->step;

		for (unsigned i = 0; feed->ticks >= 0 && i < 3; i++)
			if (read(feed->ticks, &tick, sizeof(tick)) != sizeof(tick))
				return "tick";
		pattern_fill(data, 5, at, length);
		if (write(feed->to, data, length) != (ssize_t)length)
			return "write";
		at += length;
	}
	close(feed->to);
	return NULL;
}

/* Feeds `have` bytes in small steps, and reads `want`. */
static void check_stream(const int ends[2], size_t fraglen, size_t have, size_t want, size_t step,
			 int ticks)
{
	struct feed feeding = {.to = ends[1], .size = have, .step = step, .ticks = ticks};
	size_t come = have < want ? have : want;
	unsigned char *got;
	pthread_t thread;
	NC_handle handle;
	sigset_t all, before;
	void *complaint;

	must_alloc_unit(&handle, want, fraglen, NC_KIND_AUTO);
	/* Only the reading thread gets signals. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	ck_assert_int_eq(pthread_create(&thread, NULL, feed, &feeding), 0);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	ck_assert_int_eq(nc_handle_read(ends[0], &handle, 0, want), (ssize_t)come);
	pthread_join(thread, &complaint);
	ck_assert_msg(!complaint, "feed: %s", (const char *)complaint);
	got = insert_and_copy(&handle);
	ck_assert_uint_eq(pattern_match(got, 5, 0, come), come);
	for (size_t i = come; i < want; i++)
		expect(got[i] == 0);
	free(got);
	close(ends[0]);
}

START_TEST(test_read_pipe)
{
	int ends[2];

	open_cache();
	for (size_t f = 0; f < FRAGLENS; f++) {
		ck_assert_int_eq(pipe(ends), 0);
		check_stream(ends, fraglens[f], 50000, 50000, 777, -1);
		/* The end of the file comes early. */
		ck_assert_int_eq(pipe(ends), 0);
		check_stream(ends, fraglens[f], 3001, 50000, 1000, -1);
	}
	nc_index_fini(&cache);
}
END_TEST

START_TEST(test_read_socket)
{
	int ends[2], pair[2];

	open_cache();
	tcp_pair(pair);
	ends[0] = pair[1];
	ends[1] = pair[0];
	check_stream(ends, 1448, 100000, 100000, 4096, -1);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	check_stream(ends, 0, 100000, 120000, 3333, -1);
	nc_index_fini(&cache);
}
END_TEST

static int tick_fd = -1;

static void on_tick(int signal_number)
{
	uint64_t one = 1;
	int error = errno;

	(void)signal_number;
	(void)!write(tick_fd, &one, sizeof(one));
	errno = error;
}

/* A signal that interrupts every wait must not shorten a read. */
START_TEST(test_read_interrupted)
{
	struct itimerval every = {.it_interval.tv_usec = 2000, .it_value.tv_usec = 2000};
	struct sigaction action = {.sa_handler = on_tick}, before;
	int ends[2];

	open_cache();
	tick_fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
	ck_assert_int_ge(tick_fd, 0);
	ck_assert_int_eq(pipe(ends), 0);
	ck_assert_int_eq(sigaction(SIGALRM, &action, &before), 0);
	ck_assert_int_eq(setitimer(ITIMER_REAL, &every, NULL), 0);
	check_stream(ends, 1448, 10000, 10000, 2500, tick_fd);
	memset(&every, 0, sizeof(every));
	ck_assert_int_eq(setitimer(ITIMER_REAL, &every, NULL), 0);
	ck_assert_int_eq(sigaction(SIGALRM, &before, NULL), 0);
	close(tick_fd);
	nc_index_fini(&cache);
}
END_TEST

START_TEST(test_read_nonblocking)
{
	unsigned char data[3000], *got;
	NC_handle handle;
	int ends[2];

	open_cache();
	soil(NC_KIND_RECYCLED, 5000);
	pattern_fill(data, 6, 0, sizeof(data));
	ck_assert_int_eq(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
	must_alloc_unit(&handle, 5000, 1448, NC_KIND_RECYCLED);
	ck_assert_int_eq(nc_handle_read(ends[0], &handle, 0, 5000), -EAGAIN);
	ck_assert_int_eq(write(ends[1], data, 3000), 3000);
	/* Received bytes count; the next call reports that there are no more. */
	ck_assert_int_eq(nc_handle_read(ends[0], &handle, 100, 4900), 3000);
	ck_assert_int_eq(nc_handle_read(ends[0], &handle, 3100, 1900), -EAGAIN);
	ck_assert_int_eq(write(ends[1], data, 10), 10);
	ck_assert_int_eq(nc_handle_read(ends[0], &handle, 3100, 10), 10);
	close(ends[1]);
	ck_assert_int_eq(nc_handle_read(ends[0], &handle, 3110, 10), 0);
	got = insert_and_copy(&handle);
	ck_assert_uint_eq(pattern_match(got + 100, 6, 0, 3000), 3000);
	ck_assert_uint_eq(pattern_match(got + 3100, 6, 0, 10), 10);
	for (size_t i = 0; i < 100; i++)
		expect(got[i] == 0);
	for (size_t i = 3110; i < 5000; i++)
		expect(got[i] == 0);
	free(got);
	close(ends[0]);
	nc_index_fini(&cache);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_read_file);
	tcase_add_test(tcase, test_read_short_file);
	tcase_add_test(tcase, test_read_pipe);
	tcase_add_test(tcase, test_read_socket);
	tcase_add_test(tcase, test_read_interrupted);
	tcase_add_test(tcase, test_read_nonblocking);
}

RUN_SUITE("handle-read", fill)
