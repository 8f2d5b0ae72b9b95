/* SPDX-License-Identifier: MIT */
/*
 * tls-openssl-channel.c - a channel by OpenSSL, whose BIO is the memory that the caller feeds and
 * the output that the caller sends.
 *
 * After a handshake of TLS 1.3 OpenSSL has nothing to do any more but to encrypt and decrypt: with
 * a struct tls_records (tls-records.h), the channel has that done by it, and frees the rest of the
 * handshake's memory.
 *
 * OpenSSL gives the kernel the sending key while it writes to a socket.  Where the kernel can
 * encrypt, the handshake is therefore written to the socket by OpenSSL; if the kernel did not take
 * the key (it may not know the cipher), the memory takes the socket's place.
 *
 * The kernel keeps that key: before Linux 6.14 it takes no other, and OpenSSL 3.0 gives it none.
 * A client may want a new one before any further data (RFC 8446, section 4.6.3).  OpenSSL would
 * change it at its next write, which never comes, so that the kernel would keep the old one.
 * The connection ends instead, with an alert.
 */
#include <errno.h>
#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>
#include <sys/uio.h>

#include "tls/tls-kernel.h"
#include "tls/tls-openssl-internal.h"
#include "tls/tls-output.h"
#include "tls/tls-records.h"
#include "tls/tls.h"

struct tls_channel {
	SSL *ssl; /* NULL: the handshake is over, and the stream has the rest */
	const struct tls_records *records; /* NULL: OpenSSL does all */
	struct tls_stream *stream; /* of these; NULL: OpenSSL, or the kernel, makes the records */
	const struct tls_chooser *chooser;
	int socket;	 /* -1: the kernel never encrypts */
	bool kernel;	 /* the kernel encrypts */
	bool key_wanted; /* by the client, where the kernel cannot change it */
	struct tls_agreed agreed;
	struct tls_secrets *secrets; /* of the handshake; NULL: it is over, or there is no memory */
	const char *input;
	size_t input_length;
	struct tls_output output;
	unsigned long error; /* of OpenSSL; 0: none */
	char *variables;     /* for programs; NULL: not made yet */
	size_t variables_length;
};

/* --- the BIO --------------------------------------------------------------------------- */

static BIO_METHOD *method;

static int take_input(BIO *bio, char *data, int room)
{
	struct tls_channel *channel = BIO_get_data(bio);
	size_t length = channel->input_length;

	BIO_clear_retry_flags(bio);
	if (length == 0) {
		BIO_set_retry_read(bio);
		return -1;
	}
	if (length > (size_t)room)
		length = (size_t)room;
	memcpy(data, channel->input, length);
	channel->input += length;
	channel->input_length -= length;
	return (int)length;
}

static int add_output(BIO *bio, const char *data, int length)
{
	struct tls_channel *channel = BIO_get_data(bio);
	unsigned char *room = tls_output_room(&channel->output, (size_t)length);

	BIO_clear_retry_flags(bio);
	if (!room)
		return -1;
	memcpy(room, data, (size_t)length);
	channel->output.to += (size_t)length;
	return length;
}

/* OpenSSL flushes at the end of each message. */
static long control(BIO *bio, int command, long number, void *pointer)
{
	(void)bio;
	(void)number;
	(void)pointer;
	return command == BIO_CTRL_FLUSH;
}

static int created(BIO *bio)
{
	BIO_set_init(bio, 1);
	return 1;
}

/* Lasts as long as the process. */
static void make_method(void)
{
	int type = BIO_get_new_index();
	BIO_METHOD *made = BIO_meth_new(type | BIO_TYPE_SOURCE_SINK, "channel");

	if (made && BIO_meth_set_read(made, take_input) && BIO_meth_set_write(made, add_output) &&
	    BIO_meth_set_ctrl(made, control) && BIO_meth_set_create(made, created))
		method = made;
	else
		BIO_meth_free(made);
}

static BIO *memory_of(struct tls_channel *channel)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	BIO *bio = NULL;

	pthread_once(&once, make_method);
	if (method)
		bio = BIO_new(method);
	if (bio)
		BIO_set_data(bio, channel);
	return bio;
}

