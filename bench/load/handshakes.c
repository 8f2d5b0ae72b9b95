/* SPDX-License-Identifier: MIT */
/*
 * handshakes.c - measures handshakes: some connections at a time, each for one handshake of TLS
 * 1.3, full or resumed by a ticket, and one request.
 *
 * Everything that is agreed is checked, since a server that resumes nothing, or chooses another
 * cipher, is measured for something else; of groups the client offers only one.  A connection ends in order: the client says that it
 * sends nothing more, and waits until the server has closed.  The first error ends the program.
 * One thread; it prints one line.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "client-answer.h"
#include "client-histogram.h"

#define SECOND 1000000u
#define EVENTS 64
#define CONNECTIONS_MAX 1000u
#define TIMEOUT_MS 10000 /* without any event */
#define REQUEST_MAX 1024
#define BUFFER 16384
#define UNKNOWN_GROUP 3 /* exit status */

static const char usage[] =
	"usage: handshakes [OPTION]... ADDRESS:PORT PATH BYTES\n"
	"  --connections N  at a time (1)\n"
	"  --seconds S      begin none later (1)\n"
	"  --requests N     nor more than so many\n"
	"  --resume         by the latest ticket; only the first handshake is full\n"
	"  --cipher NAME    the only one that the client offers\n"
	"                   (TLS_AES_128_GCM_SHA256)\n"
	"  --group NAME     of the key exchange, the only one that it offers (X25519)\n"
	"BYTES is the length of the body.  Prints one line of NAME=NUMBER; times in\n"
	"microseconds, from the start of connect() to the end of the response.  Exit status\n"
	"0: everything was as it should be; 3: the library does not know the group.\n";

enum state {
	SHAKING,
	ANSWERING,
	ENDING, /* until the server has closed */
};

struct connection {
	int fd;
	SSL *ssl;
	enum state state;
	struct answer answer;
	uint64_t begun;
};

static struct {
	struct sockaddr_in target;
	char request[REQUEST_MAX];
	int request_length;
	uint64_t bytes;
	uint64_t connections, requests, duration;
	bool resume;
	const char *cipher, *group;
} settings = {.connections = 1,
	      .requests = UINT64_MAX,
	      .duration = SECOND,
	      .cipher = "TLS_AES_128_GCM_SHA256",
	      .group = "X25519"};

static struct {
	SSL_CTX *context;
	SSL_SESSION *session; /* the latest; NULL: none yet */
	int epoll;
	uint64_t begun, begin_until, opened, active;
	uint64_t finished; /* responses */
	struct latency latency;
} load;

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * SECOND + (uint64_t)time.tv_nsec / 1000;
}

__attribute__((noreturn, format(printf, 1, 2))) static void fail(const char *format, ...)
{
	va_list arguments;
	unsigned long code = ERR_peek_last_error();

	fputs("handshakes: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fprintf(stderr, "%s%s\n", code ? ": " : "", code ? ERR_reason_error_string(code) : "");
	exit(1);
}

/* --- one connection ------------------------------------------------------------------------- */

/* OpenSSL marks a session as used; others that were opened at the same time need it as well. */
static bool resume_by(SSL *ssl, SSL_SESSION *session)
{
	SSL_SESSION *copy = SSL_SESSION_dup(session);
	bool good = copy && SSL_set_session(ssl, copy);

	SSL_SESSION_free(copy);
	return good;
}

static void open_one(struct connection *connection)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
				    .data.ptr = connection};
	const int on = 1;

	connection->begun = now();
	connection->state = SHAKING;
	answer_begin(&connection->answer);
	connection->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	connection->ssl = SSL_new(load.context);
	if (connection->fd < 0 || !connection->ssl)
		fail("connection %llu: %s", (unsigned long long)load.opened, strerror(errno));
	(void)setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (!SSL_set_fd(connection->ssl, connection->fd) ||
	    (load.session && !resume_by(connection->ssl, load.session)))
		fail("connection %llu", (unsigned long long)load.opened);
	if ((connect(connection->fd, (struct sockaddr *)&settings.target, sizeof(settings.target)) <
		     0 &&
	     errno != EINPROGRESS) ||
	    epoll_ctl(load.epoll, EPOLL_CTL_ADD, connection->fd, &event) < 0)
		fail("connect: %s", strerror(errno));
	load.opened++;
	load.active++;
}

