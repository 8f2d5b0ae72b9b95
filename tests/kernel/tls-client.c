/* SPDX-License-Identifier: MIT */
/*
 * tls-client.c - a client for test-tls, and the certificate of its server.
 *
 * It reads the socket itself and passes the bytes to OpenSSL, so it knows what was on the wire:
 * records only, in which no part of a body can be recognized.  It compares each body with a file.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#define HEAD_MAX 4096u
#define WORD 8u		  /* bytes of a body that would be recognized on the wire ... */
#define WORD_EACH 512u	  /* ... one such word in that many bytes */
#define WORDS (1u << 16)  /* places for them, of which at most a half is used */
#define SECONDS 60u	  /* without any byte */
#define SLOW_BUFFER 16384 /* SO_RCVBUF of a slow client */

/* --- what was on the wire ------------------------------------------------------------ */

/* The words of the bodies, by their values; 0: none. */
static uint64_t words[WORDS];
static unsigned word_count;

struct wire {
	char *bytes;
	size_t length, room;
};

struct client {
	int socket;
	SSL *ssl;
	BIO *in, *out; /* memory */
	struct wire wire;
	bool ended; /* the server has closed its end */
};

__attribute__((noreturn)) static void die(const char *what)
{
	fprintf(stderr, "tls-client: %s", what);
	if (errno)
		fprintf(stderr, ": %s", strerror(errno));
	fprintf(stderr, "\n");
	ERR_print_errors_fp(stderr);
	exit(1);
}

static void must(bool good, const char *what)
{
	if (!good)
		die(what);
}

static uint64_t word_at(const char *bytes)
{
	uint64_t word;

	memcpy(&word, bytes, WORD);
	return word;
}

static unsigned place_of(uint64_t word)
{
	unsigned place = (unsigned)(word * UINT64_C(0x9e3779b97f4a7c15) >> 48);

	while (words[place] && words[place] != word)
		place = (place + 1) % WORDS;
	return place;
}

static void add_word(const char *bytes)
{
	uint64_t word = word_at(bytes);

	if (!word || words[place_of(word)] == word || word_count == WORDS / 2)
		return;
	words[place_of(word)] = word;
	word_count++;
}

static void add_words(const char *bytes, size_t length)
{
	for (size_t at = 0; at + WORD <= length; at += WORD_EACH)
		add_word(bytes + at);
}

static void keep_wire(struct wire *wire, const char *bytes, size_t length)
{
	if (wire->room - wire->length < length) {
		wire->room = (wire->length + length) * 2;
		wire->bytes = realloc(wire->bytes, wire->room);
		must(wire->bytes != NULL, "no memory");
	}
	memcpy(wire->bytes + wire->length, bytes, length);
	wire->length += length;
}

/* Whole records, and no word of a body; the words must have been found in a body itself. */
static void check_wire(const struct wire *wire)
{
	size_t at = 0, records = 0;

	while (at + 5 <= wire->length) {
		const unsigned char *head = (const unsigned char *)wire->bytes + at;
		size_t length = (size_t)head[3] << 8 | head[4];

		errno = 0;
		must(head[0] >= 20 && head[0] <= 23 && head[1] == 3 && length <= 16384 + 256,
		     "what came is no TLS record");
		at += 5 + length;
		records++;
	}
	must(at == wire->length, "the last record was cut off");
	for (at = 0; at + WORD <= wire->length; at++) {
		uint64_t word = word_at(wire->bytes + at);

		must(!word || words[place_of(word)] != word, "clear text is on the wire");
	}
	printf("tls-client: %zu bytes in %zu records\n", wire->length, records);
}

/* --- the connection ------------------------------------------------------------------ */

static void flush(struct client *client)
{
	char *bytes;
	long length = BIO_get_mem_data(client->out, &bytes);

	while (length > 0) {
		ssize_t sent = send(client->socket, bytes, (size_t)length, MSG_NOSIGNAL);

		must(sent > 0, "sending");
		bytes += sent;
		length -= sent;
	}
	(void)BIO_reset(client->out);
}

/* Waits for bytes; returns false at the end. */
static bool receive(struct client *client)
{
	char bytes[32768];
	ssize_t got;

	errno = 0;
	got = recv(client->socket, bytes, sizeof(bytes), 0);
	must(got >= 0, "receiving");
	client->ended = got == 0;
	if (got > 0) {
		keep_wire(&client->wire, bytes, (size_t)got);
		must(BIO_write(client->in, bytes, (int)got) == got, "no memory");
	}
	return got > 0;
}

/* Returns bytes; 0: the server says that nothing follows; -1: an alert. */
static int read_some(struct client *client, char *bytes, int room)
{
	for (;;) {
		int got = SSL_read(client->ssl, bytes, room);
		int why = SSL_get_error(client->ssl, got);

		flush(client);
		if (got > 0)
			return got;
		if (why == SSL_ERROR_ZERO_RETURN)
			return 0;
		if (why == SSL_ERROR_SSL &&
		    ERR_GET_REASON(ERR_peek_error()) >= SSL_AD_REASON_OFFSET)
			return -1;
		must(why == SSL_ERROR_WANT_READ, "what came cannot be decrypted");
		must(receive(client), "the connection ended without close_notify");
	}
}

