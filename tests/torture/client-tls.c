/* SPDX-License-Identifier: MIT */
/* client-tls.c - see client-tls.h. */
#include <err.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "client-tls.h"
#include "content.h"

#define RECORD_HEAD 5u
#define RECORD_MAX 16640u /* of the body of a record: 16 KB and 256 bytes */
#define KEYS_MANY 64u	  /* changes at once, more than servers permit */
#define ALERT 21u
#define DATA 23u

enum act {
	KEYS, /* the client changes its key */
	HALF, /* sends close_notify, and reads on */
	HONEST_ACTS,
	KEYS_BOTH = HONEST_ACTS, /* and wants the server to change its own */
	KEYS_FLOOD,
	RENEGOTIATION, /* which TLS 1.2 has */
	GARBAGE,       /* a record that cannot be decrypted */
	JUNK,	       /* no record */
	LONG,	       /* a record that is too long */
	UNKNOWN,       /* a record of a type that does not exist */
	PART,	       /* a part of a record */
	CUT,	       /* and the end of the connection */
	ALERT_CLEAR,   /* an alert that is not encrypted */
	ALERT_FATAL,   /* an alert, as after garbage from the server */
	ACTS
};

static const char *const names[ACTS] = {
	"keys", "half", "keys-both", "keys-flood", "renegotiation", "garbage",	   "junk",
	"long", "type", "part",	     "cut",	   "alert-clear",   "alert-fatal",
};

/* One for each version and cipher: a session fits to one with both. */
struct kind {
	int version;
	const char *cipher;
	SSL_CTX *context;
	SSL_SESSION *session;
};

static struct kind kinds[] = {
	{.version = TLS1_3_VERSION, .cipher = "TLS_AES_128_GCM_SHA256"},
	{.version = TLS1_3_VERSION, .cipher = "TLS_AES_256_GCM_SHA384"},
	{.version = TLS1_3_VERSION, .cipher = "TLS_CHACHA20_POLY1305_SHA256"},
	{.version = TLS1_2_VERSION, .cipher = "ECDHE-ECDSA-AES128-GCM-SHA256"},
	{.version = TLS1_2_VERSION, .cipher = "ECDHE-ECDSA-CHACHA20-POLY1305"},
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static unsigned long long counts[ACTS], resumed;
static uint64_t random_state;

static uint64_t draw(uint64_t below)
{
	return content_next(&random_state) % below;
}

/* The new_session_cb of OpenSSL: keeps the newest. */
static int keep_session(SSL *ssl, SSL_SESSION *session)
{
	struct kind *kind = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));

	SSL_SESSION_free(kind->session);
	kind->session = session;
	return 1;
}

static void begin_kind(struct kind *kind)
{
	int good;

	kind->context = SSL_CTX_new(TLS_client_method());
	if (!kind->context)
		errx(2, "no TLS");
	good = kind->version == TLS1_3_VERSION
		       ? SSL_CTX_set_ciphersuites(kind->context, kind->cipher)
		       : SSL_CTX_set_cipher_list(kind->context, kind->cipher);
	if (!good || !SSL_CTX_set_min_proto_version(kind->context, kind->version) ||
	    !SSL_CTX_set_max_proto_version(kind->context, kind->version))
		errx(2, "no TLS with %s", kind->cipher);
	SSL_CTX_set_app_data(kind->context, kind);
	SSL_CTX_set_session_cache_mode(kind->context,
				       SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(kind->context, keep_session);
}

void client_tls_begin(uint64_t seed)
{
	random_state = seed;
	/* OpenSSL does not write with MSG_NOSIGNAL. */
	signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; i < KINDS; i++)
		begin_kind(&kinds[i]);
}

void client_tls_open(struct client_tls *tls, int fd)
{
	struct kind *kind = &kinds[draw(KINDS)];

	tls->ssl = SSL_new(kind->context);
	if (!tls->ssl || !SSL_set_fd(tls->ssl, fd))
		errx(2, "no memory");
	if (kind->session && draw(2))
		SSL_set_session(tls->ssl, kind->session);
	errno = 0;
	if (SSL_connect(tls->ssl) == 1) {
		resumed += (unsigned)SSL_session_reused(tls->ssl);
		return;
	}
	printf("client: WRONG: the handshake with %s: %s\n", kind->cipher,
	       errno ? strerror(errno) : "it ends");
	ERR_print_errors_fp(stdout);
	exit(1);
}

void client_tls_close(struct client_tls *tls, bool polite)
{
	if (!tls->ssl)
		return;
	if (polite)
		(void)SSL_shutdown(tls->ssl);
	SSL_free(tls->ssl);
	tls->ssl = NULL;
	ERR_clear_error();
}

/* The errno for a result that is no success. */
static int failure(const SSL *ssl, int result)
{
	int error = SSL_get_error(ssl, result), reason = ERR_GET_REASON(ERR_peek_error());

	if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
		return EAGAIN;
	/* The refusal of a renegotiation is an alert that has a reason of its own. */
	if (error == SSL_ERROR_SSL &&
	    (reason >= SSL_AD_REASON_OFFSET || reason == SSL_R_NO_RENEGOTIATION))
		return EPROTO;
	if (error == SSL_ERROR_SSL && reason != SSL_R_UNEXPECTED_EOF_WHILE_READING)
		return EBADMSG;
	/* A system call that failed has set errno. */
	return errno ? errno : ECONNRESET;
}

