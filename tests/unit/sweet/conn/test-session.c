/* SPDX-License-Identifier: MIT */
/*
 * test-session.c - unit tests of HTTP/2 sessions: streams that end, move and are cut off at exact
 * moments, windows, and the end of a session with streams in all states.  Every test is run with
 * each kind of loop; the test itself is the client, which writes and reads frames.
 */
#include <glib.h>

#include "conn/session-internal.h"
#include "files/spool.h"
#include "handler/route.h"

#include "loop-fixture.h"

#define LARGE ((size_t)1 << 20) /* bytes of a response: more than sockets and windows have */
#define PIECE ((size_t)30000)
#define PIECES 5u
#define WINDOW ((size_t)64 << 10) /* of a request's body */
#define STREAMS_MAX 64
#define FRAME_MOST 16384u
#define UNCUT UINT32_MAX
#define INPUT_PAUSE 32768u /* of connection-body.c */

/* What the responder has of a stream, and what happened to it. */
static struct exchange {
	struct transaction *transaction;
	char kind;
	char *memory; /* of the response, or of its piece */
	bool holds;
	unsigned pieces;
	size_t taken; /* of the request's body */
	bool over;    /* all of it */
	bool has;     /* a piece that was not answered yet */
	bool started, finished, gone, wrong;
} exchanges[STREAMS_MAX];

/* What the client has heard of a stream. */
static struct {
	unsigned heads;
	size_t content;
	bool ended;
	uint32_t reset;	 /* the code, or UNCUT */
	uint64_t credit; /* given by the server */
} heard[STREAMS_MAX];

static bool goes_away, ponged;
static struct runner runner;
static struct thread thread;
static struct server server;
static struct config config;
static struct config_ref generation;
static NC_cache *cache;
static size_t unit;
static int client;
static GByteArray *gathered; /* what the client says at once, later; or NULL */

/* --- the responder: everything on the loop's thread --------------------------------------- */

static struct exchange *exchange_of(const struct transaction *transaction)
{
	struct exchange *const *kept = (struct exchange *const *)(const void *)transaction->scratch;

	return *kept;
}

/* Its memory is of no use afterwards. */
static void forget_memory(struct exchange *exchange)
{
	if (exchange->memory)
		memset(exchange->memory, 0, exchange->kind == 'l' ? LARGE : PIECE);
	free(exchange->memory);
	exchange->memory = NULL;
}

static void on_finish(struct transaction *transaction)
{
	struct exchange *exchange = exchange_of(transaction);

	forget_memory(exchange);
	if (exchange->holds)
		(void)NC_release(&transaction->hold);
	EVENT(exchange->wrong |= exchange->finished; exchange->finished = true);
}

static void on_gone(struct transaction *transaction)
{
	EVENT(exchange_of(transaction)->gone = true);
}

static void set_memory(struct transaction *transaction, size_t at, size_t length)
{
	struct exchange *exchange = exchange_of(transaction);

	forget_memory(exchange);
	exchange->memory = must_alloc(length);
	pattern_fill(exchange->memory, 1, at, length);
	transaction->data = exchange->memory;
	transaction->data_length = length;
}

static enum respond next_piece(struct transaction *transaction)
{
	struct exchange *exchange = exchange_of(transaction);

	if (exchange->kind != 'p' && exchange->pieces == 2) {
		transaction->status = 0;
		transaction->reset = exchange->kind == 'r';
	} else if (exchange->pieces < PIECES) {
		set_memory(transaction, PIECE * exchange->pieces, PIECE);
	} else {
		forget_memory(exchange);
		transaction->data = NULL;
		transaction->data_length = 0;
	}
	exchange->pieces++;
	return RESPOND_NOW;
}

static enum respond answer(struct transaction *transaction)
{
	struct exchange *exchange = exchange_of(transaction);
	char *head = transaction->head_buffer;

	transaction->status = 200;
	transaction->head = head;
	transaction->length = LARGE;
	if (exchange->kind == 'l') {
		set_memory(transaction, 0, LARGE);
	} else if (exchange->kind == 'u') {
		exchange->holds = NC_hold(NULL, unit, &transaction->hold) == 0;
		transaction->body = (struct NC_range){.id = unit, .length = LARGE};
	} else if (strchr("pcr", exchange->kind)) {
		transaction->length = TRANSACTION_UNKNOWN;
		transaction->next = next_piece;
		return next_piece(transaction);
	} else {
		set_memory(transaction, 0, PIECE);
		transaction->length = PIECE;
	}
	transaction->head_length =
		(size_t)sprintf(head, "Content-Length: %zu\r\n", (size_t)transaction->length);
	return RESPOND_NOW;
}

