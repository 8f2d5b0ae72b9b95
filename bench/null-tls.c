/* SPDX-License-Identifier: MIT */
/*
 * null-tls.c - the limit of "bench tls": no server, just what any that speaks TLS by OpenSSL has
 * to do.
 *
 * One process and one thread, epoll: the handshake, the end of each request, and a response from
 * memory, header and body in one piece.  OpenSSL reads and writes through a BIO that asks the
 * kernel as seldom as possible: one recv() for a request, and one send() for several records.
 * No parsing, no names, no limits, no timeouts: not for a network of others.
 *
 * Usage: null-tls PORT SIZE COUNT PEM
 *   COUNT  bodies that connections go round, so that the CPU's caches hold no more of them than
 *          of a server's files
 *   PEM    file with certificate and key
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

#define BACKLOG 1024
#define EVENTS 256
#define BODY_MAX ((size_t)64 << 20)
#define HEAD_MAX 256
#define BURST ((size_t)64 << 10)       /* bytes that are encrypted before they are sent */
#define OUTPUT_MAX (BURST + (8 << 10)) /* with the headers of records; or a handshake */
#define BUFFER (16 << 10)

struct connection {
	int fd;
	SSL *ssl;
	bool shaken;	/* the handshake is over */
	bool drained;	/* the last recv() has emptied the socket */
	unsigned ended; /* received bytes of the empty line after a head */
	unsigned owed;	/* pending responses */
	unsigned turn;	/* the next record */
	size_t sent;	/* of the response in flight */
	char *rest;	/* what the socket did not take; NULL: nothing */
	size_t rest_at, rest_to;
};

static struct {
	SSL_CTX *context;
	BIO_METHOD *method;
	const char *records; /* a record is head and body, one after the other */
	size_t length;	     /* of a record */
	unsigned count;
} server;

/* Of the connection that is served; empty between two of them. */
static char output[OUTPUT_MAX];
static size_t output_length;

/* --- the BIO -------------------------------------------------------------------------------- */

static int bio_read(BIO *bio, char *data, size_t room, size_t *got)
{
	struct connection *connection = BIO_get_data(bio);
	ssize_t done = recv(connection->fd, data, room, MSG_DONTWAIT);

	BIO_clear_retry_flags(bio);
	connection->drained = done < (ssize_t)room;
	if (done < 0 && errno == EAGAIN)
		BIO_set_retry_read(bio);
	if (done <= 0)
		return 0;
	*got = (size_t)done;
	return 1;
}

static int bio_write(BIO *bio, const char *data, size_t length, size_t *written)
{
	BIO_clear_retry_flags(bio);
	if (length > sizeof(output) - output_length)
		return 0;
	memcpy(output + output_length, data, length);
	output_length += length;
	*written = length;
	return 1;
}

static long bio_ctrl(BIO *bio, int command, long number, void *pointer)
{
	(void)bio;
	(void)number;
	(void)pointer;
	return command == BIO_CTRL_FLUSH;
}

static BIO_METHOD *make_method(void)
{
	BIO_METHOD *method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "null");

	if (method && BIO_meth_set_read_ex(method, bio_read) &&
	    BIO_meth_set_write_ex(method, bio_write) && BIO_meth_set_ctrl(method, bio_ctrl))
		return method;
	BIO_meth_free(method);
	return NULL;
}

