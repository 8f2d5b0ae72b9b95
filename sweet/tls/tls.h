/* SPDX-License-Identifier: MIT */
/*
 * tls.h - what the server needs of a TLS library, as a table of functions.
 *
 * An identity is what the server presents under a name: certificates with their keys, and rules
 * for clients.  A channel is the server's end of one connection.  It does no I/O: the caller feeds
 * it with bytes from the socket, reads what they contain, and sends the output that it leaves.
 * When the handshake is over and the kernel has the channel's sending key (kernel TLS), the
 * caller writes to the socket instead: the kernel encrypts.
 *
 * A client may want no host but the answer to a challenge (tls-alpn-01, RFC 8737): it gets an
 * identity that was opened for that, and the channel carries no data.
 *
 * Threads: an identity is constant and may be used by any number of threads; a channel belongs to
 * one thread.
 */
#ifndef SWEET_TLS_H
#define SWEET_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#define TLS_RECORD_MAX 16384u		    /* bytes of data in a record (RFC 8446, section 5.1) */
#define TLS_READ_ROOM (TLS_RECORD_MAX + 1u) /* bytes that a record may need to be decrypted */
#define TLS_WHY_MAX 160u		    /* bytes of a reason for the log */

struct tls_identity;
struct tls_channel;
struct tls_tickets;
struct iovec;

/* A file that is open for reading, and its name for messages. */
struct tls_file {
	const char *name;
	int fd;
};

/* A certificate with those that certify it, and its key; both PEM.  May be the same file. */
struct tls_certificate {
	struct tls_file chain, key;
	struct tls_file staple; /* its OCSP response, DER (RFC 6960); name NULL: none */
};

/* The client's certificate. */
enum tls_client { TLS_CLIENT_NONE, TLS_CLIENT_OPTIONAL, TLS_CLIENT_REQUIRED };

/* Mozilla's recommendations, version 5.7. */
enum tls_profile { TLS_INTERMEDIATE, TLS_MODERN };

struct tls_options {
	const char *name; /* sessions are resumed below the same name only */
	const struct tls_certificate *certificates;
	unsigned certificate_count;
	enum tls_profile profile;
	const char *groups; /* of the key exchange, as OpenSSL lists them; NULL: its choice */
	enum tls_client client;
	struct tls_file client_ca;   /* PEM; only if a client's certificate is wanted */
	struct tls_tickets *tickets; /* NULL: no session is resumed */
	bool http2;		     /* offered to clients, before HTTP/1.1 */
	bool challenge;		     /* it answers the challenge tls-alpn-01 (RFC 8737) alone */
	bool own_records; /* the server makes those of TLS 1.3, if it can; else the library */
};

/* Finds the identity for the name that a client wants, without a final NUL; NULL: it gave none. */
struct tls_chooser {
	const struct tls_identity *(*choose)(const struct tls_chooser *chooser, const char *name,
					     size_t length);
	/*
	 * Opens the identity with the answer to the challenge tls-alpn-01 for a name; the channel
	 * closes it.  NULL: there is none, or the server answers none.
	 */
	struct tls_identity *(*answer)(const struct tls_chooser *chooser, const char *name,
				       size_t length);
};

/* The result of tls_library.handshake() and .read(), if it is not a number of bytes. */
enum tls_result {
	TLS_MORE = -1,	 /* the client has to send more */
	TLS_FAILED = -2, /* tls_library.why() has the reason; the output may have an alert */
	TLS_ENDED = -3,	 /* the client has said that it sends nothing more */
};

/* What the handshake has agreed; valid as long as the channel. */
struct tls_agreed {
	const char *version, *cipher; /* "TLSv1.3", "TLS_AES_256_GCM_SHA384" */
	bool resumed;
	bool http2;	 /* the protocol above TLS */
	bool challenge;	 /* answered: end the channel, no data follow */
	uint64_t policy; /* of the identity that was chosen */
};

struct tls_library {
	/* Name and version, for people. */
	const char *(*name)(void);

	/* Whether tls_options.own_records has an effect in this build. */
	bool (*can_make_records)(void);

	/* Returns NULL with a line in *why (free()) if a file is not what it must be. */
	struct tls_identity *(*identity_open)(const struct tls_options *options, char **why);
	void (*identity_close)(struct tls_identity *identity);

	/* Returns a number that is the same for identities with the same rules for clients. */
	uint64_t (*policy)(const struct tls_identity *identity);

	/*
	 * Begins a handshake.  The chooser must exist until the handshake is over.  socket: where
	 * the kernel may get the sending key; -1: never.  Returns NULL without memory.
	 */
	struct tls_channel *(*open)(const struct tls_chooser *chooser, int socket);
	void (*close)(struct tls_channel *channel);

	/*
	 * Gives the channel bytes from the socket; they must exist until a call returns TLS_MORE,
	 * TLS_FAILED or TLS_ENDED.
	 */
	void (*feed)(struct tls_channel *channel, const char *data, size_t length);

	/* Returns 0 when the handshake is over, or a tls_result. */
	int (*handshake)(struct tls_channel *channel);

	/* Returns bytes, at most TLS_RECORD_MAX, or a tls_result.  data: TLS_READ_ROOM bytes. */
	ssize_t (*read)(struct tls_channel *channel, char *data);

	/*
	 * That many bytes of data are written before the output is sent: its memory is taken at
	 * once.  Without this, or without memory, it grows with the records.
	 */
	void (*expect)(struct tls_channel *channel, size_t length);

	/*
	 * Makes one record of the pieces, together 1 to TLS_RECORD_MAX bytes, and adds it to the
	 * output.  Returns false on failure.
	 */
	bool (*write)(struct tls_channel *channel, const struct iovec *pieces, unsigned count);

	/*
	 * Says that the server sends nothing more.  Returns false if the kernel encrypts and the
	 * socket is full: call it again.
	 */
	bool (*end)(struct tls_channel *channel);

	/* Returns the output that is not sent yet, and its length. */
	const char *(*output)(const struct tls_channel *channel, size_t *length);

	/* The first bytes of the output were sent. */
	void (*sent)(struct tls_channel *channel, size_t length);

	/* Whether the kernel encrypts what is written to the socket. */
	bool (*kernel_sends)(const struct tls_channel *channel);

	/* Call it after the handshake. */
	void (*agreed)(struct tls_channel *channel, struct tls_agreed *agreed);

	/*
	 * Call it after the handshake.  Returns variables for programs, valid as long as the
	 * channel: "NAME=value", each ended by a NUL: SSL_PROTOCOL, SSL_CIPHER; if a certificate of
	 * the client is wanted SSL_CLIENT_VERIFY, and if there is one, what it says.  They are made
	 * at the first call.  Returns NULL without memory.
	 */
	const char *(*variables)(struct tls_channel *channel, size_t *length);

	/* Writes the reason of a failure. */
	void (*why)(const struct tls_channel *channel, char text[TLS_WHY_MAX]);
};

/* The one that this server was built with. */
extern const struct tls_library *const tls_library;

#endif