/* --- the name that the client wants ---------------------------------------------------------- */

static bool use_identity(SSL *ssl, const struct tls_identity *identity)
{
	struct tls_channel *channel = SSL_get_app_data(ssl);

	if (!SSL_set_SSL_CTX(ssl, identity->context))
		return false;
	/* Of these, the call above changes nothing. */
	SSL_set_verify(ssl, SSL_CTX_get_verify_mode(identity->context), NULL);
	(void)SSL_set_min_proto_version(ssl, (int)SSL_CTX_get_min_proto_version(identity->context));
	if (!identity->tickets) {
		SSL_set_options(ssl, SSL_OP_NO_TICKET);
		(void)SSL_set_num_tickets(ssl, 0);
	}
	channel->agreed.policy = identity->policy;
	return true;
}

/* Without an answer, the client gets no protocol in common with the identity of its name. */
static bool use_answer(SSL *ssl, const char *name, size_t length)
{
	struct tls_channel *channel = SSL_get_app_data(ssl);
	struct tls_identity *identity = NULL;

	if (channel->chooser->answer)
		identity = channel->chooser->answer(channel->chooser, name, length);
	if (!identity)
		return false;
	channel->agreed.challenge = use_identity(ssl, identity);
	/* The handshake holds the context. */
	tls_library->identity_close(identity);
	return channel->agreed.challenge;
}

int openssl_choose(SSL *ssl, int *alert, void *context)
{
	struct tls_channel *channel = SSL_get_app_data(ssl);
	const struct tls_identity *identity;
	const char *name = NULL;
	size_t length = 0;

	(void)context;
	if (!openssl_hello_name(ssl, &name, &length))
		return SSL_CLIENT_HELLO_SUCCESS;
	if (openssl_hello_wants_answer(ssl) && use_answer(ssl, name, length))
		return SSL_CLIENT_HELLO_SUCCESS;
	identity = channel->chooser->choose(channel->chooser, name, length);
	if (identity && use_identity(ssl, identity))
		return SSL_CLIENT_HELLO_SUCCESS;
	*alert = SSL_AD_INTERNAL_ERROR;
	return SSL_CLIENT_HELLO_ERROR;
}

/* --- opening and closing --------------------------------------------------------------------- */

static void drop_secrets(struct tls_channel *channel)
{
	if (channel->records)
		channel->records->drop(channel->secrets);
	channel->secrets = NULL;
}

static bool connect_bios(struct tls_channel *channel, int socket)
{
	BIO *memory = memory_of(channel);
	BIO *out = memory && socket >= 0 ? BIO_new_socket(socket, BIO_NOCLOSE) : memory;

	if (!out) {
		BIO_free(memory);
		return false;
	}
	if (out == memory)
		BIO_up_ref(memory);
	else
		SSL_set_options(channel->ssl, SSL_OP_ENABLE_KTLS);
	SSL_set0_rbio(channel->ssl, memory);
	SSL_set0_wbio(channel->ssl, out);
	return true;
}

struct tls_channel *openssl_channel_open(const struct tls_chooser *chooser, int socket)
{
	struct tls_channel *channel = calloc(1, sizeof(*channel));
	const struct tls_identity *identity;

	if (!channel)
		return NULL;
	channel->chooser = chooser;
	channel->socket = socket;
	identity = chooser->choose(chooser, NULL, 0);
	/* A reload may have taken TLS from the address that the client connected to. */
	if (identity) {
		channel->records = identity->records;
		channel->secrets = channel->records ? channel->records->begin() : NULL;
		channel->agreed.policy = identity->policy;
		channel->ssl = SSL_new(identity->context);
	}
	if (!channel->ssl || !SSL_set_app_data(channel->ssl, channel) ||
	    !connect_bios(channel, socket)) {
		openssl_channel_close(channel);
		return NULL;
	}
	SSL_set_accept_state(channel->ssl);
	return channel;
}