/* Sends the output; returns 1: all, 0: the socket is full, -1: it is broken. */
static int flush(struct connection *connection)
{
	const char *from = connection->rest ? connection->rest + connection->rest_at : output;
	size_t length =
		connection->rest ? connection->rest_to - connection->rest_at : output_length;
	ssize_t sent = length ? send(connection->fd, from, length, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;

	if (sent < 0 && errno != EAGAIN)
		return -1;
	if (sent < 0)
		sent = 0;
	if (connection->rest) {
		connection->rest_at += (size_t)sent;
		if (connection->rest_at < connection->rest_to)
			return 0;
		free(connection->rest);
		connection->rest = NULL;
		return 1;
	}
	output_length = 0;
	if ((size_t)sent == length)
		return 1;
	connection->rest_at = 0;
	connection->rest_to = length - (size_t)sent;
	connection->rest = malloc(connection->rest_to);
	if (!connection->rest)
		return -1;
	memcpy(connection->rest, from + sent, connection->rest_to);
	return 0;
}

/* --- a connection --------------------------------------------------------------------------- */

static void end(struct connection *connection)
{
	ERR_clear_error();
	output_length = 0;
	close(connection->fd);
	SSL_free(connection->ssl);
	free(connection->rest);
	free(connection);
}

/* Counts the ends of heads in received bytes. */
static void take(struct connection *connection, const char *data, size_t length)
{
	static const char empty[] = "\r\n\r\n";

	for (size_t i = 0; i < length; i++) {
		if (data[i] == empty[connection->ended])
			connection->ended++;
		else
			connection->ended = data[i] == empty[0];
		if (connection->ended == 4) {
			connection->owed++;
			connection->ended = 0;
		}
	}
}

/* Sends pending responses; returns like flush(). */
static int answer(struct connection *connection)
{
	int flushed = 1;

	while (connection->owed && flushed == 1) {
		const char *record = server.records + connection->turn * server.length;
		size_t left = server.length - connection->sent, done;

		if (SSL_write_ex(connection->ssl, record + connection->sent,
				 left < BURST ? left : BURST, &done) != 1)
			return -1;
		flushed = flush(connection);
		connection->sent += done;
		if (connection->sent < server.length)
			continue;
		connection->sent = 0;
		connection->owed--;
		connection->turn = (connection->turn + 1) % server.count;
	}
	return flushed;
}

/* Whether OpenSSL only waits for more bytes. */
static bool waits(struct connection *connection, int done)
{
	return SSL_get_error(connection->ssl, done) == SSL_ERROR_WANT_READ;
}

/* Continues until the socket has no data, or accepts none.  Returns false at the end. */
static bool go_on(struct connection *connection)
{
	static char buffer[BUFFER];
	size_t got;
	int done;

	if (connection->rest && (done = flush(connection)) != 1)
		return done == 0;
	if (!connection->shaken) {
		done = SSL_accept(connection->ssl);
		if (done != 1 && !waits(connection, done))
			return false;
		connection->shaken = done == 1;
		if (flush(connection) != 1)
			return false;
		if (!connection->shaken)
			return true;
	}
	for (connection->drained = false;;) {
		done = answer(connection);
		if (done != 1)
			return done == 0;
		/* Without a need to ask the kernel for more there is no need to ask OpenSSL. */
		if (connection->drained && !SSL_has_pending(connection->ssl))
			return true;
		done = SSL_read_ex(connection->ssl, buffer, sizeof(buffer), &got);
		if (done != 1)
			return waits(connection, done) && flush(connection) >= 0;
		take(connection, buffer, got);
	}
}

static void begin(int epoll, int fd)
{
	static unsigned turn;
	const int on = 1;
	struct connection *connection = calloc(1, sizeof(*connection));
	struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
				    .data.ptr = connection};
	BIO *bio = BIO_new(server.method);

	if (connection)
		connection->ssl = SSL_new(server.context);
	if (!connection || !connection->ssl || !bio) {
		if (connection)
			SSL_free(connection->ssl);
		free(connection);
		BIO_free(bio);
		close(fd);
		return;
	}
	connection->fd = fd;
	/* Each starts at a different body, as clients do. */
	connection->turn = turn++ % server.count;
	BIO_set_data(bio, connection);
	BIO_set_init(bio, 1);
	SSL_set_bio(connection->ssl, bio, bio);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0)
		end(connection);
}

/* --- the server ----------------------------------------------------------------------------- */

static bool fill(size_t size)
{
	char head[HEAD_MAX];
	char *records;
	int length = snprintf(head, sizeof(head),
			      "HTTP/1.1 200 OK\r\nServer: null\r\n"
			      "Content-Type: application/octet-stream\r\n"
			      "Content-Length: %zu\r\n\r\n",
			      size);

	server.length = (size_t)length + size;
	records = malloc(server.length * server.count);
	if (!records)
		return false;
	for (unsigned i = 0; i < server.count; i++) {
		memcpy(records + i * server.length, head, (size_t)length);
		memset(records + i * server.length + length, 'a' + (int)(i % 26), size);
	}
	server.records = records;
	return true;
}

static bool set_up(const char *pem)
{
	SSL_CTX *context = SSL_CTX_new(TLS_server_method());

	server.context = context;
	server.method = make_method();
	if (!context || !server.method)
		return false;
	/* Tickets only, as servers with several processes use them. */
	SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
	/* Otherwise a record takes two calls of recv(). */
	SSL_CTX_set_read_ahead(context, 1);
	return SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) &&
	       SSL_CTX_use_certificate_chain_file(context, pem) == 1 &&
	       SSL_CTX_use_PrivateKey_file(context, pem, SSL_FILETYPE_PEM) == 1;
}

static int listen_on(unsigned short port)
{
	const int on = 1;
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons(port),
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, BACKLOG) < 0)
		return -1;
	return fd;
}

static void serve(int listener, int epoll)
{
	struct epoll_event events[EVENTS];
	int count = 0;

	while (count >= 0 || errno == EINTR) {
		count = epoll_wait(epoll, events, EVENTS, -1);
		for (int i = 0; i < count; i++) {
			struct connection *connection = events[i].data.ptr;
			int fd;

			if (connection) {
				if (!go_on(connection))
					end(connection);
				continue;
			}
			while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >=
			       0)
				begin(epoll, fd);
		}
	}
}

int main(int argc, char **argv)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
	int listener, epoll;
	size_t size;

	if (argc != 5 || (size = strtoul(argv[2], NULL, 10)) > BODY_MAX ||
	    !(server.count = (unsigned)strtoul(argv[3], NULL, 10))) {
		fputs("usage: null-tls PORT SIZE COUNT PEM\n", stderr);
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	if (!set_up(argv[4])) {
		ERR_print_errors_fp(stderr);
		return 1;
	}
	listener = listen_on((unsigned short)atoi(argv[1]));
	epoll = epoll_create1(EPOLL_CLOEXEC);
	if (!fill(size) || listener < 0 || epoll < 0 ||
	    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event) < 0) {
		perror("null-tls");
		return 1;
	}
	printf("null-tls: ready\n");
	fflush(stdout);
	serve(listener, epoll);
	perror("null-tls: epoll_wait");
	return 1;
}
