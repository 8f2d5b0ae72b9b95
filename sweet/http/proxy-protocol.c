/* SPDX-License-Identifier: MIT */
/*
 * proxy-protocol.c - see proxy-protocol.h.  Pure: no state, no system calls.
 *
 * A header is short, so an incomplete one is parsed from its start each time, and
 * no state is needed in between.  Everything that is not exactly a header is
 * refused: after an error, any following byte could be read as an address.
 */
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <arpa/inet.h>
#include <netinet/in.h>

#include "http/proxy-protocol.h"

#define TEXT_MAX 107 /* bytes of a header of version 1, with its CR LF */
#define FIXED 16     /* bytes of version 2 before the addresses */
#define INET_ADDRESSES 12
#define INET6_ADDRESSES 36
#define UNIX_ADDRESSES 216
#define EXTENSION 3 /* bytes: a type and the length of its value */

static const char signature[12] = "\r\n\r\n\0\r\nQUIT\n";
static const char word[6] = "PROXY ";

/* --- version 1: a line of text --------------------------------------------------- */

/*
 * Copies the part up to the next space or the end, and moves *at after it; returns
 * NULL if it is longer than room.
 */
static char *take_part(const char **at, const char *end, char *part, size_t room)
{
	const char *space = memchr(*at, ' ', (size_t)(end - *at));
	size_t length = (size_t)((space ? space : end) - *at);

	if (length >= room || memchr(*at, '\0', length))
		return NULL;
	memcpy(part, *at, length);
	part[length] = '\0';
	*at = space ? space + 1 : NULL;
	return part;
}

static bool take_address(const char **at, const char *end, int family, void *address)
{
	char part[INET6_ADDRSTRLEN];

	return *at && take_part(at, end, part, sizeof(part)) &&
	       inet_pton(family, part, address) == 1;
}

/* Accepts digits without a sign or leading zeros. */
static bool take_port(const char **at, const char *end, in_port_t *port)
{
	char part[6];
	unsigned value = 0;

	if (!*at || !take_part(at, end, part, sizeof(part)) || !*part ||
	    (part[0] == '0' && part[1]))
		return false;
	for (const char *digit = part; *digit; digit++) {
		if (*digit < '0' || *digit > '9')
			return false;
		value = value * 10 + (unsigned)(*digit - '0');
	}
	*port = htons((uint16_t)value);
	return value <= 65535;
}

static bool take_pair4(struct proxy_header *header, const char *at, const char *end)
{
	struct sockaddr_in *from = (struct sockaddr_in *)(void *)&header->from;
	struct sockaddr_in *to = (struct sockaddr_in *)(void *)&header->to;

	from->sin_family = to->sin_family = AF_INET;
	return take_address(&at, end, AF_INET, &from->sin_addr) &&
	       take_address(&at, end, AF_INET, &to->sin_addr) &&
	       take_port(&at, end, &from->sin_port) && take_port(&at, end, &to->sin_port) && !at;
}

static bool take_pair6(struct proxy_header *header, const char *at, const char *end)
{
	struct sockaddr_in6 *from = (struct sockaddr_in6 *)(void *)&header->from;
	struct sockaddr_in6 *to = (struct sockaddr_in6 *)(void *)&header->to;

	from->sin6_family = to->sin6_family = AF_INET6;
	return take_address(&at, end, AF_INET6, &from->sin6_addr) &&
	       take_address(&at, end, AF_INET6, &to->sin6_addr) &&
	       take_port(&at, end, &from->sin6_port) && take_port(&at, end, &to->sin6_port) && !at;
}

static bool begins_with(const char *at, const char *end, const char *text, size_t length)
{
	return (size_t)(end - at) >= length && memcmp(at, text, length) == 0;
}

static ssize_t parse_text(struct proxy_header *header, const char *data, size_t length)
{
	const char *newline = memchr(data, '\n', length < TEXT_MAX ? length : TEXT_MAX);
	const char *at = data + sizeof(word), *end;

	if (!newline)
		return length < TEXT_MAX ? 0 : -EMSGSIZE;
	end = newline - 1;
	if (end < at || *end != '\r')
		return -EINVAL;
	if (begins_with(at, end, "TCP4 ", 5) && take_pair4(header, at + 5, end))
		header->client = PROXY_CLIENT;
	else if (begins_with(at, end, "TCP6 ", 5) && take_pair6(header, at + 5, end))
		header->client = PROXY_CLIENT;
	else if (begins_with(at, end, "UNKNOWN", 7) && (at + 7 == end || at[7] == ' '))
		header->client = PROXY_UNKNOWN; /* the rest of the line is ignored */
	else
		return -EINVAL;
	return newline + 1 - data;
}

