/* SPDX-License-Identifier: MIT */
/*
 * tls-challenge.h - the answers to the challenge tls-alpn-01 (RFC 8737) in a folder, to which an
 * ACME client adds them and from which it removes them: NAME.crt.pem is a certificate that shows
 * control of the name, NAME.key.pem its key.  dehydrated and lighttpd have the same layout.
 *
 * Nothing is kept: an answer is read for each client that wants it, which are a few of an authority.
 */
#ifndef SWEET_TLS_CHALLENGE_H
#define SWEET_TLS_CHALLENGE_H

#include <stddef.h>

struct tls_file;

/*
 * Opens the answer for a name that a client wants, which may be any bytes.  Returns NULL with a line
 * in *why (free()), NULL without memory.  Reads two small files of the folder.
 */
struct tls_identity *tls_challenge_open(const struct tls_file *folder, const char *name,
					size_t length, char **why);

#endif