ssize_t client_tls_send(struct client_tls *tls, const void *data, size_t length)
{
	int result;

	if (!tls->ssl)
		return send(tls->fd, data, length, MSG_NOSIGNAL);
	errno = 0;
	result = SSL_write(tls->ssl, data, (int)length);
	if (result > 0)
		return result;
	errno = failure(tls->ssl, result);
	ERR_clear_error();
	return -1;
}

ssize_t client_tls_recv(struct client_tls *tls, void *data, size_t size)
{
	int result;

	if (!tls->ssl)
		return recv(tls->fd, data, size, 0);
	if (tls->deaf) {
		errno = ECONNRESET;
		return -1;
	}
	errno = 0;
	result = SSL_read(tls->ssl, data, (int)size);
	if (result > 0)
		return result;
	if (SSL_get_error(tls->ssl, result) == SSL_ERROR_ZERO_RETURN)
		return 0;
	errno = failure(tls->ssl, result);
	ERR_clear_error();
	return -1;
}

bool client_tls_pending(const struct client_tls *tls)
{
	return tls->ssl && SSL_pending(tls->ssl);
}

/* --- acts --------------------------------------------------------------------------- */

/* Random bytes past OpenSSL, below the head of a record of that length. */
static void send_record(const struct client_tls *tls, unsigned type, unsigned length, unsigned part)
{
	unsigned char record[RECORD_HEAD + RECORD_MAX] = {
		(unsigned char)type, 3, 3, (unsigned char)(length >> 8), (unsigned char)length};

	for (unsigned i = 0; i < part; i++)
		record[RECORD_HEAD + i] = (unsigned char)draw(256);
	(void)!send(tls->fd, record, RECORD_HEAD + part, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void change_keys(SSL *ssl, int type, unsigned times)
{
	while (times--)
		if (SSL_key_update(ssl, type) != 1 || SSL_do_handshake(ssl) != 1)
			break;
}

/* OpenSSL sends the alert after bytes that it cannot decrypt; it reads no others any more. */
static void send_alert(struct client_tls *tls)
{
	static unsigned char bytes[2 * RECORD_MAX];
	char data[16];

	SSL_set0_rbio(tls->ssl, BIO_new_mem_buf(bytes, sizeof(bytes)));
	while (SSL_read(tls->ssl, data, sizeof(data)) > 0)
		;
	tls->deaf = true;
}

static void send_wrong(const struct client_tls *tls, enum act act)
{
	unsigned length = 17 + (unsigned)draw(RECORD_MAX - 17);

	switch (act) {
	case GARBAGE:
		send_record(tls, DATA, length, length);
		break;
	case JUNK:
		send_record(tls, (unsigned)draw(256), (unsigned)draw(1u << 16), length);
		break;
	case LONG:
		send_record(tls, DATA, RECORD_MAX + 1 + (unsigned)draw(1000), length);
		break;
	case UNKNOWN:
		send_record(tls, 25 + (unsigned)draw(200), length, length);
		break;
	case ALERT_CLEAR:
		send_record(tls, ALERT, 2, 2);
		break;
	default:
		send_record(tls, DATA, length, (unsigned)draw(length));
	}
	if (act == CUT)
		(void)shutdown(tls->fd, SHUT_WR);
}

static void do_act(struct client_tls *tls, enum act act)
{
	switch (act) {
	case KEYS:
		change_keys(tls->ssl, SSL_KEY_UPDATE_NOT_REQUESTED, 1);
		break;
	case HALF:
		(void)SSL_shutdown(tls->ssl);
		break;
	case KEYS_BOTH:
		change_keys(tls->ssl, SSL_KEY_UPDATE_REQUESTED, 1);
		break;
	case KEYS_FLOOD:
		change_keys(tls->ssl, SSL_KEY_UPDATE_NOT_REQUESTED, KEYS_MANY);
		break;
	case RENEGOTIATION:
		if (SSL_renegotiate(tls->ssl) == 1)
			(void)SSL_do_handshake(tls->ssl);
		break;
	case ALERT_FATAL:
		send_alert(tls);
		break;
	default:
		send_wrong(tls, act);
	}
}

/* Whether the version has it. */
static bool has_act(const SSL *ssl, enum act act)
{
	bool new = SSL_version(ssl) == TLS1_3_VERSION;

	/* In TLS 1.2, the server ends the connection then (RFC 5246, section 7.2.1). */
	if (act <= KEYS_FLOOD)
		return new;
	return act != RENEGOTIATION || !new;
}

enum client_tls_act client_tls_act(struct client_tls *tls, bool hostile)
{
	enum act act = hostile ? HONEST_ACTS + (enum act)draw(ACTS - HONEST_ACTS)
			       : (enum act)draw(HONEST_ACTS);

	if (!has_act(tls->ssl, act)) {
		if (!hostile)
			return CLIENT_TLS_HONEST;
		act = GARBAGE;
	}
	do_act(tls, act);
	ERR_clear_error();
	counts[act]++;
	if (hostile)
		return CLIENT_TLS_HOSTILE;
	return act == HALF ? CLIENT_TLS_LAST : CLIENT_TLS_HONEST;
}

void client_tls_report(void)
{
	printf("client: resumed=%llu", resumed);
	for (unsigned i = 0; i < ACTS; i++)
		printf(" %s=%llu", names[i], counts[i]);
	printf("\n");
}
