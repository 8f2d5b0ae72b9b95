/* SPDX-License-Identifier: MIT */
/*
 * client.c - requests the documents of content.h, in all ways that clients use, and
 * checks every byte of the responses.  Some connections read as fast as they can, some
 * slowly or with pauses, some close in the middle; requests are sent one by one or
 * several at once, some for a range, on connections that are kept or closed.  The
 * first error ends it with status 1 and a line that describes it; otherwise the last
 * line has the figures.  Options say what may fail: only what --dying, --mixtures and the
 * kinds of documents permit.  With --tls, some connections change keys or close their end in the
 * middle, and some are hostile: these may be ended, but what comes before that is right, too.
 * One thread, epoll.  Over 500 lines: one state machine, from a request to the last byte of its
 * response.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <client-answer.h>

#include "check.h"
#include "client-tls.h"
#include "content.h"
#include "parts.h"

#define DEPTH 8u      /* pending requests on a connection */
#define REQUESTS 100u /* of a connection, at most */
#define SECOND UINT64_C(1000000000)
#define MILLISECOND UINT64_C(1000000)
#define HOSTILE 50u		  /* percent of the acts */
#define STAY (1500 * MILLISECOND) /* of a hostile connection after its act, at most */
#define HANG (90 * SECOND)	  /* without a byte: the server's own limits are shorter */

/* Acting: see client-tls.h. */
enum manner { FAST, SLOW, PAUSING, LEAVING, ACTING, MANNERS };

struct connection {
	int fd;
	struct client_tls tls;
	enum manner manner;
	struct check checks[DEPTH]; /* a ring: the requests */
	bool ends[DEPTH];	    /* and whether to close then */
	unsigned first, count;
	unsigned requests; /* not yet sent */
	unsigned depth;
	struct answer answer;
	struct parts parts; /* of the current response */
	bool in_body, reset;
	bool mixed;	/* the answer has bytes of two versions */
	uint64_t leave; /* bytes after which it closes */
	uint64_t wake;	/* when it reads again; 0: now */
	uint64_t gone;	/* when it closes, after a hostile act; 0: there was none */
	uint64_t moved; /* time of the last progress */
};

struct counts {
	unsigned long long responses, bytes, ranges, parts, none, refused, cut, mixed, left,
		hostile, connections;
};

static struct content_board *board;
static struct sockaddr_in server;
static struct connection *connections;
static unsigned connection_count = 32, slow_percent = 25, close_percent = 10;
static bool secure;
static const char *kinds = CONTENT_FILE_KINDS;
static bool dying; /* workers are killed */
/* What an answer with bytes of two versions of a file that is written in place is. */
static enum { MIXTURE_WRONG, MIXTURE_CUT, MIXTURE_GOOD, MIXTURES } mixtures = MIXTURE_CUT;
static const char *const mixture_words[MIXTURES] = {"wrong", "cut", "good"};
static struct counts counts;
static uint64_t random_state;
static int epoll;
static char buffer[256 << 10];

