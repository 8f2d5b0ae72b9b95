/* SPDX-License-Identifier: MIT */
/*
 * worker-stream.c - a worker that responds in pieces, and reads bodies in pieces,
 * rightly or wrongly, as the end of the path says; the query contains numbers, with
 * colons between:
 *
 *	/pieces?COUNT:SIZE[:LENGTH]  pieces, each with its number in front; LENGTH
 *	                             is announced
 *	/list      a head that is kept, a fresh middle, the head again
 *	/endless   pieces of 64 KB until the request is cancelled
 *	/empty     pieces without a byte until they are refused, which it reports
 *	/abort?N   aborts after N pieces; 0: without a response
 *	/die?N     exits after N pieces
 *	/hang?N    hangs after N pieces
 *	/await     begins, and aborts when the client has disconnected
 *	/sum       of a body: pieces, bytes, MD5
 *	/early?N   responds after N pieces of a body
 *	/take?N    reads N pieces, and the next one when the client has disconnected
 *	/leave?N   reads N pieces and exits
 *	/both      begins a response and continues to read the body
 *	/notes     how many of the others were cancelled
 *
 * Single-threaded; ends when its server does.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <glib.h>

#include <nabc-worker.h>
#include <nabc.h>

#define PIECE 65536
#define LISTS 16 /* that may be requested at once */

static NC_worker *worker;
static unsigned canceled;

static void die(const char *what)
{
	perror(what);
	exit(EXIT_FAILURE);
}

/* A unit of size bytes that begins with text. */
static struct NC_range unit_of(const char *text, size_t size)
{
	struct NC_range range = {.length = size};
	NC_handle unit;

	if (NC_alloc(&unit, size, 0) < 0 || NC_write(&unit, text, strlen(text), 0) < 0 ||
	    NC_insert(&unit) < 0)
		die("worker-stream: cannot make a unit");
	range.id = NC_cache_id(&unit);
	NC_free(&unit);
	return range;
}

static struct NC_range numbered(uint64_t number, size_t size)
{
	char text[32];

	snprintf(text, sizeof(text), "%012" PRIu64, number);
	return unit_of(text, size);
}

static uint64_t number(const struct NC_request *request, unsigned which)
{
	const char *text = NC_request_variable(request, "QUERY_STRING");

	while (text && which--) {
		text = strchr(text, ':');
		text = text ? text + 1 : NULL;
	}
	return text ? strtoull(text, NULL, 10) : 0;
}

static void begin(const struct NC_request *request, uint64_t length)
{
	char line[64];
	struct NC_response response =
		NC_RESPONSE_INIT(.status = 200, .flags = NC_RESPONSE_MORE, .headers = line);

	if (length)
		response.headers_length = (size_t)snprintf(
			line, sizeof(line), "Content-Length: %" PRIu64 "\r\n", length);
	if (NC_worker_respond(worker, request, &response) < 0)
		die("worker-stream: cannot begin");
}

/* Returns 0, or -1 when the request was cancelled. */
static int send_piece(const struct NC_request *request, struct NC_range range, unsigned flags)
{
	int result = NC_worker_send(worker, request, &range, 1, flags);

	if (result < 0 && errno != ECANCELED)
		die("worker-stream: cannot send a piece");
	if (result < 0)
		(void)NC_destroy(NULL, range.id);
	canceled += result < 0;
	return result;
}

/* Returns -1 when the request was cancelled. */
static int send_pieces(const struct NC_request *request, uint64_t count, size_t size, unsigned last)
{
	int result = 0;

	for (uint64_t i = 0; i < count && result == 0; i++)
		result = send_piece(request, numbered(i, size),
				    i + 1 < count ? NC_RESPONSE_MORE : last);
	return result;
}

static void answer(const struct NC_request *request, const struct NC_range *ranges, unsigned count,
		   unsigned flags)
{
	struct NC_response response = NC_RESPONSE_INIT(.status = 200, .flags = flags,
						       .ranges = ranges, .range_count = count);

	if (NC_worker_respond(worker, request, &response) < 0)
		die("worker-stream: cannot respond");
}

static void list(const struct NC_request *request)
{
	static struct NC_range ranges[3];
	static size_t middles[LISTS];
	static unsigned turn;
	size_t *middle = &middles[turn++ % LISTS];

	/* An older one: the server may not have the response yet that names the previous one. */
	if (*middle)
		(void)NC_destroy(NULL, *middle);
	if (!ranges[0].id)
		ranges[0] = ranges[2] = unit_of("head and foot\n", 14);
	ranges[1] = unit_of("a fresh middle\n", 15);
	*middle = ranges[1].id;
	answer(request, ranges, 3, NC_RESPONSE_KEEP);
}

static void say(const struct NC_request *request, const char *text)
{
	struct NC_range range = unit_of(text, strlen(text));

	answer(request, &range, 1, 0);
}

static void notes(const struct NC_request *request)
{
	char text[32];

	snprintf(text, sizeof(text), "%u", canceled);
	say(request, text);
}

