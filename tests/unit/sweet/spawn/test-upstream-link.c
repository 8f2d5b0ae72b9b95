/* SPDX-License-Identifier: MIT */
/*
 * test-upstream-link.c - unit tests of upstream-link.c: which records of a request and its
 * body reach an application, when more of the body is requested, and the result if the
 * application exits, responds or stays silent.  Tests are run with each kind of loop,
 * except those without one; the loop has a thread, the test is the application.
 */
#include <sys/un.h>

#include "spawn/fcgi-message.h"
#include "spawn/http-message.h"

#include "loop-fixture.h"

#define RECORD 65528u		/* bytes of a body in a record */
#define LARGE ((size_t)4 << 20) /* more than a socket holds */
#define FD_NONE (-1)

static const char variables[] = "REQUEST_METHOD=POST\0QUERY_STRING=\0SCRIPT_NAME=/app";

static struct runner runner;
static NC_cache *cache;
static int listener;

/* A request, and the callbacks of its link. */
struct client {
	struct upstream upstream;
	struct upstream_message message;
	struct upstream_link *link;
	struct NC_range piece; /* the next piece */
	bool more;	       /* more follows */
	int peer;	       /* the application's end */
	int error;	       /* of the call that was made */
	int broke;	       /* 1: not called */
	unsigned readable, drained, idled;
};

static struct client *client_of(const struct upstream_link *link)
{
	return link->upstream->own;
}

static void readable_now(struct upstream_link *link)
{
	EVENT(client_of(link)->readable++);
}

static void broke(struct upstream_link *link, int error)
{
	EVENT(client_of(link)->broke = error);
}

static void drained(struct upstream_link *link)
{
	EVENT(client_of(link)->drained++);
}

static void idled(struct upstream_link *link)
{
	EVENT(client_of(link)->idled++);
}

static const struct upstream_link_owner owner = {.readable = readable_now,
						 .broke = broke,
						 .drained = drained,
						 .idled = idled,
						 .abandon = fcgi_message_abandon};

static struct slice block(void)
{
	return (struct slice){variables, sizeof(variables)};
}

/* --- the application ----------------------------------------------------------------------- */

static void listen_somewhere(struct client *client)
{
	struct sockaddr_un *address = (struct sockaddr_un *)&client->upstream.address.address;
	socklen_t length = sizeof(client->upstream.address.address);

	/* The kernel chooses a name. */
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(listener, (struct sockaddr *)address, sizeof(sa_family_t)), 0);
	ck_assert_int_eq(listen(listener, 1), 0);
	ck_assert_int_eq(getsockname(listener, (struct sockaddr *)address, &length), 0);
	client->upstream.address.length = length;
}

/* Reads the content of the next record, which must have that type and length. */
static void take_record(int peer, enum fcgi_type type, size_t length, void *content)
{
	char header[FCGI_HEADER_SIZE], wanted[FCGI_HEADER_SIZE];

	fcgi_header(wanted, type, length);
	read_exactly(peer, header, sizeof(header));
	ck_assert_mem_eq(header, wanted, sizeof(header));
	read_exactly(peer, content, length);
}

/* Reads everything before the body. */
static void take_beginning(int peer)
{
	char begin[FCGI_BEGIN_SIZE], wanted[FCGI_BEGIN_SIZE], content[512];
	struct slice rest = block();
	char params[512];
	ssize_t length = fcgi_params(&rest, params, sizeof(params));

	fcgi_begin(wanted, true);
	read_exactly(peer, begin, sizeof(begin));
	ck_assert_mem_eq(begin, wanted, sizeof(begin));
	take_record(peer, FCGI_PARAMS, (size_t)length - FCGI_HEADER_SIZE, content);
	ck_assert_mem_eq(content, params + FCGI_HEADER_SIZE, (size_t)length - FCGI_HEADER_SIZE);
	take_record(peer, FCGI_PARAMS, 0, content);
}

/* Checks a body by its pattern, in records of maximum length. */
static void take_body(int peer, uint64_t seed, size_t from, size_t length)
{
	char *content = must_alloc(RECORD);

	while (length) {
		size_t part = length < RECORD ? length : RECORD;

		take_record(peer, FCGI_STDIN, part, content);
		ck_assert_uint_eq(pattern_match(content, seed, from, part), part);
		from += part;
		length -= part;
	}
	free(content);
}