static uint64_t draw(uint64_t below)
{
	return content_next(&random_state) % below;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

static void report(void)
{
	printf("client: responses=%llu bytes=%llu ranges=%llu parts=%llu none=%llu refused=%llu "
	       "cut=%llu mixed=%llu left=%llu hostile=%llu connections=%llu\n",
	       counts.responses, counts.bytes, counts.ranges, counts.parts, counts.none,
	       counts.refused, counts.cut, counts.mixed, counts.left, counts.hostile,
	       counts.connections);
	fflush(stdout);
}

/* To find the connection in the output of the server. */
static unsigned port_of(const struct connection *connection)
{
	struct sockaddr_in own = {0};
	socklen_t length = sizeof(own);

	getsockname(connection->fd, (struct sockaddr *)&own, &length);
	return ntohs(own.sin_port);
}

static void wrong(const struct connection *connection, const char *what)
{
	static const char *const manners[] = {"fast", "slow", "pausing", "leaving", "acting"};
	const struct check *check = &connection->checks[connection->first];

	printf("client: WRONG: %c/%u", check->kind, check->number);
	for (unsigned i = 0; i < check->range_count; i++)
		printf(", bytes %zu-%zu", check->ranges[i].from, check->ranges[i].to);
	printf(" by a %s connection from port %u, %u requests waiting: status %u, %llu bytes of "
	       "the body: %s\n",
	       manners[connection->manner], port_of(connection), connection->count,
	       connection->answer.status, (unsigned long long)connection->answer.body, what);
	report();
	if (secure)
		client_tls_report();
	exit(1);
}

/* --- requests ----------------------------------------------------------------- */

static bool by_worker(char kind)
{
	return strchr(CONTENT_WORKER_KINDS, kind) != NULL;
}

/* Large ones less often. */
static unsigned draw_number(char kind)
{
	for (;;) {
		unsigned number = content_draw(draw(UINT64_C(1) << 40));

		if (draw(20000 + content_size(kind, number, 0)) < 20000)
			return number;
	}
}

/* One or several, which neither touch nor overlap. */
static void add_ranges(struct check *check, char *text, size_t room)
{
	size_t size = content_size(check->kind, check->number, check->least), from = 0, used;
	unsigned count = draw(2) ? 1 : 2 + (unsigned)draw(CHECK_RANGES - 1);

	used = (size_t)snprintf(text, room, "Range: bytes=");
	for (unsigned i = 0; i < count; i++) {
		size_t to;

		from += (size_t)draw(size / count + 2);
		to = from + (size_t)draw(size / count + 100);
		check_range(check, from, to);
		used += (size_t)snprintf(text + used, room - used, "%s%zu-%zu", i ? "," : "", from,
					 to);
		from = to + 2;
	}
	snprintf(text + used, room - used, "\r\n");
}

static size_t add_request(struct connection *connection, char *text, size_t room)
{
	unsigned at = (connection->first + connection->count++) % DEPTH;
	struct check *check = &connection->checks[at];
	char kind = kinds[draw(strlen(kinds))];
	unsigned number = draw_number(kind);
	char range[160] = "";
	int length;

	check_begin(check, board, kind, number);
	if (!by_worker(kind) && draw(5) == 0) {
		add_ranges(check, range, sizeof(range));
	}
	connection->requests--;
	connection->ends[at] = !connection->requests && draw(2);
	length = snprintf(text, room, "GET %s/%c/%u HTTP/1.1\r\nHost: torture\r\n%s%s\r\n",
			  kind == CONTENT_CGI ? "/cgi/pages"
			  : by_worker(kind)   ? "/pages"
					      : "",
			  kind, number, range, connection->ends[at] ? "Connection: close\r\n" : "");
	return (size_t)length;
}

/* Sends as many as it sends at once. */
static void ask(struct connection *connection)
{
	char text[DEPTH * 300];
	size_t length = 0;

	while (connection->count < connection->depth && connection->requests)
		length += add_request(connection, text + length, sizeof(text) - length);
	/* This little always fits: nothing else is in the socket. */
	if (!length || client_tls_send(&connection->tls, text, length) == (ssize_t)length)
		return;
	if (errno != ECONNRESET && errno != EPIPE)
		err(2, "send");
	/* A connection that still reads learns of the reset only once. */
	connection->reset = true;
}

static void watch(struct connection *connection, int operation, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = connection};

	if (epoll_ctl(epoll, operation, connection->fd, &event) < 0)
		err(2, "epoll_ctl");
}

static enum manner draw_manner(void)
{
	if (secure && draw(2))
		return ACTING;
	return 1 + (enum manner)draw(ACTING - 1);
}