static void close_one(struct connection *connection)
{
	close(connection->fd);
	SSL_free(connection->ssl);
	connection->ssl = NULL;
	load.active--;
	/* The first one brings the ticket for all others. */
	if (settings.resume && !load.session)
		fail("the server gave no ticket");
}

/* Whether OpenSSL only waits for the socket. */
static bool waits(struct connection *connection, int done)
{
	int error = SSL_get_error(connection->ssl, done);

	return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
}

static void check_agreed(struct connection *connection)
{
	const char *cipher = SSL_get_cipher_name(connection->ssl);
	bool resumed = SSL_session_reused(connection->ssl);

	if (strcmp(cipher, settings.cipher) != 0)
		fail("the server chose the cipher %s, not %s", cipher, settings.cipher);
	if (resumed != (settings.resume && load.opened > 1))
		fail("the server %s", resumed ? "resumed a session" : "resumed no session");
}

/* Returns false while the handshake is not over. */
static bool shake(struct connection *connection)
{
	size_t sent;
	int done = SSL_connect(connection->ssl);

	if (done != 1) {
		if (!waits(connection, done))
			fail("handshake");
		return false;
	}
	check_agreed(connection);
	/* A new connection has space for it. */
	if (SSL_write_ex(connection->ssl, settings.request, (size_t)settings.request_length,
			 &sent) != 1)
		fail("request");
	connection->state = ANSWERING;
	return true;
}

static void finish(struct connection *connection)
{
	const struct answer *answer = &connection->answer;

	if (answer->status != 200 || answer->body != settings.bytes)
		fail("status %u with %llu bytes, not %llu", answer->status,
		     (unsigned long long)answer->body, (unsigned long long)settings.bytes);
	if (!answer_keeps(answer))
		fail("the server does not keep the connection");
	load.finished++;
	latency_record(&load.latency, now() - connection->begun);
	(void)SSL_shutdown(connection->ssl);
	(void)shutdown(connection->fd, SHUT_WR);
	connection->state = ENDING;
}

/* Returns false while the response is not complete. */
static bool receive(struct connection *connection)
{
	struct answer *answer = &connection->answer;

	while (answer->state != ANSWER_DONE) {
		static char data[BUFFER];
		size_t got;
		int done = SSL_read_ex(connection->ssl, data, sizeof(data), &got);

		if (done != 1) {
			if (!waits(connection, done))
				fail("the response ended early");
			return false;
		}
		if (answer_feed(answer, data, got) < got || answer->state == ANSWER_BAD)
			fail("the response is not one of HTTP");
	}
	finish(connection);
	return true;
}

/* Returns false while the server has not closed. */
static bool await_end(struct connection *connection)
{
	char data[BUFFER];
	ssize_t got;

	do {
		got = recv(connection->fd, data, sizeof(data), MSG_DONTWAIT);
	} while (got > 0);
	return got == 0 || errno != EAGAIN;
}

/* Returns true when the connection is over. */
static bool go_on(struct connection *connection)
{
	if (connection->state == SHAKING && !shake(connection))
		return false;
	if (connection->state == ANSWERING && !receive(connection))
		return false;
	return await_end(connection);
}

/* --- all of them ---------------------------------------------------------------------------- */

static bool may_open(void)
{
	return load.opened < settings.requests && now() < load.begin_until;
}

static void await_events(void)
{
	struct epoll_event events[EVENTS];
	int count = epoll_wait(load.epoll, events, EVENTS, TIMEOUT_MS);

	if (count == 0)
		fail("nothing came from the server in %d ms", TIMEOUT_MS);
	if (count < 0 && errno != EINTR)
		fail("epoll: %s", strerror(errno));
	for (int i = 0; i < count; i++) {
		struct connection *connection = events[i].data.ptr;

		if (!go_on(connection))
			continue;
		close_one(connection);
		if (may_open())
			open_one(connection);
	}
}

static void run(void)
{
	static struct connection connections[CONNECTIONS_MAX];

	load.begun = now();
	load.begin_until = load.begun + settings.duration;
	if (settings.resume) {
		open_one(&connections[0]);
		while (!load.finished)
			await_events();
	}
	for (uint64_t i = 0; i < settings.connections; i++)
		if (!connections[i].ssl && may_open())
			open_one(&connections[i]);
	while (load.active)
		await_events();
}

