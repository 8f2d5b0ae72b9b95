/* SPDX-License-Identifier: MIT */
/*
 * test-session-body.c - unit tests of HTTP/2 sessions: bodies of requests and their windows, and
 * responders that change.  Every test is run with each kind of loop.
 */
#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "conn/connection-base.h"
#include "core/server.h"
#include "h2/session-internal.h"

#include "loop-fixture.h"
#include "session-fixture.h"
#include "session-responder.h"
#include "suite.h"

static void look_at_saved(void *argument)
{
	const struct stream *stream =
		list_first(&first_connection()->carrier->session->streams, struct stream, node);

	*(size_t *)argument = stream ? stream->connection.input_length : 0;
}

/*
 * The client gets windows for what the responder takes, not for what waits: however slow the
 * responder is, a limited number of bytes is saved.
 */
START_TEST(test_windows)
{
	const size_t all = 30 * WINDOW + 1;
	size_t sent = 0, saved;
	uint64_t most;

	begin(_i);
	hear_all();
	request(1, "/b", true);
	for (unsigned pieces = 1; sent < all; pieces++) {
		size_t now;

		most = MIN(heard[0].credit + 65535, heard[1].credit + SESSION_STREAM_WINDOW);
		now = MIN(all, (size_t)most) - sent;
		say_content(1, sent, now, sent + now == all);
		sent += now;
		AWAIT(exchanges[1].has);
		hear_all();
		call(&runner, look_at_saved, &saved);
		ck_assert_uint_le(saved, SESSION_STREAM_WINDOW + INPUT_PAUSE + FRAME_MOST);
		/* What is saved before receiving pauses counts as taken. */
		ck_assert_uint_le(heard[1].credit, pieces * WINDOW + INPUT_PAUSE + FRAME_MOST);
		call(&runner, ask_again, &exchanges[1]);
		hear_all();
	}
	while (!exchanges[1].over) {
		AWAIT(exchanges[1].has);
		if (!exchanges[1].over)
			call(&runner, ask_again, &exchanges[1]);
	}
	HEAR(heard[1].ended);
	SEEN(exchanges[1].taken == all);
	end();
}
END_TEST

/* A body ends without a byte more, while the responder is busy. */
START_TEST(test_end_alone)
{
	begin(_i);
	request(1, "/b", true);
	say_content(1, 0, WINDOW, false);
	AWAIT(exchanges[1].has);
	say_content(1, 0, 0, true);
	hear_all();
	call(&runner, ask_again, &exchanges[1]);
	HEAR(heard[1].ended);
	SEEN(exchanges[1].taken == WINDOW && exchanges[1].over);
	request(3, "/w", true);
	say_content(3, 0, 0, true);
	hear_all();
	call(&runner, resume_with_body, &exchanges[3]);
	HEAR(heard[3].ended);
	SEEN(exchanges[3].taken == 0 && exchanges[3].over);
	/* A responder that needs no body. */
	permit(0);
	request(5, "/w", true);
	say_content(5, 0, 0, true);
	hear_all();
	call(&runner, be_done, &exchanges[5]);
	HEAR(heard[5].ended);
	end();
}
END_TEST

/* Another responder takes over a stream, of which content has come meanwhile. */
START_TEST(test_resume)
{
	begin(_i);
	request(1, "/w", false);
	AWAIT(exchanges[1].started);
	call(&runner, resume_with_answer, &exchanges[1]);
	HEAR(heard[1].ended);
	ck_assert_uint_eq(heard[1].content, PIECE);
	SEEN(resumed);
	request(3, "/w", true);
	say_content(3, 0, 50000, true);
	AWAIT(exchanges[3].started);
	hear_all();
	call(&runner, resume_with_body, &exchanges[3]);
	HEAR(heard[3].ended);
	SEEN(exchanges[3].taken == 50000 && exchanges[3].over);
	end();
}
END_TEST

static void fill(TCase *tcase)
{
	int kind = first_kind();

	tcase_add_loop_test(tcase, test_windows, kind, KINDS);
	tcase_add_loop_test(tcase, test_end_alone, kind, KINDS);
	tcase_add_loop_test(tcase, test_resume, kind, KINDS);
}

RUN_SUITE("session-body", fill)
