/* SPDX-License-Identifier: MIT */
/*
 * test-responder-heads.c - unit tests of responder-heads.c: what a worker says beside its
 * responses.
 */
#include <errno.h>
#include <nabc-worker.h>
#include <nabc.h>
#include <stdint.h>
#include <string.h>

#include "os/queue.h"
#include "os/segment.h"
#include "wire/channel.h"
#include "wire/wire.h"
#include "worker/responder.h"

#include "responder-fixture.h"
#include "suite.h"

static struct nc_channel second;

static void open_two(void)
{
	ck_assert_int_eq(open_pair(2, NC_CHANNEL_QUEUE, 512 << 10), 0);
	nc_channel_init(&second, queues.base, 1, NC_CHANNEL_QUEUE);
	nc_queue_set_claims(&second.requests, NC_CHANNEL_CLAIMS);
}

static void fill_channel(uint32_t number)
{
	const struct NC_request request = {.channel = number};
	const struct NC_response empty =
		NC_RESPONSE_INIT(.status = 204, .flags = NC_RESPONSE_NOWAIT);

	while (nc_responder_respond(responder, &request, &empty) == 0)
		;
}

/* Takes all records; returns how many of them ask to be replaced. */
static unsigned reap_replaces(struct nc_channel *from)
{
	unsigned count = 0;
	_Alignas(16) char record[512];
	int64_t length;

	while ((length = nc_queue_pop(&from->responses, record, sizeof(record))) > 0) {
		struct nc_wire_response wire;

		ck_assert_int_eq(nc_wire_check_response(record, (size_t)length, &wire), 0);
		count += wire.flags == NC_RESPONSE_REPLACE;
	}
	return count;
}

/* The server hears of it although it waits for no response. */
START_TEST(test_replace)
{
	open_two();
	(void)rings();
	ck_assert_int_eq(nc_responder_replace(responder), 0);
	ck_assert_uint_eq(rings(), 1);
	ck_assert_int_eq(nc_responder_replace(responder), 0);
	ck_assert_uint_eq(rings(), 0);
	ck_assert_uint_eq(reap_replaces(&channel), 1);
	ck_assert_uint_eq(reap_replaces(&second), 0);
	close_ends();
}
END_TEST

START_TEST(test_replace_full)
{
	open_two();
	fill_channel(0);
	ck_assert_int_eq(nc_responder_replace(responder), 0);
	ck_assert_uint_eq(reap_replaces(&second), 1);
	close_ends();
	open_two();
	fill_channel(0);
	fill_channel(1);
	ck_assert_int_eq(nc_responder_replace(responder), -EAGAIN);
	ck_assert_uint_eq(reap_replaces(&channel), 0);
	ck_assert_int_eq(nc_responder_replace(responder), 0);
	ck_assert_uint_eq(reap_replaces(&channel), 1);
	close_ends();
}
END_TEST

/* It would end the worker. */
START_TEST(test_older_server)
{
	open_two();
	responder->version = 8;
	ck_assert_int_eq(nc_responder_replace(responder), -EOPNOTSUPP);
	ck_assert_uint_eq(reap_replaces(&channel), 0);
	close_ends();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_replace);
	tcase_add_test(tcase, test_replace_full);
	tcase_add_test(tcase, test_older_server);
}

RUN_SUITE("responder-heads", fill)