static void take_piece(struct transaction *transaction)
{
	static char bytes[2 * WINDOW];
	struct exchange *exchange = exchange_of(transaction);
	size_t length = (size_t)transaction->upload_length - exchange->taken;

	exchange->has = true;
	exchange->over = !transaction->upload_more;
	exchange->wrong |= length > WINDOW ||
			   (length && NC_pread(NULL, transaction->upload, bytes, WINDOW, 0) !=
					      (ssize_t)length) ||
			   pattern_match(bytes, 1, exchange->taken, length) != length;
	exchange->taken += length;
}

static enum respond on_received(struct transaction *transaction)
{
	EVENT(take_piece(transaction));
	return transaction->upload_more ? RESPOND_LATER : answer(transaction);
}

static enum respond ask(struct transaction *transaction, void *context)
{
	(void)context;
	transaction->received = on_received;
	transaction->receive_piece(transaction, UINT64_MAX, WINDOW);
	return RESPOND_LATER;
}

enum respond route(struct transaction *transaction)
{
	const struct stream *stream = transaction->connection;
	struct exchange *exchange = &exchanges[stream->id];

	EVENT(exchange->wrong |= exchange->started; exchange->started = true;
	      exchange->transaction = transaction;
	      exchange->kind = transaction->request->path.at[1]);
	*(struct exchange **)(void *)transaction->scratch = exchange;
	transaction->finish = on_finish;
	transaction->gone = on_gone;
	if (exchange->kind == 'b')
		return ask(transaction, NULL);
	return exchange->kind == 'w' ? RESPOND_LATER : answer(transaction);
}

static void ask_again(void *argument)
{
	struct exchange *exchange = argument;

	exchange->has = false;
	ask(exchange->transaction, NULL);
}

static void be_done(void *argument)
{
	const struct exchange *exchange = argument;

	(void)answer(exchange->transaction);
	exchange->transaction->done(exchange->transaction);
}

static enum respond answer_now(struct transaction *transaction, void *context)
{
	EVENT(*(bool *)context = true);
	return answer(transaction);
}

static bool resumed;

static void resume_with_answer(void *argument)
{
	struct transaction *transaction = ((struct exchange *)argument)->transaction;

	transaction->resume(transaction, answer_now, &resumed);
}

static void resume_with_body(void *argument)
{
	struct transaction *transaction = ((struct exchange *)argument)->transaction;

	transaction->resume(transaction, ask, NULL);
}

/* --- the client ------------------------------------------------------------------------------ */

static void say(const void *bytes, size_t length)
{
	if (gathered) {
		g_byte_array_append(gathered, bytes, (guint)length);
		return;
	}
	while (length) {
		ssize_t sent = send(client, bytes, length, MSG_NOSIGNAL);

		ck_assert_int_gt(sent, 0);
		bytes = (const char *)bytes + sent;
		length -= (size_t)sent;
	}
}

static void say_gathered(void)
{
	GByteArray *all = gathered;

	gathered = NULL;
	say(all->data, all->len);
	g_byte_array_unref(all);
}

static void say_frame(unsigned type, unsigned flags, unsigned stream, const void *payload,
		      size_t length)
{
	const unsigned char head[SESSION_FRAME_HEAD] = {0,
							(unsigned char)(length >> 8),
							(unsigned char)length,
							(unsigned char)type,
							(unsigned char)flags,
							0,
							0,
							0,
							(unsigned char)stream};

	say(head, sizeof(head));
	say(payload, length);
}

static void say_number(unsigned type, unsigned stream, uint32_t number)
{
	number = htonl(number);
	say_frame(type, 0, stream, &number, sizeof(number));
}

/* GET or POST, http, and the other two as literals (RFC 7541, section 6.2.2). */
static size_t write_head(char *block, const char *path, bool post)
{
	return (size_t)sprintf(block, "%c\x86%c%c%s%c%c%s", post ? 0x83 : 0x82, 0x04,
			       (char)strlen(path), path, 0x01, 4, "test");
}

static void request(unsigned stream, const char *path, bool body)
{
	char block[64];
	size_t length = write_head(block, path, body);

	say_frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | (body ? 0 : NGHTTP2_FLAG_END_STREAM),
		  stream, block, length);
}

