/* SPDX-License-Identifier: MIT */
/*
 * test-upstream-link.c - unit tests of upstream-link.c: which records of a request and its
 * body reach an application, when more of the body is requested, and the result if the
 * application exits, responds or stays silent.  Tests are run with each kind of loop,
 * except those without one; the loop has a thread, the test is the application.
 */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <nabc.h>

#include "base/address.h"
#include "base/balancer.h"
#include "base/slice.h"
#include "program/fcgi.h"
#include "upstream/fcgi-message.h"
#include "upstream/upstream-link.h"

#include "loop-fixture.h"
#include "suite.h"
#include "upstream-link-fixture.h"

START_TEST(test_without_body)
{
	struct client client;

	begin_asked(&client, _i);
	SEEN(client.broke == 1 && client.drained == 0);
	end(&client);
}
END_TEST

/* Of lengths around those of records. */
START_TEST(test_body)
{
	static const size_t lengths[] = {1, RECORD - 1, RECORD, RECORD + 1, 5 * RECORD};
	struct client client;

	begin(&client, _i);
	connect_to(&client);
	for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct NC_range body = body_of(i, lengths[i]);

		ask(&client, body, false);
		/* Destroyed meanwhile: the hold of the link is enough. */
		ck_assert_int_eq(NC_destroy(NULL, body.id), 0);
		take_beginning(client.peer, false);
		take_body(client.peer, i, 0, lengths[i]);
		take_end(client.peer);
		settle(&runner);
		call(&runner, rest_long, &client);
	}
	ck_assert_uint_eq(client.link->requests, 5);
	SEEN(client.broke == 1 && client.drained == 0);
	end(&client);
}
END_TEST

/*
 * The next piece is requested when the previous one was sent, and the end is sent
 * after the last.
 */
START_TEST(test_pieces)
{
	struct client client;

	begin(&client, _i);
	connect_to(&client);
	ask(&client, body_of(0, 100000), true);
	take_beginning(client.peer, false);
	take_body(client.peer, 0, 0, 100000);
	for (unsigned i = 1; i <= 3; i++) {
		AWAIT(client.drained == i);
		client.piece = body_of(i, 1000 * i);
		client.more = i < 3;
		call(&runner, go_on, &client);
		ck_assert_int_eq(client.error, 0);
		take_body(client.peer, i, 0, 1000 * i);
	}
	take_end(client.peer);
	settle(&runner);
	SEEN(client.broke == 1 && client.drained == 3);
	end(&client);
}
END_TEST

/* The application reads nothing and closes: the failed send is reported. */
START_TEST(test_broken)
{
	struct client client;

	begin(&client, _i);
	connect_to(&client);
	ask(&client, body_of(1, LARGE), false);
	settle(&runner);
	SEEN(client.broke == 1);
	close(client.peer);
	client.peer = FD_NONE;
	AWAIT(client.broke != 1);
	SEEN(client.broke == -EPIPE || client.broke == -ECONNRESET);
	end(&client);
}
END_TEST

START_TEST(test_nobody_listens)
{
	struct client client;

	begin(&client, _i);
	close(listener);
	call(&runner, open_link, &client);
	ck_assert_ptr_null(client.link);
	ck_assert_int_eq(client.error, -ECONNREFUSED);
	listener = socket(AF_UNIX, SOCK_STREAM, 0);
	end(&client);
}
END_TEST