static void shake(struct connection *connection)
{
	const struct timeval most = {.tv_sec = HANG / SECOND};

	setsockopt(connection->fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
	client_tls_open(&connection->tls, connection->fd);
	connection->moved = now_ns();
}

static void open_connection(struct connection *connection)
{
	int little = 4096, on = 1;

	*connection = (struct connection){.moved = now_ns()};
	connection->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (connection->fd < 0)
		err(2, "socket");
	if (draw(100) < slow_percent)
		connection->manner = draw_manner();
	if (connection->manner == SLOW || (connection->manner != FAST && draw(2)))
		setsockopt(connection->fd, SOL_SOCKET, SO_RCVBUF, &little, sizeof(little));
	if (connect(connection->fd, (struct sockaddr *)&server, sizeof(server)) < 0)
		err(2, "connect");
	setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	connection->tls.fd = connection->fd;
	if (secure)
		shake(connection);
	fcntl(connection->fd, F_SETFL, O_NONBLOCK);
	counts.connections++;
	connection->requests = draw(100) < close_percent ? 1 : 1 + (unsigned)draw(REQUESTS);
	connection->depth = draw(2) ? 1 : 1 + (unsigned)draw(DEPTH);
	/* Anywhere: most bodies are small. */
	connection->leave = draw(1ull << (6 + draw(connection->manner == ACTING ? 12 : 20)));
	answer_begin(&connection->answer);
	watch(connection, EPOLL_CTL_ADD, EPOLLIN);
	ask(connection);
}

static void reopen(struct connection *connection, bool rudely)
{
	struct linger linger = {.l_onoff = 1};

	client_tls_close(&connection->tls, !rudely && draw(2));
	if (rudely)
		setsockopt(connection->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	close(connection->fd);
	open_connection(connection);
}

/* --- responses ---------------------------------------------------------------- */

/* Whether the document may have an error: its generator is killed, or it changes all the time. */
static bool may_refuse(const struct check *check, unsigned status)
{
	/* A named unit may have been evicted or destroyed before the server uses it. */
	if (by_worker(check->kind))
		return status == 503 || status == 502 || (dying && status == 504);
	return status == 503 && check->kind != CONTENT_STEADY;
}

/*
 * With large-files=sendfile, a socket refers to the pages of the file, which a writer changes
 * in place.  The server notices before the last bytes, and cuts the answer off; but a client
 * on the same machine shares the pages until it reads them.
 */
static bool may_mix(const struct check *check)
{
	return check->kind == CONTENT_WRITTEN && mixtures != MIXTURE_WRONG;
}

/* Whether the answer, which is complete, is the document. */
static bool is_whole(struct connection *connection, struct check *check, bool in_parts)
{
	if (connection->mixed)
		return mixtures == MIXTURE_GOOD;
	return in_parts ? parts_end(&connection->parts) : check_end(check);
}

/* Returns true if the connection continues. */
static bool end_answer(struct connection *connection)
{
	struct check *check = &connection->checks[connection->first];
	unsigned status = connection->answer.status;
	bool goes_on = answer_keeps(&connection->answer);

	if (status == 200 || status == 206) {
		if (status == 200)
			check_all(check);
		if (!is_whole(connection, check, status == 206))
			wrong(connection, check->why);
		counts.mixed += connection->mixed;
		counts.ranges += status == 206;
		counts.parts += status == 206 ? connection->parts.count : 0;
	} else if (status == 416) {
		if (!check_none(check))
			wrong(connection, check->why);
		counts.none++;
	} else if (may_refuse(check, status)) {
		counts.refused++;
	} else {
		wrong(connection, "another status");
	}
	if (!goes_on && !connection->ends[connection->first] && status < 400)
		wrong(connection, "it closes, though nobody asked for that");
	counts.responses++;
	connection->first = (connection->first + 1) % DEPTH;
	connection->count--;
	connection->in_body = connection->mixed = false;
	answer_begin(&connection->answer);
	return goes_on;
}

static void take_body(struct connection *connection, const char *bytes, size_t length)
{
	struct check *check = &connection->checks[connection->first];
	unsigned status = connection->answer.status;

	if (status == 200 && !connection->in_body)
		check_all(check);
	connection->in_body = true;
	if (!connection->mixed &&
	    ((status == 200 && !check_feed(check, bytes, length)) ||
	     (status == 206 && !parts_body(&connection->parts, bytes, length)))) {
		if (!may_mix(check))
			wrong(connection, check->why);
		connection->mixed = true;
	}
	counts.bytes += length;
	answer_drop(&connection->answer, length);
}

/* Returns false at the end of the connection. */
static bool take(struct connection *connection, const char *bytes, size_t length)
{
	while (length) {
		uint64_t body = answer_droppable(&connection->answer);
		size_t part;

		if (!connection->count)
			wrong(connection, "bytes behind the last answer");
		if (body) {
			part = body < length ? (size_t)body : length;
			take_body(connection, bytes, part);
		} else {
			/* Line by line: a body begins after one. */
			const char *end = memchr(bytes, '\n', length);

			part = end ? (size_t)(end - bytes) + 1 : length;
			if (!connection->answer.begun)
				parts_begin(&connection->parts,
					    &connection->checks[connection->first]);
			parts_head(&connection->parts, bytes, part);
			part = answer_feed(&connection->answer, bytes, part);
		}
		bytes += part;
		length -= part;
		if (connection->answer.state == ANSWER_BAD)
			wrong(connection, "no HTTP");
		if (connection->answer.state == ANSWER_DONE && !end_answer(connection))
			return false;
	}
	return true;
}

static bool may_cut(const struct check *check)
{
	return check->kind == CONTENT_WRITTEN || by_worker(check->kind);
}

/*
 * The server has closed; checks whether it may.  If it closes while requests wait, it
 * resets the connection, and unread responses are lost.
 */
static void end_connection(struct connection *connection, int error)
{
	bool may = connection->gone || (connection->answer.begun && !error &&
					may_cut(&connection->checks[connection->first]));

	for (unsigned i = 0; error == ECONNRESET && i < connection->count; i++)
		may = may || may_cut(&connection->checks[(connection->first + i) % DEPTH]);
	if (error == EBADMSG || (connection->count && !may))
		wrong(connection, error ? strerror(error) : "the server has closed");
	counts.cut += connection->count && !connection->gone;
	counts.mixed += connection->mixed;
	reopen(connection, false);
}

static size_t appetite(const struct connection *connection)
{
	return connection->manner == SLOW ? 1 + (size_t)draw(3000) : sizeof(buffer);
}

/* Sometimes stops reading for a while. */
static void rest(struct connection *connection, uint64_t now)
{
	if (connection->manner == SLOW)
		connection->wake = now + draw(4 * MILLISECOND);
	else if (connection->manner == PAUSING && draw(20) == 0)
		connection->wake = now + draw(600 * MILLISECOND);
	if (connection->wake)
		watch(connection, EPOLL_CTL_MOD, 0);
}

static void act(struct connection *connection)
{
	bool hostile = draw(100) < HOSTILE;
	enum client_tls_act act = client_tls_act(&connection->tls, hostile);

	connection->manner = act == CLIENT_TLS_HONEST && draw(4) ? ACTING : FAST;
	connection->leave = draw(1u << 16);
	if (act == CLIENT_TLS_HONEST)
		return;
	connection->requests = 0;
	if (connection->count)
		connection->ends[(connection->first + connection->count - 1) % DEPTH] = true;
	if (act != CLIENT_TLS_HOSTILE)
		return;
	counts.hostile++;
	connection->gone = now_ns() + draw(STAY);
	/* The server has an alert to send, and no space. */
	if (draw(3) == 0)
		connection->wake = connection->gone;
}

/* Takes some bytes.  Returns false if none are left for now. */
static bool receive_some(struct connection *connection)
{
	ssize_t got = client_tls_recv(&connection->tls, buffer, appetite(connection));

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (got <= 0) {
		end_connection(connection, connection->reset ? ECONNRESET : got < 0 ? errno : 0);
		return false;
	}
	connection->moved = now_ns();
	if (!take(connection, buffer, (size_t)got)) {
		reopen(connection, false);
		return false;
	}
	if (connection->manner == LEAVING && connection->leave <= (uint64_t)got) {
		counts.left++;
		reopen(connection, draw(2));
		return false;
	}
	if (connection->manner == ACTING && connection->leave <= (uint64_t)got)
		act(connection);
	else
		connection->leave -= (uint64_t)got;
	if (!connection->count && !connection->requests && !connection->gone) {
		reopen(connection, false);
		return false;
	}
	/* One at a time, or whenever there is space. */
	if (!connection->count || draw(2))
		ask(connection);
	rest(connection, connection->moved);
	return !connection->wake && client_tls_pending(&connection->tls);
}

static void receive(struct connection *connection)
{
	while (receive_some(connection))
		;
}

/* Handshakes of other connections may have kept this process from reading what is there. */
static bool is_silent(const struct connection *connection)
{
	int length = 0;

	return ioctl(connection->fd, FIONREAD, &length) < 0 || length == 0;
}

/* Continues those whose pause is over; returns the time of the next, limited to a while. */
static uint64_t wake(uint64_t now)
{
	uint64_t next = now + 100 * MILLISECOND;

	for (unsigned i = 0; i < connection_count; i++) {
		struct connection *connection = &connections[i];

		if (connection->gone && connection->gone <= now) {
			reopen(connection, draw(2));
		} else if (connection->wake && connection->wake <= now) {
			connection->wake = 0;
			connection->moved = now;
			watch(connection, EPOLL_CTL_MOD, EPOLLIN);
			if (client_tls_pending(&connection->tls))
				receive(connection);
		} else if (connection->wake && connection->wake < next) {
			next = connection->wake;
		} else if (!connection->wake && now > connection->moved + HANG &&
			   is_silent(connection)) {
			wrong(connection, "nothing comes");
		}
	}
	return next;
}

static void run(double seconds)
{
	uint64_t now, end;
	struct epoll_event events[64];

	connections = calloc(connection_count, sizeof(*connections));
	epoll = epoll_create1(EPOLL_CLOEXEC);
	if (!connections || epoll < 0)
		err(2, "connections");
	for (unsigned i = 0; i < connection_count; i++)
		open_connection(&connections[i]);
	end = now_ns() + (uint64_t)(seconds * 1e9);
	while ((now = now_ns()) < end) {
		int timeout = (int)((wake(now) - now) / MILLISECOND) + 1;
		int count = epoll_wait(epoll, events, 64, timeout);

		if (count < 0 && errno != EINTR)
			err(2, "epoll_wait");
		for (int i = 0; i < count; i++)
			receive(events[i].data.ptr);
	}
}

/* --- start ---------------------------------------------------------------------- */

static struct content_board *map_board(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *mapped;

	if (fd < 0)
		err(2, "%s", path);
	mapped = mmap(NULL, sizeof(struct content_board), PROT_READ, MAP_SHARED, fd, 0);
	if (mapped == MAP_FAILED)
		err(2, "%s", path);
	close(fd);
	return mapped;
}

static void set_mixtures(const char *word)
{
	for (mixtures = 0; mixtures < MIXTURES; mixtures++)
		if (strcmp(word, mixture_words[mixtures]) == 0)
			return;
	errx(2, "--mixtures must be wrong, cut or good");
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"board", required_argument, NULL, 'b'},
		{"connections", required_argument, NULL, 'c'},
		{"dying", no_argument, NULL, 'd'},
		{"kinds", required_argument, NULL, 'k'},
		{"mixtures", required_argument, NULL, 'm'},
		{"seconds", required_argument, NULL, 's'},
		{"seed", required_argument, NULL, 'r'},
		{"slow", required_argument, NULL, 'l'},
		{"tls", no_argument, NULL, 't'},
		{0},
	};
	double seconds = 10;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'b')
			board = map_board(optarg);
		else if (option == 'c')
			connection_count = (unsigned)atoi(optarg);
		else if (option == 'd')
			dying = true;
		else if (option == 'k')
			kinds = optarg;
		else if (option == 'm')
			set_mixtures(optarg);
		else if (option == 's')
			seconds = strtod(optarg, NULL);
		else if (option == 'r')
			random_state = strtoull(optarg, NULL, 10);
		else if (option == 'l')
			slow_percent = (unsigned)atoi(optarg);
		else if (option == 't')
			secure = true;
		else
			return 2;
	}
	if (optind != argc - 2 || inet_pton(AF_INET, argv[optind], &server.sin_addr) != 1)
		errx(2, "usage: client [OPTION]... ADDRESS PORT");
	server.sin_family = AF_INET;
	server.sin_port = htons((uint16_t)atoi(argv[optind + 1]));
	if (secure)
		client_tls_begin(random_state);
	run(seconds);
	report();
	if (secure)
		client_tls_report();
	return 0;
}