static int new_session(SSL *ssl, SSL_SESSION *session)
{
	(void)ssl;
	SSL_SESSION_free(load.session);
	load.session = session;
	return 1; /* this program frees it */
}

static bool set_up(void)
{
	SSL_CTX *context = SSL_CTX_new(TLS_client_method());

	load.context = context;
	load.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (!context || load.epoll < 0)
		return false;
	if (settings.resume) {
		SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT |
								SSL_SESS_CACHE_NO_INTERNAL_STORE);
		SSL_CTX_sess_set_new_cb(context, new_session);
	}
	return SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) &&
	       SSL_CTX_set_ciphersuites(context, settings.cipher);
}

static void choose_group(void)
{
	if (SSL_CTX_set1_groups_list(load.context, settings.group))
		return;
	fprintf(stderr, "handshakes: OpenSSL %s knows no group %s\n",
		OpenSSL_version(OPENSSL_VERSION_STRING), settings.group);
	exit(UNKNOWN_GROUP);
}

/* --- the command line ----------------------------------------------------------------------- */

static bool read_number(const char *text, uint64_t most, uint64_t *value)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*value = strtoull(text, &end, 10);
	return !errno && !*end && *value <= most;
}

static bool read_target(const char *text)
{
	char address[INET_ADDRSTRLEN] = "";
	const char *colon = strchr(text, ':');
	uint64_t port;

	if (!colon || (size_t)(colon - text) >= sizeof(address) ||
	    !read_number(colon + 1, 65535, &port))
		return false;
	memcpy(address, text, (size_t)(colon - text));
	settings.target.sin_family = AF_INET;
	settings.target.sin_port = htons((uint16_t)port);
	return inet_pton(AF_INET, address, &settings.target.sin_addr) == 1;
}

static bool read_option(int name, const char *text)
{
	uint64_t seconds;

	switch (name) {
	case 'c':
		return read_number(text, CONNECTIONS_MAX, &settings.connections) &&
		       settings.connections > 0;
	case 's':
		if (!read_number(text, 3600, &seconds))
			return false;
		settings.duration = seconds * SECOND;
		return true;
	case 'n':
		return read_number(text, UINT64_MAX, &settings.requests);
	case 'r':
		settings.resume = true;
		return true;
	case 'C':
		settings.cipher = text;
		return true;
	case 'g':
		settings.group = text;
		return true;
	default:
		return false;
	}
}

static bool read_command(int argc, char **argv)
{
	static const struct option names[] = {
		{"connections", required_argument, NULL, 'c'},
		{"seconds", required_argument, NULL, 's'},
		{"requests", required_argument, NULL, 'n'},
		{"resume", no_argument, NULL, 'r'},
		{"cipher", required_argument, NULL, 'C'},
		{"group", required_argument, NULL, 'g'},
		{NULL, 0, NULL, 0},
	};
	int name;

	while ((name = getopt_long(argc, argv, "", names, NULL)) >= 0)
		if (!read_option(name, optarg))
			return false;
	if (argc - optind != 3 || !read_target(argv[optind]) ||
	    !read_number(argv[optind + 2], UINT64_MAX, &settings.bytes))
		return false;
	settings.request_length =
		snprintf(settings.request, sizeof(settings.request),
			 "GET %s HTTP/1.1\r\nHost: bench\r\n\r\n", argv[optind + 1]);
	return settings.request_length < (int)sizeof(settings.request);
}

int main(int argc, char **argv)
{
	if (!read_command(argc, argv)) {
		fputs(usage, stderr);
		return 2;
	}
	if (!set_up())
		fail("OpenSSL");
	choose_group();
	run();
	printf("bench requests=%llu bytes=%llu duration=%llu p50=%llu p99=%llu\n",
	       (unsigned long long)load.finished,
	       (unsigned long long)(load.finished * settings.bytes),
	       (unsigned long long)(now() - load.begun),
	       (unsigned long long)latency_quantile(&load.latency, 0.5),
	       (unsigned long long)latency_quantile(&load.latency, 0.99));
	SSL_SESSION_free(load.session);
	SSL_CTX_free(load.context);
	return 0;
}
