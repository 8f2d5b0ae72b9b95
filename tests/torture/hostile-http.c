/* SPDX-License-Identifier: MIT */
/*
 * hostile-http.c - hostile clients, of one kind of a table:
 *
 *	hostile-http KIND PORT HOLD ADDRESSES CPU SEED FIGURES
 *
 * It keeps up to HOLD connections, from ADDRESSES addresses, 127.0.1.1 and
 * following, in segments like those of a network, and never uses more than the share
 * CPU of one processor (for example 0.1).  A connection writes, reads and ends as
 * its kind says, then another takes its place.
 * Figures: 0 connections, 1 requests or parts of them that were sent, 2 ended
 * by the server, 3 answers' bytes, 4 could not connect, 5 open now.
 * Single-threaded, by non-blocking calls on one connection after the other;
 * owns its sockets.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "content.h"
#include "hostile-frames.h"
#include "hostile.h"

#define SEGMENT 1460 /* a loopback's are of 64 KB, and buffers grow with them */
#define ROOM FRAMES_MAX
#define STEP_NS 2000000u
#define SOME 64 /* steps between two checks of the CPU time used */

enum { CONNECTED, SENT, CUT, RECEIVED, FAILED, OPEN };

enum writing { WRITE_NOTHING, WRITE_ONCE, WRITE_TRICKLE, WRITE_ENDLESS };
enum reading { READ_NOTHING, READ_CRUMBS, READ_ALL };
enum ending { END_CLOSE, END_RESET, END_HALF };

struct connection {
	int fd; /* -1: not connected */
	uint64_t due_ns, since_ns;
	size_t written, length;
	bool shut;
};

struct kind {
	const char *name;
	size_t (*begin)(char *text); /* what is sent first */
	const char *more;	     /* what is sent repeatedly */
	enum writing writing;
	enum reading reading;
	enum ending ending;
	unsigned pause_ms, life_ms; /* between two steps; of a connection: 0, until it is closed */
};

static uint64_t seed;
static unsigned addresses;
static char text[ROOM], sink[ROOM];
static struct sockaddr_in server;

static size_t begin_nothing(char *to)
{
	(void)to;
	return 0;
}

static size_t begin_head(char *to)
{
	return (size_t)sprintf(to, "GET /%u HTTP/1.1\r\nHost: test\r\n",
			       (unsigned)content_next(&seed));
}

static size_t begin_big(char *to)
{
	return (size_t)sprintf(to, "GET /big HTTP/1.1\r\nHost: test\r\n\r\n");
}

static size_t begin_body(char *to)
{
	return (size_t)sprintf(to, "POST /echo/upload HTTP/1.1\r\nHost: test\r\n"
				   "Content-Length: 900000\r\n\r\n");
}

static size_t begin_chunks(char *to)
{
	return (size_t)sprintf(to, "POST /echo/upload HTTP/1.1\r\nHost: test\r\n"
				   "Transfer-Encoding: chunked\r\n\r\n");
}

/* Names that collide in a hash without a key, each with the same value. */
static size_t begin_flood(char *to)
{
	uint64_t number = content_next(&seed);
	size_t length = (size_t)sprintf(to, "GET /");

	for (unsigned i = 0; i < 32; i++)
		length += (size_t)sprintf(to + length, "%s", number >> i & 1 ? "BY" : "Az");
	length += (size_t)sprintf(to + length, " HTTP/1.1\r\nHost: test\r\n");
	for (unsigned name = 0; name < 60; name++) {
		for (unsigned i = 0; i < 6; i++)
			length += (size_t)sprintf(to + length, "%s", name >> i & 1 ? "BY" : "Az");
		length += (size_t)sprintf(to + length, ": x\r\n");
	}
	return length + (size_t)sprintf(to + length, "\r\n");
}

/* No two of them overlap; as many as a head may contain. */
static size_t begin_ranges(char *to)
{
	size_t length = (size_t)sprintf(to, "GET /big HTTP/1.1\r\nHost: test\r\nRange: bytes=0-0");

	for (unsigned i = 1; length < 15000; i++)
		length += (size_t)sprintf(to + length, ",%u-%u", i * 100, i * 100 + 50);
	return length + (size_t)sprintf(to + length, "\r\n\r\n");
}

