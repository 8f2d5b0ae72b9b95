/* SPDX-License-Identifier: MIT */
/* test-transmit-refused.c - unit tests of transmit.c: failing sends, and their errors. */
#include <nabc-worker.h>
#include <nabc.h>
#include <errno.h>
#include <linux/fs.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "send/transmit.h"

#include "suite.h"
#include "transmit-fixture.h"

/* --- errors ------------------------------------------------------------------ */

START_TEST(test_refused)
{
	struct NC_range ranges[NC_RANGES_MAX + 1] = {0};
	struct NC_send message = NC_SEND_INIT(.ranges = ranges, .range_count = 1);
	int pair[2];
	size_t id;

	open_cache(MIB, NC_CACHE_NO_URING);
	tcp_pair(pair);
	id = insert(1, 1000, 0, NC_KIND_AUTO);
#define REFUSED(error) ck_assert_int_eq(nc_transmit_send(&transmit, pair[0], &message), (error))
	ck_assert_int_eq(nc_transmit_send(&transmit, pair[0], NULL), -EINVAL);
	ranges[0] = (struct NC_range){.id = id, .length = 1001};
	REFUSED(-ERANGE);
	ranges[0] = (struct NC_range){.id = id, .offset = 1001};
	REFUSED(-ERANGE);
	ranges[0] = (struct NC_range){.id = id, .offset = 1000, .length = 1};
	REFUSED(-ERANGE);
	ranges[0] = (struct NC_range){.id = id, .offset = SIZE_MAX, .length = 2};
	REFUSED(-ERANGE);
	ranges[0] = (struct NC_range){.id = id, .length = SIZE_MAX};
	REFUSED(-ERANGE);
	ranges[0] = (struct NC_range){.id = 0, .length = 1};
	REFUSED(-ENOENT);
	ranges[0] = (struct NC_range){.id = id + 1, .length = 1};
	REFUSED(-ENOENT);
	ranges[0] = (struct NC_range){.id = id, .length = 10};
	ranges[1] = (struct NC_range){.id = id + 1, .length = 10};
	message.range_count = 2;
	/* The second is wrong: nothing of the first is sent. */
	REFUSED(-ENOENT);
	ranges[1] = (struct NC_range){.id = id, .length = SIZE_MAX - 5};
	REFUSED(-ERANGE);
	message.range_count = NC_RANGES_MAX + 1;
	REFUSED(-EINVAL);
	message.range_count = 1;
	message.skip = 11;
	REFUSED(-EINVAL);
	message.skip = 0;
	message.flags = 0x20;
	REFUSED(-EINVAL);
	message.flags = 0;
	message.header_length = 1;
	REFUSED(-EINVAL);
	message.header_length = 0;
	message.ranges = NULL;
	REFUSED(-EINVAL);
#undef REFUSED
	ck_assert(!readable(pair[1]));
	ck_assert_uint_eq(holds_of(id), 0);
	close_pair(pair);
	close_cache();
}
END_TEST

/* The descriptor must be a socket, for small and for spliced units. */
START_TEST(test_no_socket)
{
	static const size_t sizes[] = {1000, 100 * KIB};

	open_cache(MIB, NC_CACHE_NO_URING);
	for (unsigned i = 0; i < 2; i++) {
		struct NC_range range = {.length = sizes[i]};
		struct NC_send message = NC_SEND_INIT(.ranges = &range, .range_count = 1);
		int ends[2], file = memfd_create("test", MFD_CLOEXEC);

		range.id = insert(1, sizes[i], 0, NC_KIND_AUTO);
		ck_assert_int_eq(pipe(ends), 0);
		ck_assert_int_eq(nc_transmit_send(&transmit, ends[1], &message), -ENOTSOCK);
		ck_assert_int_eq(nc_transmit_send(&transmit, file, &message), -ENOTSOCK);
		ck_assert_int_eq(lseek(file, 0, SEEK_END), 0);
		close_pair(ends);
		close(file);
		ck_assert_int_eq(nc_transmit_send(&transmit, file, &message), -EBADF);
		ck_assert_int_eq(nc_transmit_send(&transmit, -1, &message), -EBADF);
		ck_assert_uint_eq(holds_of(range.id), 0);
	}
	close_cache();
}
END_TEST

/* A closed stream: EPIPE and never SIGPIPE, ignored or not. */
START_TEST(test_pipe)
{
	static const size_t sizes[] = {1000, 100 * KIB};

	for (unsigned i = 0; i < 4; i++) {
		struct NC_range range = {.length = sizes[i % 2]};
		struct NC_send message =
			NC_SEND_INIT(.header = "h", .header_length = 1, .ranges = &range,
				     .range_count = 1, .skip = i % 2);
		int pair[2];

		open_cache(MIB, NC_CACHE_NO_URING);
		signal(SIGPIPE, i & 2 ? SIG_DFL : SIG_IGN);
		range.id = insert(1, range.length, 0, NC_KIND_AUTO);
		tcp_pair(pair);
		shutdown(pair[0], SHUT_WR);
		ck_assert_int_eq(nc_transmit_send(&transmit, pair[0], &message), -EPIPE);
		/* If it could raise SIGPIPE, sendfile() is not used at all. */
		close_pair(pair);
		tcp_pair(pair);
		message.skip = 1;
		ck_assert_int_eq(nc_transmit_send(&transmit, pair[0], &message),
				 (ssize_t)range.length);
		ck_assert_uint_eq(statistics().by_splice.sends > 0, i == 1);
		close_pair(pair);
		signal(SIGPIPE, SIG_IGN);
		close_cache();
	}
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_refused);
	tcase_add_test(tcase, test_no_socket);
	tcase_add_test(tcase, test_pipe);
}

RUN_SUITE("transmit-refused", fill)