void openssl_channel_close(struct tls_channel *channel)
{
	SSL_free(channel->ssl);
	drop_secrets(channel);
	if (channel->records)
		channel->records->close(channel->stream);
	tls_output_free(&channel->output);
	free(channel->variables);
	free(channel);
}

/* --- the handshake ----------------------------------------------------------------------------- */

void openssl_feed(struct tls_channel *channel, const char *data, size_t length)
{
	if (channel->stream) {
		channel->records->feed(channel->stream, data, length);
		return;
	}
	channel->input = data;
	channel->input_length = length;
}

/*
 * OpenSSL takes an old error for one of the next call.  To clear an empty list costs as much as to
 * clear a full one.
 */
static void forget_errors(void)
{
	if (ERR_peek_error())
		ERR_clear_error();
}

static int result_of(struct tls_channel *channel, int returned)
{
	int kind = SSL_get_error(channel->ssl, returned);

	if (kind == SSL_ERROR_WANT_READ)
		return TLS_MORE;
	/* The rest need not exist any longer; OpenSSL 3.5 would read it in SSL_write_ex(). */
	channel->input_length = 0;
	if (kind == SSL_ERROR_ZERO_RETURN)
		return TLS_ENDED;
	channel->error = ERR_peek_last_error();
	ERR_clear_error();
	return TLS_FAILED;
}

/* The msg_callback: called for each message before OpenSSL acts on it. */
static void watch_keys(int written, int version, int type, const void *data, size_t length,
		       SSL *ssl, void *context)
{
	const unsigned char *message = data;
	struct tls_channel *channel = context;

	(void)version;
	(void)ssl;
	if (written || type != SSL3_RT_HANDSHAKE || length <= SSL3_HM_HEADER_LENGTH ||
	    message[0] != SSL3_MT_KEY_UPDATE ||
	    message[SSL3_HM_HEADER_LENGTH] != SSL_KEY_UPDATE_REQUESTED || channel->key_wanted)
		return;
	channel->key_wanted = true;
	tls_kernel_alert(channel->socket, SSL_AD_INTERNAL_ERROR);
}

static void note_agreed(struct tls_channel *channel)
{
	struct tls_agreed *agreed = &channel->agreed;
	const unsigned char *protocol;
	unsigned length;

	agreed->version = SSL_get_version(channel->ssl);
	agreed->cipher = SSL_get_cipher_name(channel->ssl);
	SSL_get0_alpn_selected(channel->ssl, &protocol, &length);
	agreed->http2 = length == 2 && memcmp(protocol, "h2", 2) == 0;
	agreed->resumed = SSL_session_reused(channel->ssl) != 0;
}

/* What only the handshake knows; returns false without memory. */
static bool keep_client(struct tls_channel *channel)
{
	size_t length;

	return SSL_get_verify_mode(channel->ssl) == SSL_VERIFY_NONE ||
	       openssl_channel_variables(channel, &length);
}

/* The kernel did not take the key of the socket that the handshake was written to. */
static void use_memory(struct tls_channel *channel)
{
	BIO *memory = SSL_get_rbio(channel->ssl);

	if (SSL_get_wbio(channel->ssl) == memory)
		return;
	BIO_up_ref(memory);
	SSL_set0_wbio(channel->ssl, memory);
}

/* If it cannot, OpenSSL makes and reads the records. */
static void hand_over(struct tls_channel *channel)
{
	if (!channel->secrets || SSL_has_pending(channel->ssl) || !keep_client(channel))
		return;
	channel->stream = channel->records->open(
		SSL_CIPHER_get_protocol_id(SSL_get_current_cipher(channel->ssl)), channel->secrets,
		&channel->output);
	if (!channel->stream)
		return;
	channel->records->feed(channel->stream, channel->input, channel->input_length);
	SSL_free(channel->ssl);
	channel->ssl = NULL;
}

static int shake_hands(struct tls_channel *channel)
{
	int done;

	if (!channel->secrets)
		return SSL_do_handshake(channel->ssl);
	channel->records->note(channel->secrets);
	done = SSL_do_handshake(channel->ssl);
	channel->records->note(NULL);
	return done;
}