static size_t begin_pipeline(char *to)
{
	size_t length = 0;

	while (length < 60000)
		length += (size_t)sprintf(to + length, "GET /page HTTP/1.1\r\nHost: test\r\n\r\n");
	return length;
}

static size_t begin_garbage(char *to)
{
	size_t length = 16 + content_next(&seed) % 4000;

	for (size_t i = 0; i < length; i++)
		to[i] = (char)content_next(&seed);
	return length;
}

/* The first bytes of a ClientHello of 512 bytes: a record, a message, a version. */
static size_t begin_hello(char *to)
{
	static const char hello[] = "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";

	memcpy(to, hello, sizeof(hello) - 1);
	return sizeof(hello) - 1;
}

static size_t begin_half_hello(char *to)
{
	for (size_t i = begin_hello(to); i < 256; i++)
		to[i] = (char)content_next(&seed);
	return 256;
}

/* A record is longer than any may be (RFC 8446, 5.1), and comes whole. */
static size_t begin_record(char *to)
{
	size_t length = 16385 + 256 + content_next(&seed) % (65536 - 16385 - 256);

	memcpy(to, "\x16\x03\x01", 3);
	to[3] = (char)(length >> 8);
	to[4] = (char)length;
	for (size_t i = 0; i < length; i++)
		to[5 + i] = (char)content_next(&seed);
	return 5 + length;
}

static size_t begin_work(char *to)
{
	return (size_t)sprintf(to, "GET /work?size=500000 HTTP/1.1\r\nHost: test\r\n\r\n");
}

/* The folder has many files. */
static size_t begin_listing(char *to)
{
	return (size_t)sprintf(to, "GET /many/ HTTP/1.1\r\nHost: test\r\n\r\n");
}

/* By a user who may. */
static size_t begin_propfind(char *to)
{
	static const char body[] = "<propfind xmlns=\"DAV:\"><allprop/></propfind>";

	return (size_t)sprintf(to,
			       "PROPFIND /dav/ HTTP/1.1\r\nHost: test\r\nDepth: 1\r\n"
			       "Authorization: Basic YW5uYTpnZWhlaW0=\r\n"
			       "Content-Length: %zu\r\n\r\n%s",
			       sizeof(body) - 1, body);
}

