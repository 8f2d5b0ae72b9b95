/* SPDX-License-Identifier: MIT */
/*
 * honest-tls.c - the TLS of honest clients, by OpenSSL.
 */
#include <err.h>
#include <errno.h>
#include <stddef.h>
#include <sys/socket.h>

#include <openssl/err.h>

#include "honest-tls.h"

static SSL_CTX *context;

void tls_begin(const char *authority)
{
	context = SSL_CTX_new(TLS_client_method());
	if (!context || !SSL_CTX_load_verify_locations(context, authority, NULL))
		errx(1, "%s: cannot be used", authority);
	SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
}

SSL *tls_enter(int fd)
{
	SSL *ssl = SSL_new(context);

	if (!ssl || !SSL_set_fd(ssl, fd)) {
		SSL_free(ssl);
		return NULL;
	}
	SSL_set_connect_state(ssl);
	return ssl;
}

void tls_leave(SSL *ssl)
{
	if (ssl && SSL_is_init_finished(ssl))
		(void)SSL_shutdown(ssl);
	SSL_free(ssl);
	ERR_clear_error();
}

/* Returns -1 with the errno for a result that is not positive: EAGAIN to wait. */
static int failed(SSL *ssl, int result)
{
	int error;

	/* A system call that failed has set errno; an end below TLS has not. */
	if (!errno)
		errno = ECONNRESET;
	error = SSL_get_error(ssl, result);
	if (error == SSL_ERROR_WANT_READ)
		errno = EAGAIN;
	else if (error == SSL_ERROR_SSL)
		errno = EPROTO;
	ERR_clear_error();
	return -1;
}

int tls_shake(SSL *ssl)
{
	int result;

	errno = 0;
	result = SSL_do_handshake(ssl);
	if (result == 1)
		return 1;
	(void)failed(ssl, result);
	return errno == EAGAIN ? 0 : -1;
}

ssize_t tls_send(SSL *ssl, int fd, const void *data, size_t length)
{
	int result;

	if (!ssl)
		return send(fd, data, length, MSG_NOSIGNAL);
	errno = 0;
	result = SSL_write(ssl, data, (int)length);
	return result > 0 ? result : failed(ssl, result);
}

ssize_t tls_recv(SSL *ssl, int fd, void *data, size_t size)
{
	size_t have = 0;
	int result = 0;

	if (!ssl)
		return recv(fd, data, size, MSG_DONTWAIT);
	while (have < size) {
		errno = 0;
		result = SSL_read(ssl, (char *)data + have, (int)(size - have));
		if (result <= 0)
			break;
		have += (size_t)result;
	}
	if (have)
		return (ssize_t)have;
	return SSL_get_error(ssl, result) == SSL_ERROR_ZERO_RETURN ? 0 : failed(ssl, result);
}