/* A port of which no socket listens, and which no other process gets meanwhile. */
static void move_to_refused_port(struct client *client)
{
	struct sockaddr *address = (struct sockaddr *)&client->upstream.address.address;

	close(listener);
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	*(struct sockaddr_in *)address = (struct sockaddr_in){
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	client->upstream.address.length = sizeof(struct sockaddr_in);
	ck_assert_int_eq(bind(listener, address, client->upstream.address.length), 0);
	ck_assert_int_eq(getsockname(listener, address, &client->upstream.address.length), 0);
}

/* After the refusal has come, as the owner that reads before the loop reports the send. */
static void send_when_refused(void *argument)
{
	struct client *client = argument;
	char byte;

	open_link(client);
	ck_assert_ptr_nonnull(client->link);
	ck_assert_int_eq(poll(&(struct pollfd){.fd = client->link->fd, .events = POLLIN}, 1, -1),
			 1);
	request_fcgi(client);
	ck_assert_int_eq(client->error, 0);
	ck_assert(upstream_link_is_unsent(client->link));
	ck_assert_int_eq(recv(client->link->fd, &byte, 1, MSG_DONTWAIT), 0);
	ck_assert_int_eq(upstream_link_send_error(client->link), -ECONNREFUSED);
}

START_TEST(test_refused)
{
	struct client client;

	begin(&client, _i);
	move_to_refused_port(&client);
	ck_assert_int_eq(fcgi_message_make(&client.message, block(), (struct NC_range){0}, false),
			 0);
	call(&runner, send_when_refused, &client);
	AWAIT(client.broke != 1);
	SEEN(client.broke == -ECONNREFUSED);
	ck_assert_int_eq(upstream_link_send_error(client.link), 0);
	end(&client);
}
END_TEST

/* The owner reads the data; an idle link stays usable until data arrives. */
START_TEST(test_rest)
{
	struct client client;

	begin_asked(&client, _i);
	call(&runner, rest_long, &client);
	ck_assert(is_alive(&client));
	ck_assert_int_eq(write(client.peer, "x", 1), 1);
	AWAIT(client.readable == 1);
	ck_assert(!is_alive(&client));
	end(&client);
}
END_TEST

START_TEST(test_rest_at_its_end)
{
	struct client client;

	begin_asked(&client, _i);
	call(&runner, rest_briefly, &client);
	AWAIT(client.idled == 1);
	close(client.peer);
	client.peer = FD_NONE;
	AWAIT(client.readable > 0);
	ck_assert(!is_alive(&client));
	end(&client);
}
END_TEST

static void ask_again(void *argument)
{
	struct client *client = argument;

	request_fcgi(client);
	client->error = upstream_link_is_unsent(client->link);
}

/*
 * A request on a connected link may leave with other messages: while the loop has not reported it,
 * it counts as sent, since the system may have taken it.
 */
START_TEST(test_again)
{
	struct client client;

	begin_asked(&client, _i);
	call(&runner, rest_long, &client);
	call(&runner, ask_again, &client);
	ck_assert(!client.error);
	take_beginning(client.peer, true);
	take_end(client.peer);
	settle(&runner);
	SEEN(client.broke == 1);
	end(&client);
}
END_TEST

static unsigned holds(size_t id)
{
	struct NC_stat stat;

	ck_assert_int_eq(NC_stat(NULL, id, &stat, sizeof(stat)), 0);
	return stat.holds;
}

/* A completely sent request is aborted; in the middle of one, the link is closed. */
START_TEST(test_abort)
{
	char record[FCGI_HEADER_SIZE], byte;
	struct NC_range body;
	struct client client;

	begin_asked(&client, _i);
	call(&runner, close_link, &client);
	take_record(client.peer, FCGI_ABORT_REQUEST, 0, NULL);
	ck_assert_int_eq(read(client.peer, &byte, 1), 0);
	close(client.peer);

	connect_to(&client);
	body = body_of(1, LARGE);
	ask(&client, body, false);
	settle(&runner);
	ck_assert_uint_gt(holds(body.id), 0);
	call(&runner, close_link, &client);
	settle(&runner);
	ck_assert_uint_eq(holds(body.id), 0);
	take_beginning(client.peer, false);
	read_exactly(client.peer, record, sizeof(record));
	SEEN(client.broke == 1);
	end(&client);
}
END_TEST

static void abandon(void *argument)
{
	struct client *client = argument;

	upstream_link_abandon(client->link, &client->message, 3600000);
}

static void abandon_briefly(void *argument)
{
	struct client *client = argument;

	upstream_link_abandon(client->link, &client->message, 1);
}

/* In one turn of the loop: nothing of it was sent by then, or only a part. */
static void ask_and_abandon(void *argument)
{
	struct client *client = argument;

	request_fcgi(client);
	if (!client->error)
		abandon(client);
}

static void take_abort(int peer)
{
	char byte;

	take_record(peer, FCGI_ABORT_REQUEST, 0, NULL);
	ck_assert_int_eq(read(peer, &byte, 1), 0);
}

/* The application sees what it sees of a link that is closed; the link waits for what it does. */
START_TEST(test_abandon)
{
	static const char response[] = "x";
	struct client client;

	for (unsigned ends = 0; ends < 2; ends++) {
		begin_asked(&client, _i);
		call(&runner, abandon, &client);
		ck_assert_ptr_null(client.message.bytes);
		take_abort(client.peer);
		settle(&runner);
		SEEN(client.idled == 0);
		if (ends) {
			close(client.peer);
			client.peer = FD_NONE;
		} else {
			ck_assert_int_eq(write(client.peer, response, 1), 1);
		}
		AWAIT(client.idled > 0);
		SEEN(client.broke == 1 && client.readable == 0 && client.drained == 0);
		end(&client);
	}
	begin_asked(&client, _i);
	call(&runner, abandon_briefly, &client);
	AWAIT(client.idled == 1);
	end(&client);
}
END_TEST

/* What is being sent keeps its memory until then, and nothing follows it. */
START_TEST(test_abandon_while_sending)
{
	struct NC_range body;
	struct client client;

	begin(&client, _i);
	connect_to(&client);
	body = body_of(1, 1000);
	ck_assert_int_eq(fcgi_message_make(&client.message, block(), body, true), 0);
	call(&runner, ask_and_abandon, &client);
	ck_assert_int_eq(client.error, 0);
	take_beginning(client.peer, false);
	take_body(client.peer, 1, 0, 1000);
	take_abort(client.peer);
	settle(&runner);
	ck_assert_uint_eq(holds(body.id), 0);
	SEEN(client.broke == 1 && client.drained == 0 && client.idled == 0);
	end(&client);
}
END_TEST

static void look_for_backlog(void *argument)
{
	struct client *client = argument;

	client->error = upstream_link_has_backlog(client->link);
}

/* A body that the application does not read is memory that should not stay. */
START_TEST(test_backlog)
{
	struct client client;

	begin(&client, _i);
	connect_to(&client);
	ask(&client, body_of(1, LARGE), false);
	settle(&runner);
	call(&runner, look_for_backlog, &client);
	ck_assert_int_eq(client.error, true);
	end(&client);
	begin_asked(&client, _i);
	call(&runner, look_for_backlog, &client);
	ck_assert_int_eq(client.error, false);
	end(&client);
}
END_TEST

/* A variable that fits into no record; others are divided among several records. */
START_TEST(test_large_variables)
{
	size_t size = 3 * 60000;
	char *text = must_alloc(size), *end = text;
	struct upstream_message message = {0};

	for (unsigned i = 0; i < 3; i++) {
		memset(end, 'a' + (int)i, 59999);
		end[1] = '=';
		end[59999] = '\0';
		end += 60000;
	}
	ck_assert_int_eq(fcgi_message_make(&message, (struct slice){text, size},
					   (struct NC_range){0}, false),
			 0);
	/* Begin, three records and the empty one, and the header of the body's. */
	ck_assert_uint_eq(message.length,
			  FCGI_BEGIN_SIZE + 5 * FCGI_HEADER_SIZE + 3 * (1 + 4 + 59998));
	/* An application that reads less at a time closes the connection. */
	ck_assert(message.last);
	memset(text, 'a', size);
	text[1] = '=';
	ck_assert_int_eq(fcgi_message_make(&message, (struct slice){text, 70000},
					   (struct NC_range){0}, false),
			 -EMSGSIZE);
	upstream_message_free(&message);
	free(text);
}
END_TEST

static void fill(TCase *tcase)
{
	int first = first_kind();

	tcase_add_loop_test(tcase, test_without_body, first, KINDS);
	tcase_add_loop_test(tcase, test_body, first, KINDS);
	tcase_add_loop_test(tcase, test_pieces, first, KINDS);
	tcase_add_loop_test(tcase, test_broken, first, KINDS);
	tcase_add_loop_test(tcase, test_nobody_listens, first, KINDS);
	tcase_add_loop_test(tcase, test_refused, first, KINDS);
	tcase_add_loop_test(tcase, test_rest, first, KINDS);
	tcase_add_loop_test(tcase, test_again, first, KINDS);
	tcase_add_loop_test(tcase, test_rest_at_its_end, first, KINDS);
	tcase_add_loop_test(tcase, test_abort, first, KINDS);
	tcase_add_loop_test(tcase, test_abandon, first, KINDS);
	tcase_add_loop_test(tcase, test_abandon_while_sending, first, KINDS);
	tcase_add_loop_test(tcase, test_backlog, first, KINDS);
	tcase_add_test(tcase, test_large_variables);
}

RUN_SUITE("upstream-link", fill)