int openssl_handshake(struct tls_channel *channel)
{
	int done;

	forget_errors();
	done = shake_hands(channel);
	if (done != 1)
		return result_of(channel, done);
	note_agreed(channel);
	channel->kernel = BIO_get_ktls_send(SSL_get_wbio(channel->ssl)) != 0;
	if (channel->kernel) {
		SSL_set_msg_callback(channel->ssl, watch_keys);
		SSL_set_msg_callback_arg(channel->ssl, channel);
	} else {
		use_memory(channel);
		if (SSL_version(channel->ssl) == TLS1_3_VERSION)
			hand_over(channel);
	}
	drop_secrets(channel);
	return 0;
}

void openssl_agreed(struct tls_channel *channel, struct tls_agreed *agreed)
{
	*agreed = channel->agreed;
}

bool openssl_kernel_sends(const struct tls_channel *channel)
{
	return channel->kernel;
}

const char *openssl_channel_variables(struct tls_channel *channel, size_t *length)
{
	if (!channel->variables)
		channel->variables = openssl_variables(&channel->agreed, channel->ssl,
						       &channel->variables_length);
	*length = channel->variables_length;
	return channel->variables;
}

/* --- data ------------------------------------------------------------------------------------ */

ssize_t openssl_read(struct tls_channel *channel, char *data)
{
	size_t got = 0;
	int done;

	if (channel->stream)
		return channel->records->read(channel->stream, data);
	/* Saves a call that finds nothing. */
	if (channel->input_length == 0 && !SSL_has_pending(channel->ssl))
		return TLS_MORE;
	forget_errors();
	done = SSL_read_ex(channel->ssl, data, TLS_RECORD_MAX, &got);
	if (channel->key_wanted) {
		channel->input_length = 0;
		ERR_clear_error();
		return TLS_FAILED;
	}
	return done ? (ssize_t)got : result_of(channel, done);
}

void openssl_expect(struct tls_channel *channel, size_t length)
{
	tls_output_expect(&channel->output, length);
}

/* OpenSSL takes one piece for a record. */
static bool write_together(struct tls_channel *channel, const struct iovec *pieces, unsigned count)
{
	char copy[TLS_RECORD_MAX];
	const char *data = copy;
	size_t length, written;
	int done;

	if (count == 1) {
		data = pieces->iov_base;
		length = pieces->iov_len;
	} else {
		length = tls_gather(pieces, count, copy);
	}
	forget_errors();
	done = SSL_write_ex(channel->ssl, data, length, &written);
	if (done != 1)
		(void)result_of(channel, done);
	return done == 1;
}

bool openssl_write(struct tls_channel *channel, const struct iovec *pieces, unsigned count)
{
	if (channel->stream)
		return channel->records->write(channel->stream, pieces, count);
	return write_together(channel, pieces, count);
}

bool openssl_end(struct tls_channel *channel)
{
	bool full;
	int done;

	if (channel->stream) {
		channel->records->end(channel->stream);
		return true;
	}
	forget_errors();
	done = SSL_shutdown(channel->ssl);
	full = done < 0 && SSL_get_error(channel->ssl, done) == SSL_ERROR_WANT_WRITE;
	ERR_clear_error();
	return !full;
}

const char *openssl_output(const struct tls_channel *channel, size_t *length)
{
	const struct tls_output *output = &channel->output;

	*length = output->to - output->from;
	return *length ? (const char *)output->bytes + output->from : NULL;
}

void openssl_sent(struct tls_channel *channel, size_t length)
{
	tls_output_sent(&channel->output, length);
}

void openssl_why(const struct tls_channel *channel, char text[TLS_WHY_MAX])
{
	const char *reason = channel->error ? ERR_reason_error_string(channel->error) : NULL;

	if (channel->stream) {
		channel->records->why(channel->stream, text);
		return;
	}
	if (channel->key_wanted)
		reason = "the client wants a new key, which the kernel does not take";
	snprintf(text, TLS_WHY_MAX, "%s", reason ? reason : "the connection is broken");
}