/* --- version 2: binary ------------------------------------------------------------- */

static size_t two_bytes(const unsigned char *at)
{
	return (size_t)at[0] << 8 | at[1];
}

/* The server ignores the extensions after the addresses, but their lengths must add up. */
static bool extensions_good(const unsigned char *at, size_t length)
{
	while (length >= EXTENSION) {
		size_t whole = EXTENSION + two_bytes(at + 1);

		if (whole > length)
			return false;
		at += whole;
		length -= whole;
	}
	return length == 0;
}

static void read_pair4(struct proxy_header *header, const unsigned char *at)
{
	struct sockaddr_in *from = (struct sockaddr_in *)(void *)&header->from;
	struct sockaddr_in *to = (struct sockaddr_in *)(void *)&header->to;

	from->sin_family = to->sin_family = AF_INET;
	memcpy(&from->sin_addr, at, 4);
	memcpy(&to->sin_addr, at + 4, 4);
	memcpy(&from->sin_port, at + 8, 2);
	memcpy(&to->sin_port, at + 10, 2);
}

static void read_pair6(struct proxy_header *header, const unsigned char *at)
{
	struct sockaddr_in6 *from = (struct sockaddr_in6 *)(void *)&header->from;
	struct sockaddr_in6 *to = (struct sockaddr_in6 *)(void *)&header->to;

	from->sin6_family = to->sin6_family = AF_INET6;
	memcpy(&from->sin6_addr, at, 16);
	memcpy(&to->sin6_addr, at + 16, 16);
	memcpy(&from->sin6_port, at + 32, 2);
	memcpy(&to->sin6_port, at + 34, 2);
}

/* Reads the addresses of the command PROXY; returns their bytes, or -EINVAL. */
static ssize_t read_addresses(struct proxy_header *header, unsigned family, const unsigned char *at,
			      size_t length)
{
	size_t size = 0;

	header->client = PROXY_CLIENT;
	switch (family) {
	case 0x00: /* unspecified */
		header->client = PROXY_UNKNOWN;
		return 0;
	case 0x11: /* TCP over IPv4 */
		size = INET_ADDRESSES;
		break;
	case 0x21: /* TCP over IPv6 */
		size = INET6_ADDRESSES;
		break;
	case 0x31: /* a Unix stream; its paths are on another machine */
		size = UNIX_ADDRESSES;
		break;
	default: /* also datagrams: this is a stream */
		return -EINVAL;
	}
	if (length < size)
		return -EINVAL;
	if (size == INET_ADDRESSES)
		read_pair4(header, at);
	else if (size == INET6_ADDRESSES)
		read_pair6(header, at);
	else
		header->from.ss_family = header->to.ss_family = AF_UNIX;
	return (ssize_t)size;
}

static ssize_t parse_binary(struct proxy_header *header, const char *data, size_t length)
{
	const unsigned char *at = (const unsigned char *)data;
	size_t rest;
	ssize_t used = 0;

	/* Checked as soon as possible: do not wait for the rest of an invalid header. */
	if (length > 12 && at[12] != 0x20 && at[12] != 0x21)
		return -EINVAL;
	if (length < FIXED)
		return 0;
	rest = two_bytes(at + 14);
	if (FIXED + rest > PROXY_HEADER_MAX)
		return -EMSGSIZE;
	if (length < FIXED + rest)
		return 0;
	header->client = PROXY_ITSELF;
	if (at[12] == 0x21) {
		used = read_addresses(header, at[13], at + FIXED, rest);
		/* Without addresses, extensions cannot be distinguished from an address. */
		if (used < 0 ||
		    (used > 0 && !extensions_good(at + FIXED + used, rest - (size_t)used)))
			return -EINVAL;
	}
	return (ssize_t)(FIXED + rest);
}

ssize_t proxy_header_parse(struct proxy_header *header, const char *data, size_t length)
{
	size_t least;

	memset(header, 0, sizeof(*header));
	header->client = PROXY_UNKNOWN;
	if (length == 0)
		return 0;
	if (*data == *word) {
		least = length < sizeof(word) ? length : sizeof(word);
		if (memcmp(data, word, least) != 0)
			return -EINVAL;
		return least < sizeof(word) ? 0 : parse_text(header, data, length);
	}
	least = length < sizeof(signature) ? length : sizeof(signature);
	if (memcmp(data, signature, least) != 0)
		return -EINVAL;
	return least < sizeof(signature) ? 0 : parse_binary(header, data, length);
}