/* Sends bytes of the pattern from at on. */
static void say_content(unsigned stream, size_t at, size_t length, bool end)
{
	static char bytes[10000];

	while (length || end) {
		size_t now = MIN(length, sizeof(bytes));

		length -= now;
		pattern_fill(bytes, 1, at, now);
		say_frame(NGHTTP2_DATA, end && !length ? NGHTTP2_FLAG_END_STREAM : 0, stream, bytes,
			  now);
		at += now;
		end &= length != 0;
	}
}

static uint32_t number_at(const unsigned char *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void hear_data(unsigned stream, const unsigned char *payload, size_t length)
{
	ck_assert(!heard[stream].ended && heard[stream].reset == UNCUT);
	ck_assert_uint_eq(pattern_match(payload, 1, heard[stream].content, length), length);
	heard[stream].content += length;
}

/* Reads a frame. */
static void hear(void)
{
	unsigned char head[SESSION_FRAME_HEAD], payload[FRAME_MOST];
	size_t length;
	unsigned stream;

	read_exactly(client, head, sizeof(head));
	length = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
	stream = number_at(head + 5);
	ck_assert_uint_le(length, sizeof(payload));
	ck_assert_uint_lt(stream, STREAMS_MAX);
	read_exactly(client, payload, length);
	switch (head[3]) {
	case NGHTTP2_DATA:
		hear_data(stream, payload, length);
		break;
	case NGHTTP2_HEADERS:
		ck_assert_uint_eq(heard[stream].heads++, 0);
		break;
	case NGHTTP2_RST_STREAM:
		heard[stream].reset = number_at(payload);
		return;
	case NGHTTP2_WINDOW_UPDATE:
		heard[stream].credit += number_at(payload);
		return;
	case NGHTTP2_PING:
		ponged = true;
		return;
	case NGHTTP2_GOAWAY:
		goes_away = true;
		return;
	default:
		ck_assert_uint_eq(head[3], NGHTTP2_SETTINGS);
		return;
	}
	heard[stream].ended |= head[4] & NGHTTP2_FLAG_END_STREAM;
}

#define HEAR(condition)                                                                            \
	do {                                                                                       \
		while (!(condition))                                                               \
			hear();                                                                    \
	} while (0)

/* Hears all that the server has to say; an answer may overtake what is behind it in a message. */
static void hear_all(void)
{
	for (unsigned i = 0; i < 2; i++) {
		ponged = false;
		say_frame(NGHTTP2_PING, 0, 0, "12345678", 8);
		HEAR(ponged);
	}
}

static void permit(unsigned stream)
{
	say_number(NGHTTP2_WINDOW_UPDATE, stream, 64 << 20);
}

static bool hears_end(void)
{
	char bytes[4096];
	ssize_t got;

	do {
		got = read(client, bytes, sizeof(bytes));
	} while (got > 0);
	return got == 0 || errno == ECONNRESET;
}

/* --- both ---------------------------------------------------------------------- */

static void start(void *argument)
{
	(void)argument;
	connection_init(&thread);
}

static void take_over(void *argument)
{
	connection_open(&thread, *(int *)argument, false);
}

static void connect_client(void)
{
	static const int little = 32 << 10;
	int pair[2];

	memset(exchanges, 0, sizeof(exchanges));
	memset(heard, 0, sizeof(heard));
	for (unsigned i = 0; i < STREAMS_MAX; i++)
		heard[i].reset = UNCUT;
	goes_away = resumed = false;
	/* Small buffers, so that the socket is full soon. */
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 0, 0);
	ck_assert_int_eq(setsockopt(pair[0], SOL_SOCKET, SO_RCVBUF, &little, sizeof(little)), 0);
	ck_assert_int_eq(setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &little, sizeof(little)), 0);
	set_nonblocking(pair[1]);
	client = pair[0];
	call(&runner, take_over, &pair[1]);
	say(SESSION_PREFACE, strlen(SESSION_PREFACE));
	say_frame(NGHTTP2_SETTINGS, 0, 0, NULL, 0);
	/* Those of the server: from now on its windows are good. */
	say_frame(NGHTTP2_SETTINGS, NGHTTP2_FLAG_ACK, 0, NULL, 0);
}