static void take_end(int peer)
{
	take_record(peer, FCGI_STDIN, 0, NULL);
}

/* --- the client ------------------------------------------------------------------------------ */

static void begin(struct client *client, int kind)
{
	struct NC_cache_options options = NC_CACHE_OPTIONS_INIT(.memory = 32 << 20);

	cache = NC_cache_open(&options);
	ck_assert_ptr_nonnull(cache);
	*client = (struct client){.broke = 1, .peer = FD_NONE};
	client->upstream.own = client;
	listen_somewhere(client);
	runner_start(&runner, kind_of(kind));
}

static void close_link(void *argument)
{
	struct client *client = argument;

	if (client->link)
		upstream_link_close(client->link);
	client->link = NULL;
}

/* If no link holds the body any more, it ends with the cache. */
static void end(struct client *client)
{
	call(&runner, close_link, client);
	if (client->peer >= 0)
		close(client->peer);
	runner_stop(&runner);
	close(listener);
	upstream_message_free(&client->message);
	ck_assert_int_eq(NC_cache_close(cache), 0);
}

/* A body that only links hold. */
static struct NC_range body_of(uint64_t seed, size_t size)
{
	unsigned char *data = must_alloc(size);
	struct NC_range range = {.length = size};
	NC_handle handle;

	pattern_fill(data, seed, 0, size);
	ck_assert_int_eq(NC_alloc(&handle, size, 0), 0);
	ck_assert_int_eq(NC_write(&handle, data, size, 0), (ssize_t)size);
	ck_assert_int_eq(NC_insert(&handle), 0);
	range.id = NC_cache_id(&handle);
	ck_assert_int_eq(NC_free(&handle), 0);
	free(data);
	return range;
}

static void open_link(void *argument)
{
	struct client *client = argument;

	client->link = upstream_link_open(runner.loop, &client->upstream, &owner, &client->error);
}

static void request(void *argument)
{
	struct client *client = argument;

	client->error = upstream_link_request(client->link, &client->message);
}

/* Returns when the application has accepted the link. */
static void connect_to(struct client *client)
{
	call(&runner, open_link, client);
	ck_assert_ptr_nonnull(client->link);
	client->peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	ck_assert_int_ge(client->peer, 0);
}

static void ask(struct client *client, struct NC_range body, bool more)
{
	ck_assert_int_eq(fcgi_message_make(&client->message, block(), body, more), 0);
	call(&runner, request, client);
	ck_assert_int_eq(client->error, 0);
}

/* A request without a body was sent, and the application has received it. */
static void begin_asked(struct client *client, int kind)
{
	begin(client, kind);
	connect_to(client);
	ask(client, (struct NC_range){0}, false);
	take_beginning(client->peer);
	take_end(client->peer);
	settle(&runner);
}

static void look(void *argument)
{
	struct client *client = argument;

	client->error = upstream_link_is_alive(client->link);
}

static bool is_alive(struct client *client)
{
	call(&runner, look, client);
	return client->error;
}

static void rest_long(void *argument)
{
	upstream_link_rest(((struct client *)argument)->link, 3600000);
}

static void rest_briefly(void *argument)
{
	upstream_link_rest(((struct client *)argument)->link, 1);
}

/* --- tests ------------------------------------------------------------------------------------- */

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
		take_beginning(client.peer);
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

static void go_on(void *argument)
{
	struct client *client = argument;

	client->error = upstream_link_body(client->link, client->piece, client->more);
}

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
	take_beginning(client.peer);
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
	take_beginning(client.peer);
	read_exactly(client.peer, record, sizeof(record));
	SEEN(client.broke == 1);
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
	memset(text, 'a', size);
	text[1] = '=';
	ck_assert_int_eq(fcgi_message_make(&message, (struct slice){text, 70000},
					   (struct NC_range){0}, false),
			 -EMSGSIZE);
	upstream_message_free(&message);
	free(text);
}
END_TEST

/* --- HTTP ------------------------------------------------------------------------------------ */

#define HEAD "POST / HTTP/1.1\r\n"

/* Reads a text that must come next. */
static void take_text(int peer, const char *text)
{
	size_t length = strlen(text);
	char *got = must_alloc(length);

	read_exactly(peer, got, length);
	ck_assert_mem_eq(got, text, length);
	free(got);
}