static void send_empty(const struct NC_request *request)
{
	struct NC_range text = unit_of("refused", 7), none = {.id = text.id};

	begin(request, 0);
	while (NC_worker_send(worker, request, &none, 1, NC_RESPONSE_KEEP | NC_RESPONSE_MORE) == 0)
		;
	if (errno != ECANCELED)
		(void)send_piece(request, text, 0);
}

static void await_gone(const struct NC_request *request)
{
	int gone;

	begin(request, 0);
	while ((gone = NC_worker_gone(worker, request)) == 0)
		usleep(1000);
	canceled += gone > 0;
	if (NC_worker_abort(worker, request) < 0)
		die("worker-stream: cannot abort");
}

/*
 * Reads up to `most` pieces of the body into sum (may be NULL); returns how many, or
 * -1: the client has disconnected.
 */
static int take(struct NC_request *request, uint64_t most, GChecksum *sum, uint64_t *length)
{
	static char bytes[2 << 20];
	struct NC_range piece;
	int count = 0;

	while ((uint64_t)count < most) {
		int got = NC_worker_body(worker, request, &piece, 0);

		if (got < 0 && errno != ECANCELED)
			die("worker-stream: cannot take a body");
		if (got <= 0)
			return got < 0 ? -1 : count;
		if (piece.length > sizeof(bytes) ||
		    NC_pread(NULL, piece.id, bytes, piece.length, piece.offset) !=
			    (ssize_t)piece.length) {
			/* The unit is destroyed with its request; the next call reports that. */
			if (errno == EACCES || errno == ENOENT)
				continue;
			die("worker-stream: cannot read a piece");
		}
		if (sum)
			g_checksum_update(sum, (const guchar *)bytes, (gssize)piece.length);
		*length += piece.length;
		count++;
	}
	return count;
}

static void give_up(const struct NC_request *request)
{
	canceled++;
	if (NC_worker_abort(worker, request) < 0)
		die("worker-stream: cannot abort");
}

static void sum_up(struct NC_request *request)
{
	GChecksum *sum = g_checksum_new(G_CHECKSUM_MD5);
	uint64_t length = 0;
	int count = take(request, UINT64_MAX, sum, &length);
	char text[128];

	snprintf(text, sizeof(text), "%d %" PRIu64 " %s", count, length,
		 g_checksum_get_string(sum));
	g_checksum_free(sum);
	if (count < 0)
		give_up(request);
	else
		say(request, text);
}

static void take_some(struct NC_request *request, const char *order)
{
	uint64_t length = 0;
	int count = take(request, number(request, 0), NULL, &length);

	if (strcmp(order, "/leave") == 0)
		_exit(3);
	if (strcmp(order, "/both") == 0)
		begin(request, 0);
	while (count >= 0 && strcmp(order, "/take") == 0 && NC_worker_gone(worker, request) == 0)
		usleep(1000);
	if (count >= 0 && strcmp(order, "/early") != 0)
		count = take(request, UINT64_MAX, NULL, &length);
	if (count < 0)
		give_up(request);
	else
		say(request, "enough");
}

static void obey(struct NC_request *request)
{
	const char *path = NC_request_variable(request, "PATH_INFO");
	char order[16];

	/* The variables are gone when a send reports that the request was cancelled. */
	g_strlcpy(order, path ? path : "", sizeof(order));
	if (strcmp(order, "/pieces") == 0) {
		begin(request, number(request, 2));
		(void)send_pieces(request, number(request, 0), number(request, 1), 0);
	} else if (strcmp(order, "/list") == 0) {
		list(request);
	} else if (strcmp(order, "/endless") == 0) {
		begin(request, 0);
		(void)send_pieces(request, UINT64_MAX, PIECE, 0);
	} else if (strcmp(order, "/empty") == 0) {
		send_empty(request);
	} else if (strcmp(order, "/await") == 0) {
		await_gone(request);
	} else if (strcmp(order, "/notes") == 0) {
		notes(request);
	} else if (strcmp(order, "/sum") == 0) {
		sum_up(request);
	} else if (strcmp(order, "/early") == 0 || strcmp(order, "/take") == 0 ||
		   strcmp(order, "/leave") == 0 || strcmp(order, "/both") == 0) {
		take_some(request, order);
	} else {
		int result = 0;

		if (number(request, 0)) {
			begin(request, 0);
			result = send_pieces(request, number(request, 0), PIECE, NC_RESPONSE_MORE);
		}
		if (strcmp(order, "/die") == 0)
			_exit(3);
		while (strcmp(order, "/hang") == 0)
			pause();
		if (result == 0 && NC_worker_abort(worker, request) < 0)
			die("worker-stream: cannot abort");
	}
}

int main(void)
{
	struct NC_request request;

	worker = NC_worker_open(NULL);
	if (!worker)
		die("worker-stream: cannot join the server");
	while (NC_worker_accept(worker, &request, sizeof(request), 0) > 0)
		obey(&request);
	NC_worker_close(worker);
	return EXIT_SUCCESS;
}
