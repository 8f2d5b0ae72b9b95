/* SPDX-License-Identifier: MIT */
/*
 * null-cipher.c - see null-cipher.h.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/bio.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/err.h>

#include "null-cipher.h"

#define BACKLOG 1024
#define EVENTS 256
#define BODY_MAX ((size_t)64 << 20)
#define OUTPUT_MAX (NULL_BURST + (40 << 10)) /* with the last records; or a handshake */
#define BUFFER (16 << 10)

static struct {
	const struct null_program *program;
	SSL_CTX *context;
	BIO_METHOD *method;
} server;

/* Of the connection that is served; empty between two of them. */
static char output[OUTPUT_MAX];
static size_t output_length;

/* --- the BIO -------------------------------------------------------------------------------- */

static int bio_read(BIO *bio, char *data, size_t room, size_t *got)
{
	struct null_connection *connection = BIO_get_data(bio);
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

size_t null_unsent(void)
{
	return output_length;
}

int null_flush(struct null_connection *connection)
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

bool null_keep(struct null_connection *connection)
{
	char *rest = output_length ? realloc(connection->rest, connection->rest_to + output_length)
				   : connection->rest;

	if (!rest)
		return false;
	memcpy(rest + connection->rest_to, output, output_length);
	connection->rest = rest;
	connection->rest_to += output_length;
	output_length = 0;
	return true;
}

/* --- a connection --------------------------------------------------------------------------- */

static void end(struct null_connection *connection)
{
	server.program->close(connection);
	ERR_clear_error();
	output_length = 0;
	close(connection->fd);
	SSL_free(connection->ssl);
	free(connection->rest);
	free(connection);
}

/* Whether OpenSSL only waits for more bytes. */
static bool waits(struct null_connection *connection, int done)
{
	return SSL_get_error(connection->ssl, done) == SSL_ERROR_WANT_READ;
}

/* Whether there may be more without asking the kernel in vain. */
static bool has_more(struct null_connection *connection)
{
	return !connection->drained || SSL_has_pending(connection->ssl);
}

/* Reads all that has come; returns 1: continue, 0: wait, -1: the end. */
static int read_all(struct null_connection *connection)
{
	static char buffer[BUFFER];
	size_t got;
	int done;

	do {
		done = SSL_read_ex(connection->ssl, buffer, sizeof(buffer), &got);
		if (done != 1)
			return waits(connection, done) ? null_flush(connection) : -1;
		if (!server.program->take(connection, buffer, got))
			return -1;
	} while (has_more(connection));
	return 1;
}

/* Continues until the socket has no data, or accepts none.  Returns false at the end. */
static bool go_on(struct null_connection *connection)
{
	int done;

	if (connection->rest && (done = null_flush(connection)) != 1)
		return done == 0;
	if (!connection->shaken) {
		done = SSL_accept(connection->ssl);
		if (done != 1 && !waits(connection, done))
			return false;
		connection->shaken = done == 1;
		if (null_flush(connection) != 1)
			return false;
		if (!connection->shaken)
			return true;
	}
	for (connection->drained = false;;) {
		done = server.program->answer(connection);
		if (done != 1)
			return done == 0;
		if (!has_more(connection))
			return true;
		done = read_all(connection);
		if (done != 1)
			return done == 0;
	}
}

static void begin(int epoll, int fd)
{
	const int on = 1;
	struct null_connection *connection = calloc(1, server.program->connection);
	struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
				    .data.ptr = connection};
	BIO *bio = BIO_new(server.method);

	if (!connection || !bio) {
		free(connection);
		BIO_free(bio);
		close(fd);
		return;
	}
	connection->fd = fd;
	connection->ssl = SSL_new(server.context);
	if (!connection->ssl || !server.program->open(connection)) {
		BIO_free(bio);
		end(connection);
		return;
	}
	BIO_set_data(bio, connection);
	BIO_set_init(bio, 1);
	SSL_set_bio(connection->ssl, bio, bio);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0)
		end(connection);
}

/* --- the server ----------------------------------------------------------------------------- */

static int choose(SSL *ssl, const unsigned char **chosen, unsigned char *length,
		  const unsigned char *offered, unsigned offered_length, void *context)
{
	const struct null_program *program = context;
	size_t wanted = strlen(program->protocol);

	(void)ssl;
	for (unsigned i = 0; i < offered_length; i += offered[i] + 1u)
		if (offered[i] == wanted && wanted < offered_length - i &&
		    memcmp(offered + i + 1, program->protocol, wanted) == 0) {
			*chosen = offered + i + 1;
			*length = (unsigned char)wanted;
			return SSL_TLSEXT_ERR_OK;
		}
	return SSL_TLSEXT_ERR_ALERT_FATAL;
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
	if (server.program->protocol)
		SSL_CTX_set_alpn_select_cb(context, choose, (void *)(uintptr_t)server.program);
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
			struct null_connection *connection = events[i].data.ptr;
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

int null_main(const struct null_program *program, int argc, char **argv)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
	int listener, epoll;
	unsigned count;
	size_t size;

	server.program = program;
	if (argc != 5 || !(size = strtoul(argv[2], NULL, 10)) || size > BODY_MAX ||
	    !(count = (unsigned)strtoul(argv[3], NULL, 10))) {
		fprintf(stderr, "usage: %s PORT SIZE COUNT PEM\n", program->name);
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	if (!set_up(argv[4])) {
		ERR_print_errors_fp(stderr);
		return 1;
	}
	listener = listen_on((unsigned short)atoi(argv[1]));
	epoll = epoll_create1(EPOLL_CLOEXEC);
	if (!program->fill(size, count) || listener < 0 || epoll < 0 ||
	    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event) < 0) {
		perror(program->name);
		return 1;
	}
	printf("%s: ready\n", program->name);
	fflush(stdout);
	serve(listener, epoll);
	perror(program->name);
	return 1;
}