static void take_bytes(int peer, uint64_t seed, size_t from, size_t length)
{
	char *content = must_alloc(length);

	read_exactly(peer, content, length);
	ck_assert_uint_eq(pattern_match(content, seed, from, length), length);
	free(content);
}

static void ask_http(struct client *client, uint64_t length, size_t first)
{
	const struct http_message_body body = {
		.any = true, .length = length, .first = body_of(0, first), .more = first < length};

	ck_assert_int_eq(http_message_make(&client->message, SLICE(HEAD), &body), 0);
	call(&runner, request, client);
	ck_assert_int_eq(client->error, 0);
}

/* A body of known length has no marks between its pieces, or at its end. */
START_TEST(test_known_length)
{
	struct client client;

	begin(&client, _i);
	connect_to(&client);
	ask_http(&client, 100000, 70000);
	take_text(client.peer, HEAD "Content-Length: 100000\r\n\r\n");
	take_bytes(client.peer, 0, 0, 70000);
	AWAIT(client.drained == 1);
	client.piece = body_of(1, 30000);
	call(&runner, go_on, &client);
	take_bytes(client.peer, 1, 0, 30000);
	settle(&runner);
	SEEN(client.broke == 1 && client.drained == 1);
	call(&runner, rest_long, &client);
	ck_assert(is_alive(&client));
	end(&client);
}
END_TEST

/* The last piece may be empty. */
START_TEST(test_chunks)
{
	struct client client;

	begin(&client, _i);
	connect_to(&client);
	ask_http(&client, HTTP_MESSAGE_UNKNOWN, 70000);
	take_text(client.peer, HEAD "Transfer-Encoding: chunked\r\n\r\nfff8\r\n");
	take_bytes(client.peer, 0, 0, RECORD);
	take_text(client.peer, "\r\n1178\r\n");
	take_bytes(client.peer, 0, RECORD, 70000 - RECORD);
	AWAIT(client.drained == 1);
	client.piece = (struct NC_range){0};
	call(&runner, go_on, &client);
	take_text(client.peer, "\r\n0\r\n\r\n");
	settle(&runner);
	call(&runner, rest_long, &client);
	end(&client);
}
END_TEST

static char written[LARGE];

static void write_some(void *argument)
{
	struct client *client = argument;

	client->error = upstream_link_write(client->link, written, client->piece.length);
}

static void end_ours(void *argument)
{
	upstream_link_end(((struct client *)argument)->link);
}

/* Bytes of another protocol: drained() is called when the system has taken what it had not at first. */
START_TEST(test_write)
{
	struct client client;
	char byte;

	begin_asked(&client, _i);
	pattern_fill(written, 7, 0, LARGE);
	client.piece.length = 10;
	call(&runner, write_some, &client);
	ck_assert_int_eq(client.error, 1);
	take_bytes(client.peer, 7, 0, 10);
	client.piece.length = LARGE;
	call(&runner, write_some, &client);
	ck_assert_int_eq(client.error, 0);
	/* Behind it, in order. */
	client.piece.length = 1000;
	call(&runner, write_some, &client);
	ck_assert_int_eq(client.error, 0);
	call(&runner, end_ours, &client);
	settle(&runner);
	SEEN(client.drained == 0);
	take_bytes(client.peer, 7, 0, LARGE);
	take_bytes(client.peer, 7, 0, 1000);
	AWAIT(client.drained == 1);
	ck_assert_int_eq(read(client.peer, &byte, 1), 0);
	SEEN(client.broke == 1);
	end(&client);
}
END_TEST

/* The link closes while bytes wait. */
START_TEST(test_write_and_close)
{
	struct client client;

	begin_asked(&client, _i);
	client.piece.length = LARGE;
	call(&runner, write_some, &client);
	call(&runner, write_some, &client);
	ck_assert_int_eq(client.error, 0);
	end(&client);
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
	tcase_add_loop_test(tcase, test_rest, first, KINDS);
	tcase_add_loop_test(tcase, test_rest_at_its_end, first, KINDS);
	tcase_add_loop_test(tcase, test_abort, first, KINDS);
	tcase_add_loop_test(tcase, test_known_length, first, KINDS);
	tcase_add_loop_test(tcase, test_chunks, first, KINDS);
	tcase_add_loop_test(tcase, test_write, first, KINDS);
	tcase_add_loop_test(tcase, test_write_and_close, first, KINDS);
	tcase_add_test(tcase, test_large_variables);
}

RUN_SUITE("upstream-link", fill)