static void shake(struct client *client)
{
	for (;;) {
		int done = SSL_do_handshake(client->ssl);

		flush(client);
		if (done == 1)
			return;
		must(SSL_get_error(client->ssl, done) == SSL_ERROR_WANT_READ, "the handshake");
		must(receive(client), "the connection ended in the handshake");
	}
}

static void dial(struct client *client, SSL_CTX *context, const char *address, const char *port,
		 bool slow)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)strtoul(port, NULL, 10))};
	const struct timeval most = {.tv_sec = SECONDS};
	const int buffer = SLOW_BUFFER;

	must(inet_pton(AF_INET, address, &to.sin_addr) == 1, "no address");
	client->socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(client->socket >= 0, "no socket");
	must(!slow || setsockopt(client->socket, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer)) ==
			      0,
	     "no small buffer");
	must(setsockopt(client->socket, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most)) == 0 &&
		     setsockopt(client->socket, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most)) == 0,
	     "no timeout");
	must(connect(client->socket, (struct sockaddr *)&to, sizeof(to)) == 0, "connecting");
	client->ssl = SSL_new(context);
	client->in = BIO_new(BIO_s_mem());
	client->out = BIO_new(BIO_s_mem());
	must(client->ssl && client->in && client->out, "no memory");
	SSL_set_bio(client->ssl, client->in, client->out);
	SSL_set_connect_state(client->ssl);
	shake(client);
}

/* --- requests --------------------------------------------------------------------------- */

struct options {
	const char *address;
	int version;
	const char *cipher;
	bool slow;	 /* does not read until the server has to wait */
	bool close;	 /* the last request says so */
	bool http10;	 /* each body ends with the connection */
	bool rekey;	 /* changes its key before each request but the first */
	bool rekey_both; /* and wants the server to change its own */
	bool refused;	 /* which the server answers with an alert */
	bool half;	 /* closes its end behind the last request */
};

/* Waits until the server has filled this socket, and most likely its own. */
static void await_full(const struct client *client)
{
	int before = -1, now = 0;

	while (now == 0 || now != before) {
		before = now;
		usleep(100000);
		must(ioctl(client->socket, FIONREAD, &now) == 0, "what has come");
	}
}

static void request(struct client *client, const char *path, const struct options *options,
		    bool last)
{
	char text[HEAD_MAX];
	int length =
		snprintf(text, sizeof(text), "GET %s HTTP/1.%d\r\nHost: guest\r\n%s\r\n", path,
			 !options->http10, last && options->close ? "Connection: close\r\n" : "");

	must(SSL_write(client->ssl, text, length) == length, "writing");
	if (last && options->half)
		(void)SSL_shutdown(client->ssl);
	flush(client);
	if (last && options->half)
		must(shutdown(client->socket, SHUT_WR) == 0, "closing");
	if (options->slow)
		await_full(client);
}

static void rekey(struct client *client, const struct options *options)
{
	must(SSL_key_update(client->ssl, options->rekey_both ? SSL_KEY_UPDATE_REQUESTED
							     : SSL_KEY_UPDATE_NOT_REQUESTED) == 1,
	     "no new key");
	must(SSL_do_handshake(client->ssl) == 1, "no new key");
	flush(client);
}

/* Reads the head of a response; returns how many bytes of the body came with it. */
static size_t read_head(struct client *client, char *bytes, const char **body, long *length)
{
	size_t have = 0;
	char *end, *field;

	do {
		int got;

		must(have < HEAD_MAX, "no end of the head");
		got = read_some(client, bytes + have, (int)(HEAD_MAX - have));
		must(got > 0, "no head");
		have += (size_t)got;
		bytes[have] = '\0';
		end = strstr(bytes, "\r\n\r\n");
	} while (!end);
	must(strncmp(bytes, "HTTP/1.1 200 ", 13) == 0, bytes);
	add_word(bytes);
	field = strcasestr(bytes, "\r\nContent-Length:");
	*length = field && field < end ? strtol(field + 17, NULL, 10) : -1;
	*body = end + 4;
	return have - (size_t)(end + 4 - bytes);
}

/* Compares the body, without a length up to the end, with a file. */
static void check_body(struct client *client, const char *name)
{
	char head[HEAD_MAX + 1], got[16384], wanted[16384];
	FILE *file = fopen(name, "r");
	const char *data;
	long length;
	size_t have = read_head(client, head, &data, &length), done = 0;

	must(file != NULL, name);
	for (;;) {
		errno = 0;
		must(fread(wanted, 1, have, file) == have && memcmp(wanted, data, have) == 0, name);
		add_words(data, have);
		done += have;
		if (length >= 0 && (long)done == length)
			break;
		must(length < 0 || (long)done < length, "more than Content-Length");
		have = (size_t)read_some(client, got, sizeof(got));
		if (length < 0 && have == 0)
			break;
		must((ssize_t)have > 0, "a body that was cut off");
		data = got;
	}
	must(fgetc(file) == EOF, "too short");
	fclose(file);
}