static void begin(int number)
{
	struct NC_cache_options options = NC_CACHE_OPTIONS_INIT(.memory = 16 << 20);

	cache = NC_cache_open(&options);
	ck_assert_ptr_nonnull(cache);
	runner_start(&runner, kind_of(number));
	config = (struct config){.http2 = HTTP2_CLEAR,
				 .limits = {.header_ms = 60000,
					    .body_ms = 60000,
					    .keep_alive_ms = 60000,
					    .send_ms = 60000,
					    .stop_ms = 60000,
					    .max_header = 8192,
					    .max_fields = 64,
					    .max_streams = 100},
				 .sockets = {.header_option = true, .close_option = true}};
	generation = (struct config_ref){.config = &config, .users = 1};
	server = (struct server){.bodies.most = 1 << 20,
				 .windows.most = 1 << 20,
				 .held_most = 64 << 20,
				 .unsent_most = 64 << 20,
				 .threads = 1,
				 .per_thread = {&thread}};
	thread = (struct thread){
		.loop = runner.loop, .config_ref = &generation, .server = &server};
	call(&runner, start, NULL);
	connect_client();
}

static void close_all(void *argument)
{
	(void)argument;
	connection_close_all(&thread);
}

static void check_exchanges(void)
{
	for (unsigned i = 0; i < STREAMS_MAX; i++) {
		SEEN(!exchanges[i].wrong);
		SEEN(exchanges[i].finished == exchanges[i].started);
	}
}

/* Asserts that everything was released. */
static void end(void)
{
	struct NC_cache_stat stat;

	close(client);
	call(&runner, close_all, NULL);
	ck_assert_uint_eq(thread.sessions.length, 0);
	ck_assert_uint_eq(thread.counters.open, 0);
	for (unsigned i = 0; i < CONNECTION_STATES; i++)
		ck_assert_uint_eq(thread.counters.states[i], 0);
	runner_stop(&runner);
	check_exchanges();
	ck_assert_uint_eq(generation.users, 1);
	ck_assert_uint_eq(server.bodies.used + server.held + server.unsent, 0);
	ck_assert_int_eq(NC_cache_stat(NULL, &stat, sizeof(stat)), 0);
	ck_assert_uint_eq(stat.units, 0);
	ck_assert_int_eq(NC_cache_close(cache), 0);
}

struct progress {
	bool sending;
	size_t bytes;
};

static void look(void *argument)
{
	struct progress *progress = argument;
	const struct connection *connection = thread.connections;

	progress->sending = connection && connection->sending;
	progress->bytes = progress->sending ? connection->send.message.skip : 0;
}

/* Waits until a message is in flight and the socket takes no more of it. */
static void await_full(void)
{
	struct progress before = {0}, now;

	for (unsigned same = 0; same < 4; before = now) {
		settle(&runner);
		call(&runner, look, &now);
		same = now.sending && before.sending && now.bytes == before.bytes ? same + 1 : 0;
	}
}

/* --- the tests ---------------------------------------------------------------------- */

/* The client resets a stream of which memory is in the message in flight. */
START_TEST(test_reset_in_flight)
{
	begin(_i);
	permit(0);
	for (unsigned stream = 1; stream < 9; stream += 2) {
		request(stream, "/l", false);
		permit(stream);
	}
	await_full();
	say_number(NGHTTP2_RST_STREAM, 1, NGHTTP2_CANCEL);
	AWAIT(exchanges[1].finished);
	say_number(NGHTTP2_RST_STREAM, 5, NGHTTP2_CANCEL);
	AWAIT(exchanges[5].finished);
	HEAR(heard[3].ended && heard[7].ended);
	ck_assert(!heard[1].ended && !heard[5].ended);
	ck_assert_uint_eq(heard[3].content, LARGE);
	ck_assert_uint_eq(heard[7].content, LARGE);
	/* The session continues. */
	request(9, "/p", false);
	permit(9);
	HEAR(heard[9].ended);
	ck_assert_uint_eq(heard[9].content, PIECES * PIECE);
	end();
}
END_TEST

static void make_unit(void)
{
	g_autofree char *bytes = g_malloc(LARGE);
	NC_handle handle;

	pattern_fill(bytes, 1, 0, LARGE);
	ck_assert_int_eq(NC_alloc(&handle, LARGE, 0), 0);
	ck_assert_int_eq(NC_write(&handle, bytes, LARGE, 0), LARGE);
	ck_assert_int_eq(NC_insert(&handle), 0);
	EVENT(unit = NC_cache_id(&handle));
	ck_assert_int_eq(NC_free(&handle), 0);
}

enum moving { NO_WINDOW, SMALL_WINDOW, FULL_SOCKET, MOVINGS };

static void set_no_window(void)
{
	static const unsigned char setting[] = {0, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0, 0, 0,
						0};

	say_frame(NGHTTP2_SETTINGS, 0, 0, setting, sizeof(setting));
}

