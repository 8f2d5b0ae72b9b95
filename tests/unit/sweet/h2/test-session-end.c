/* SPDX-License-Identifier: MIT */
/*
 * test-session-end.c - unit tests of HTTP/2 sessions: their end with streams in all states, with each
 * kind of loop.
 */
#include <nabc.h>
#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

#include "conn/connection.h"
#include "core/server.h"

#include "loop-fixture.h"
#include "session-fixture.h"
#include "session-responder.h"
#include "suite.h"

enum ending { BY_CLIENT, BY_SERVER, BY_ERROR, BY_DRAIN, ENDINGS };

static void drain(void *argument)
{
	(void)argument;
	connection_drain(&thread);
}

/* Streams in all states, and the session ends. */
static void open_streams(bool full)
{
	char block[64];
	size_t length = write_head(block, "/w", false);

	if (full)
		permit(0);
	request(1, "/w", false);
	request(3, "/b", true);
	say_content(3, 0, 1000, false);
	request(5, "/b", true);
	say_content(5, 0, WINDOW + 20000, false);
	request(7, "/l", false);
	request(9, "/u", false);
	request(11, "/p", false);
	request(13, "/w", true);
	say_content(13, 0, 50000, false);
	if (full)
		for (unsigned stream = 7; stream <= 11; stream += 2)
			permit(stream);
	AWAIT(exchanges[5].has && exchanges[11].started && exchanges[13].started);
	if (full)
		await_full();
	else
		settle(&runner);
	/* A head without its end. */
	say_frame(NGHTTP2_HEADERS, 0, 15, block, length);
	settle(&runner);
	SEEN(!exchanges[1].finished && !exchanges[3].finished && !exchanges[13].finished);
}

START_TEST(test_end_in_all_states)
{
	begin(_i);
	make_unit();
	for (unsigned i = 0; i < 2 * ENDINGS; i++) {
		enum ending ending = i / 2;

		open_streams(i % 2);
		if (ending == BY_SERVER || ending == BY_DRAIN)
			call(&runner, ending == BY_DRAIN ? drain : close_all, NULL);
		else if (ending == BY_ERROR)
			say_frame(NGHTTP2_DATA, 0, 15, "x", 1);
		if (ending != BY_CLIENT && i % 2)
			ck_assert(ending == BY_DRAIN || hears_end());
		close(client);
		/* Responses that wait for windows end with the connection. */
		settle(&runner);
		call(&runner, close_all, NULL);
		AWAIT(exchanges[1].gone && exchanges[5].gone && exchanges[13].gone);
		call(&runner, be_done, &exchanges[1]);
		call(&runner, ask_again, &exchanges[5]);
		call(&runner, be_done, &exchanges[13]);
		check_exchanges();
		thread.draining = false;
		connect_client();
	}
	ck_assert_int_eq(NC_destroy(NULL, unit), 0);
	end();
}
END_TEST

static void fill(TCase *tcase)
{
	int kind = first_kind();

	tcase_add_loop_test(tcase, test_end_in_all_states, kind, KINDS);
}

RUN_SUITE("session-end", fill)
