/* SPDX-License-Identifier: MIT */
/*
 * tls-openssl-hello.c - what a client wants, as its first message says.
 */
#include <openssl/ssl.h>
#include <stdbool.h>
#include <string.h>

#include "tls/tls-openssl-internal.h"

bool openssl_hello_name(SSL *ssl, const char **name, size_t *length)
{
	const unsigned char *at;
	size_t left, list;

	if (!SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_server_name, &at, &left) || left < 5)
		return false;
	list = (size_t)at[0] << 8 | at[1];
	*length = (size_t)at[3] << 8 | at[4];
	*name = (const char *)at + 5;
	return list == left - 2 && at[2] == TLSEXT_NAMETYPE_host_name && *length <= left - 5;
}

bool openssl_hello_wants_answer(SSL *ssl)
{
	static const unsigned char only[] = "\0\x0b\x0a" TLS_CHALLENGE_PROTOCOL;
	const unsigned char *at;
	size_t length;

	return SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_application_layer_protocol_negotiation,
					 &at, &length) &&
	       length == sizeof(only) - 1 && memcmp(at, only, length) == 0;
}