static size_t begin_websocket(char *to)
{
	return (size_t)sprintf(to, "GET /socket HTTP/1.1\r\nHost: test\r\nUpgrade: websocket\r\n"
				   "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
				   "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
}

/* A new password each time, for a user that exists: base64 of "anna:", "x" and six of its own. */
static size_t begin_guess(char *to)
{
	uint64_t number = content_next(&seed);
	char guess[9] = {0};

	for (unsigned i = 0; i < 8; i++)
		guess[i] = (char)('A' + (number >> 4 * i & 15));
	return (size_t)sprintf(to,
			       "GET /closed/page HTTP/1.1\r\nHost: test\r\n"
			       "Authorization: Basic YW5uYTp4%s\r\n\r\n",
			       guess);
}

/* A program whose start another user delays. */
static size_t begin_held(char *to)
{
	return (size_t)sprintf(to, "GET /held/held.sh HTTP/1.1\r\nHost: test\r\n\r\n");
}

/* To a worker that is hostile, too. */
static size_t begin_accomplice(char *to)
{
	return (size_t)sprintf(to, "GET /taken-over HTTP/1.1\r\nHost: test\r\n\r\n");
}

#define LINE "X-Filler: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n"

static const struct kind kinds[] = {
	{"connects", begin_nothing, "", WRITE_NOTHING, READ_ALL, END_CLOSE, 500, 0},
	{"slowloris", begin_head, "A: b\r\n", WRITE_TRICKLE, READ_ALL, END_CLOSE, 500, 0},
	{"slow-read", begin_big, "", WRITE_ONCE, READ_CRUMBS, END_CLOSE, 200, 0},
	{"slow-body", begin_body, "x", WRITE_TRICKLE, READ_ALL, END_CLOSE, 500, 0},
	{"header-bomb", begin_head, LINE, WRITE_ENDLESS, READ_ALL, END_CLOSE, 5, 0},
	{"body-bomb", begin_chunks, "1\r\nx\r\n", WRITE_ENDLESS, READ_ALL, END_CLOSE, 5, 0},
	{"pipeline", begin_pipeline, "", WRITE_ONCE, READ_NOTHING, END_CLOSE, 100, 3000},
	{"reset", begin_big, "", WRITE_ONCE, READ_NOTHING, END_RESET, 1, 1},
	{"half-close", begin_work, "", WRITE_ONCE, READ_NOTHING, END_HALF, 50, 1000},
	{"ranges", begin_ranges, "", WRITE_ONCE, READ_ALL, END_CLOSE, 5, 200},
	{"flood", begin_flood, "", WRITE_ONCE, READ_ALL, END_CLOSE, 5, 100},
	{"garbage", begin_garbage, "", WRITE_ONCE, READ_ALL, END_RESET, 5, 100},
	{"half-hello", begin_half_hello, "", WRITE_ONCE, READ_ALL, END_CLOSE, 500, 0},
	{"slow-hello", begin_hello, "\x03", WRITE_TRICKLE, READ_ALL, END_CLOSE, 1000, 0},
	{"long-record", begin_record, "", WRITE_ONCE, READ_ALL, END_CLOSE, 5, 100},
	{"listing", begin_listing, "", WRITE_ONCE, READ_NOTHING, END_RESET, 5, 20},
	{"propfind", begin_propfind, "", WRITE_ONCE, READ_ALL, END_CLOSE, 5, 500},
	{"websocket", begin_websocket, "", WRITE_ONCE, READ_ALL, END_CLOSE, 500, 0},
	{"guess", begin_guess, "", WRITE_ONCE, READ_ALL, END_CLOSE, 5, 1000},
	{"accomplice", begin_accomplice, "", WRITE_ONCE, READ_ALL, END_CLOSE, 5, 1000},
	{"held", begin_held, "", WRITE_ONCE, READ_ALL, END_CLOSE, 50, 2000},
	{"refused-streams", frames_refused, "", WRITE_ONCE, READ_NOTHING, END_CLOSE, 5, 1000},
	{"made-resets", frames_reset, "", WRITE_ONCE, READ_ALL, END_CLOSE, 5, 1000},
	{"hpack", frames_hpack, "", WRITE_ONCE, READ_ALL, END_CLOSE, 5, 1000},
};

static void leave(struct connection *connection, bool reset)
{
	struct linger linger = {.l_onoff = 1};

	if (reset)
		(void)setsockopt(connection->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	close(connection->fd);
	connection->fd = -1;
	figures[OPEN]--;
}

static void enter(struct connection *connection, const struct kind *kind, uint64_t now)
{
	static unsigned turn;
	struct sockaddr_in from = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(0x7f000101 + turn++ % addresses)};
	int small = 2048, on = 1, segment = SEGMENT;

	connection->due_ns = now + 100000000;
	connection->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (connection->fd < 0) {
		figures[FAILED]++;
		return;
	}
	if (kind->reading != READ_ALL)
		(void)setsockopt(connection->fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	(void)setsockopt(connection->fd, IPPROTO_TCP, TCP_MAXSEG, &segment, sizeof(segment));
	/* The port is chosen for the peer's address, so that 60,000 per peer are possible. */
	(void)setsockopt(connection->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
	if (bind(connection->fd, (struct sockaddr *)&from, sizeof(from)) < 0 ||
	    (connect(connection->fd, (struct sockaddr *)&server, sizeof(server)) < 0 &&
	     errno != EINPROGRESS)) {
		close(connection->fd);
		connection->fd = -1;
		figures[FAILED]++;
		return;
	}
	figures[CONNECTED]++;
	figures[OPEN]++;
	connection->since_ns = now;
	connection->due_ns = now;
	connection->written = 0;
	connection->shut = false;
}

/* Returns false at the end of the connection. */
static bool put(struct connection *connection, const char *data, size_t length)
{
	ssize_t sent = send(connection->fd, data, length, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (sent < 0)
		return errno == EAGAIN || errno == ENOTCONN || errno == EINPROGRESS;
	connection->written += (size_t)sent;
	figures[SENT]++;
	return true;
}

static bool write_some(struct connection *connection, const struct kind *kind)
{
	char lines[4096];
	size_t length = 0, piece = strlen(kind->more);

	if (kind->writing == WRITE_NOTHING || connection->shut)
		return true;
	if (!connection->written) {
		if (!put(connection, text, kind->begin(text)))
			return false;
	} else if (kind->writing == WRITE_TRICKLE) {
		return put(connection, kind->more, piece);
	} else if (kind->writing == WRITE_ENDLESS) {
		while (length + piece <= sizeof(lines)) {
			memcpy(lines + length, kind->more, piece);
			length += piece;
		}
		return put(connection, lines, length);
	}
	if (kind->ending == END_HALF && connection->written) {
		shutdown(connection->fd, SHUT_WR);
		connection->shut = true;
	}
	return true;
}

static bool read_some(struct connection *connection, const struct kind *kind)
{
	ssize_t got;

	if (kind->reading == READ_NOTHING)
		return true;
	got = recv(connection->fd, sink, kind->reading == READ_CRUMBS ? 1 : sizeof(sink),
		   MSG_DONTWAIT);
	if (got > 0)
		figures[RECEIVED] += (uint64_t)got;
	return got > 0 || (got < 0 && (errno == EAGAIN || errno == ENOTCONN));
}

static void step(struct connection *connection, const struct kind *kind, uint64_t now)
{
	if (connection->fd < 0) {
		enter(connection, kind, now);
		if (connection->fd < 0)
			return;
	} else if (kind->life_ms &&
		   now - connection->since_ns > kind->life_ms * UINT64_C(1000000)) {
		leave(connection, kind->ending == END_RESET);
		return;
	}
	connection->due_ns = now + kind->pause_ms * UINT64_C(1000000);
	if (!write_some(connection, kind) || !read_some(connection, kind)) {
		figures[CUT]++;
		leave(connection, false);
	}
}

int main(int argc, char **argv)
{
	const struct kind *kind = NULL;
	struct connection *connections;
	unsigned hold, at = 0;
	uint64_t started;
	double share;

	if (argc != 8 || atoi(argv[4]) < 1)
		errx(1, "usage: hostile-http KIND PORT HOLD ADDRESSES CPU SEED FIGURES");
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(kinds[i].name, argv[1]) == 0)
			kind = &kinds[i];
	if (!kind)
		errx(1, "%s: no such kind", argv[1]);
	server = (struct sockaddr_in){.sin_family = AF_INET,
				      .sin_port = htons((uint16_t)atoi(argv[2])),
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	hold = (unsigned)atoi(argv[3]);
	addresses = (unsigned)atoi(argv[4]);
	share = atof(argv[5]);
	seed = strtoull(argv[6], NULL, 10);
	begin(argv[7]);
	connections = calloc(hold, sizeof(*connections));
	if (!connections)
		err(1, "calloc");
	for (unsigned i = 0; i < hold; i++)
		connections[i].fd = -1;
	started = now_ns();
	while (!ended) {
		uint64_t now = now_ns(), round = now;
		unsigned done = 0;

		for (unsigned i = 0; i < hold && !ended; i++, at = (at + 1) % hold) {
			if (connections[at].due_ns > now)
				continue;
			step(&connections[at], kind, now);
			if (++done % SOME == 0) {
				keep_to(share, started);
				now = now_ns();
			}
		}
		keep_to(share, started);
		if (now_ns() - round < STEP_NS)
			nap(STEP_NS);
	}
	free(connections);
	return 0;
}
