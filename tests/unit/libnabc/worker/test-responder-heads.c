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

static int say(const struct NC_request *request, int status, size_t length)
{
	static char lines[NC_BLOCK_MAX + 1];
	struct NC_response response =
		NC_RESPONSE_INIT(.status = status, .headers = lines, .headers_length = length,
				 .flags = NC_RESPONSE_NOWAIT);

	return nc_responder_interim(responder, request, &response);
}

START_TEST(test_interim)
{
	const struct NC_response begun = NC_RESPONSE_INIT(.status = 200, .flags = NC_RESPONSE_MORE);
	struct NC_response wrong = NC_RESPONSE_INIT(.status = 103, .flags = NC_RESPONSE_MORE);
	struct NC_request request, other;
	_Alignas(16) char record[512];
	struct nc_wire_response wire;

	open_two();
	submit_here(7);
	ck_assert_int_eq(nc_responder_accept(responder, &request, 0), 1);
	ck_assert_int_eq(say(&request, 103, 9), 0);
	ck_assert_int_eq(nc_queue_pop(&channel.responses, record, sizeof(record)), 24 + 9);
	ck_assert_int_eq(nc_wire_check_response(record, 24 + 9, &wire), 0);
	ck_assert_uint_eq(wire.tag, 7);
	ck_assert_int_eq(wire.status, 103);
	ck_assert_uint_eq(wire.flags, NC_RESPONSE_INTERIM);
	ck_assert_int_eq(say(&request, 99, 0), -EINVAL);
	ck_assert_int_eq(say(&request, 101, 0), -EINVAL);
	ck_assert_int_eq(say(&request, 200, 0), -EINVAL);
	ck_assert_int_eq(say(&request, 103, NC_BLOCK_MAX + 1), -EMSGSIZE);
	ck_assert_int_eq(nc_responder_interim(responder, &request, &wrong), -EINVAL);
	wrong = (struct NC_response)NC_RESPONSE_INIT(.status = 103, .range_count = 1);
	ck_assert_int_eq(nc_responder_interim(responder, &request, &wrong), -EINVAL);
	wrong = (struct NC_response)NC_RESPONSE_INIT(.status = 103, .headers_length = 1);
	ck_assert_int_eq(nc_responder_interim(responder, &request, &wrong), -EINVAL);
	other = request;
	other.tag++;
	ck_assert_int_eq(say(&other, 103, 0), -EINVAL);
	other.channel = 2;
	ck_assert_int_eq(say(&other, 103, 0), -EINVAL);
	/* Not within the response. */
	ck_assert_int_eq(nc_responder_respond(responder, &request, &begun), 0);
	ck_assert_int_eq(say(&request, 103, 0), -EINVAL);
	close_ends();
}
END_TEST

START_TEST(test_interim_full)
{
	struct NC_request request;

	open_two();
	submit_here(7);
	ck_assert_int_eq(nc_responder_accept(responder, &request, 0), 1);
	fill_channel(0);
	ck_assert_int_eq(say(&request, 103, 100), -EAGAIN);
	(void)reap_replaces(&channel);
	ck_assert_int_eq(say(&request, 103, 100), 0);
	close_ends();
}
END_TEST

START_TEST(test_trailers)
{
	const struct NC_response begun = NC_RESPONSE_INIT(.status = 200, .flags = NC_RESPONSE_MORE);
	struct NC_request request;
	_Alignas(16) char record[512];
	struct nc_wire_response wire;

	open_two();
	submit_here(7);
	ck_assert_int_eq(nc_responder_accept(responder, &request, 0), 1);
	ck_assert_int_eq(nc_responder_trailers(responder, &request, "A: b", 4, 0), -EINVAL);
	ck_assert_int_eq(nc_responder_respond(responder, &request, &begun), 0);
	ck_assert_int_eq(nc_responder_trailers(responder, &request, NULL, 4, 0), -EINVAL);
	ck_assert_int_eq(nc_responder_trailers(responder, &request, "A: b", 4, NC_RESPONSE_MORE),
			 -EINVAL);
	ck_assert_int_eq(nc_responder_trailers(responder, &request, "A: b", NC_BLOCK_MAX + 1, 0),
			 -EMSGSIZE);
	ck_assert_int_gt(nc_queue_pop(&channel.responses, record, sizeof(record)), 0);
	fill_channel(0);
	ck_assert_int_eq(nc_responder_trailers(responder, &request, "A: b", 4, NC_RESPONSE_NOWAIT),
			 -EAGAIN);
	(void)reap_replaces(&channel);
	ck_assert_int_eq(nc_responder_trailers(responder, &request, "A: b", 4, 0), 0);
	ck_assert_int_eq(nc_queue_pop(&channel.responses, record, sizeof(record)), 24 + 4);
	ck_assert_int_eq(nc_wire_check_response(record, 24 + 4, &wire), 0);
	ck_assert_uint_eq(wire.flags, NC_RESPONSE_PIECE);
	ck_assert_mem_eq(nc_wire_headers(record, &wire), "A: b", 4);
	/* The request is complete. */
	ck_assert_int_eq(nc_responder_trailers(responder, &request, "A: b", 4, 0), -EINVAL);
	close_ends();
}
END_TEST

/* It would end the worker. */
START_TEST(test_older_server)
{
	open_two();
	responder->version = 8;
	ck_assert_int_eq(nc_responder_replace(responder), -EOPNOTSUPP);
	ck_assert_int_eq(say(&(struct NC_request){.tag = 1}, 103, 0), -EOPNOTSUPP);
	ck_assert_uint_eq(reap_replaces(&channel), 0);
	close_ends();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_replace);
	tcase_add_test(tcase, test_replace_full);
	tcase_add_test(tcase, test_interim);
	tcase_add_test(tcase, test_interim_full);
	tcase_add_test(tcase, test_trailers);
	tcase_add_test(tcase, test_older_server);
}

RUN_SUITE("responder-heads", fill)