/* The server's last words: close_notify, and the end of its stream. */
static void check_end(struct client *client)
{
	char byte;
	int got = read_some(client, &byte, 1);

	errno = 0;
	must(got == 0, got < 0 ? "an alert instead of close_notify" : "more than was requested");
	must(!client->ended && !receive(client), "bytes behind close_notify");
}

/* Requests each PATH=FILE. */
static void fetch(struct client *client, const struct options *options, char **what, int count)
{
	for (int i = 0; i < count; i++) {
		char *name = strrchr(what[i], '=');
		char byte;

		must(name != NULL, "PATH=FILE");
		*name++ = '\0';
		if (i > 0 && options->rekey)
			rekey(client, options);
		request(client, what[i], options, i == count - 1);
		if (i > 0 && options->refused) {
			must(read_some(client, &byte, 1) < 0, "no alert");
			return;
		}
		check_body(client, name);
	}
	if (options->close || options->http10)
		check_end(client);
}

static int run(const struct options *options, char **arguments, int count)
{
	SSL_CTX *context = SSL_CTX_new(TLS_client_method());
	struct client client = {0};

	must(context && SSL_CTX_set_min_proto_version(context, options->version) &&
		     SSL_CTX_set_max_proto_version(context, options->version),
	     "no context");
	if (options->cipher && options->version == TLS1_3_VERSION)
		must(SSL_CTX_set_ciphersuites(context, options->cipher), "no cipher");
	else if (options->cipher)
		must(SSL_CTX_set_cipher_list(context, options->cipher), "no cipher");
	dial(&client, context, options->address, arguments[0], options->slow);
	must(!options->cipher || strcmp(SSL_get_cipher_name(client.ssl), options->cipher) == 0,
	     "another cipher");
	fetch(&client, options, arguments + 1, count - 1);
	check_wire(&client.wire);
	must(options->refused || word_count > 0, "nothing to look for on the wire");
	SSL_free(client.ssl);
	SSL_CTX_free(context);
	free(client.wire.bytes);
	close(client.socket);
	return 0;
}

/* --- the certificate ----------------------------------------------------------------------- */

/* Writes a certificate of the server's, by itself, and its key. */
static int certify(const char *name)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *certificate = X509_new();
	FILE *file = fopen(name, "w");
	X509_NAME *subject;

	must(key && certificate && file, name);
	subject = X509_get_subject_name(certificate);
	must(X509_set_version(certificate, 2) &&
		     ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1) &&
		     X509_gmtime_adj(X509_getm_notBefore(certificate), -86400) &&
		     X509_gmtime_adj(X509_getm_notAfter(certificate), 86400) &&
		     X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
						(const unsigned char *)"guest", -1, -1, 0) &&
		     X509_set_issuer_name(certificate, subject) &&
		     X509_set_pubkey(certificate, key) && X509_sign(certificate, key, EVP_sha256()),
	     "no certificate");
	must(PEM_write_X509(file, certificate) &&
		     PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL) &&
		     fclose(file) == 0,
	     name);
	X509_free(certificate);
	EVP_PKEY_free(key);
	return 0;
}

static const char usage[] =
	"Usage: tls-client certificate FILE\n"
	"       tls-client [-2] [-c CIPHER] [-a ADDRESS] [-s] [-e] [-0] [-h] [-k|-K|-R] PORT "
	"PATH=FILE...\n";

int main(int argc, char **argv)
{
	struct options options = {.address = "127.0.0.1", .version = TLS1_3_VERSION};
	int option;

	if (argc == 3 && strcmp(argv[1], "certificate") == 0)
		return certify(argv[2]);
	while ((option = getopt(argc, argv, "2a:c:se0hkKR")) >= 0)
		switch (option) {
		case '2':
			options.version = TLS1_2_VERSION;
			break;
		case 'a':
			options.address = optarg;
			break;
		case 'c':
			options.cipher = optarg;
			break;
		case 's':
			options.slow = true;
			break;
		case 'e':
			options.close = true;
			break;
		case '0':
			options.http10 = true;
			break;
		case 'h':
			options.half = options.close = true;
			break;
		case 'k':
			options.rekey = true;
			break;
		case 'K':
			options.rekey = options.rekey_both = true;
			break;
		case 'R':
			options.rekey = options.rekey_both = options.refused = true;
			break;
		default:
			fputs(usage, stderr);
			return 2;
		}
	if (argc - optind < 2) {
		fputs(usage, stderr);
		return 2;
	}
	return run(&options, argv + optind, argc - optind);
}