static void move(enum moving how)
{
	make_unit();
	if (how == NO_WINDOW)
		set_no_window();
	if (how == FULL_SOCKET)
		permit(0);
	request(1, "/u", false);
	if (how == FULL_SOCKET)
		permit(1);
	AWAIT(exchanges[1].finished);
	ck_assert_uint_eq(thread.counters.slow_spooled, how + 1);
	ck_assert_int_eq(NC_destroy(NULL, unit), 0);
	if (how != FULL_SOCKET) {
		permit(0);
		permit(1);
	}
	HEAR(heard[1].ended);
	ck_assert_uint_eq(heard[1].content, LARGE);
}

/* A response leaves its unit while it waits, with frames of it in flight, or without any. */
START_TEST(test_moved)
{
	struct thread_pool *pool = thread_pool_open(1);
	struct spools_options options = {.folder = "/var/tmp",
					 .most = 64 << 20,
					 .memory = true,
					 .user = (uid_t)-1,
					 .group = (gid_t)-1};
	char *why = NULL;

	begin(_i);
	server.thread_pool = pool;
	server.spools = spools_open(&options, &why);
	ck_assert_msg(server.spools, "%s", why);
	spools_start(server.spools, pool);
	server.held_most = 0;
	for (enum moving how = NO_WINDOW; how < MOVINGS; how++) {
		move(how);
		close(client);
		connect_client();
	}
	ck_assert_uint_eq(thread.counters.slow_reset, 0);
	call(&runner, close_all, NULL);
	spools_stop(server.spools);
	thread_pool_close(pool);
	spools_close(server.spools);
	end();
}
END_TEST

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

/* A response that ends before its end: the client sees that, and whose fault it is. */
START_TEST(test_cut_off)
{
	begin(_i);
	request(1, "/c", false);
	HEAR(heard[1].reset != UNCUT);
	ck_assert_uint_eq(heard[1].content, 2 * PIECE);
	ck_assert(heard[1].heads == 1 && !heard[1].ended);
	permit(0);
	request(3, "/r", false);
	HEAR(heard[3].reset != UNCUT);
	ck_assert_uint_eq(heard[3].content, 2 * PIECE);
	ck_assert_uint_eq(heard[3].reset, NGHTTP2_CANCEL);
	request(5, "/p", false);
	permit(5);
	HEAR(heard[5].ended);
	ck_assert_uint_eq(heard[5].content, PIECES * PIECE);
	end();
}
END_TEST

static void look_at_saved(void *argument)
{
	const struct stream *stream = thread.connections->session->streams;

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

static void request_at_once(const char *path)
{
	gathered = g_byte_array_new();
	permit(0);
	for (unsigned stream = 1; stream < STREAMS_MAX; stream += 2) {
		request(stream, path, false);
		permit(stream);
	}
	say_gathered();
}

/* Requests that come together wait for the responses to those before them. */
START_TEST(test_many_at_once)
{
	begin(_i);
	request_at_once("/s");
	for (unsigned stream = 1; stream < STREAMS_MAX; stream += 2) {
		HEAR(heard[stream].ended);
		ck_assert_uint_eq(heard[stream].content, PIECE);
	}
	end();
}
END_TEST

/* But not for a client that does not read, which may reset them. */
START_TEST(test_many_without_reading)
{
	const unsigned last = STREAMS_MAX - 1;

	begin(_i);
	request_at_once("/l");
	AWAIT(exchanges[last].started);
	say_number(NGHTTP2_RST_STREAM, last, NGHTTP2_CANCEL);
	AWAIT(exchanges[last].finished);
	SEEN(!exchanges[last - 2].finished);
	HEAR(heard[1].ended);
	ck_assert_uint_eq(heard[1].content, LARGE);
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

	tcase_add_loop_test(tcase, test_reset_in_flight, kind, KINDS);
	tcase_add_loop_test(tcase, test_moved, kind, KINDS);
	tcase_add_loop_test(tcase, test_end_in_all_states, kind, KINDS);
	tcase_add_loop_test(tcase, test_cut_off, kind, KINDS);
	tcase_add_loop_test(tcase, test_windows, kind, KINDS);
	tcase_add_loop_test(tcase, test_end_alone, kind, KINDS);
	tcase_add_loop_test(tcase, test_many_at_once, kind, KINDS);
	tcase_add_loop_test(tcase, test_many_without_reading, kind, KINDS);
	tcase_add_loop_test(tcase, test_resume, kind, KINDS);
}

RUN_SUITE("session", fill)
