/* SPDX-License-Identifier: MIT */
/*
 * address.c - see address.h.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <glib.h>

#include "base/address.h"

#define MODE ",mode="
#define TLS ",tls"
#define LABEL_MAX 63	  /* bytes between two dots of a host name */
#define MODE_DEFAULT 0666 /* any user may connect, as to a TCP port */

static struct sockaddr_in *as_in(struct listen_address *address)
{
	return (struct sockaddr_in *)(void *)&address->address;
}

static struct sockaddr_in6 *as_in6(struct listen_address *address)
{
	return (struct sockaddr_in6 *)(void *)&address->address;
}

static const struct sockaddr_un *as_un(const struct listen_address *address)
{
	return (const struct sockaddr_un *)(const void *)&address->address;
}

/* Returns the length of a Unix socket's name, without its terminating NUL. */
static size_t un_length(const struct listen_address *address)
{
	size_t most = address->length > offsetof(struct sockaddr_un, sun_path)
			      ? address->length - offsetof(struct sockaddr_un, sun_path)
			      : 0;
	const char *name = as_un(address)->sun_path;

	/* The name of a socket without a file begins with a zero byte. */
	return most && name[0] == '\0' ? most : strnlen(name, most);
}

static bool parse_port(const char *text, uint16_t *port)
{
	unsigned long value;
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	value = strtoul(text, &end, 10);
	*port = (uint16_t)value;
	return *end == '\0' && value <= 65535;
}

static bool parse_mode(const char *text, mode_t *mode)
{
	unsigned long value;
	char *end;

	if (*text < '0' || *text > '7')
		return false;
	value = strtoul(text, &end, 8);
	*mode = (mode_t)value;
	return *end == '\0' && value <= 0777;
}

static bool ends_with_tls(const char *text, size_t length)
{
	return length >= strlen(TLS) && memcmp(text + length - strlen(TLS), TLS, strlen(TLS)) == 0;
}

static bool parse_unix(const char *text, struct listen_address *address)
{
	struct sockaddr_un *un = (struct sockaddr_un *)(void *)&address->address;
	const char *mode = NULL, *at = text;
	size_t length = strlen(text);

	/* The last one counts: a path may contain commas. */
	while ((at = strstr(at, MODE)))
		mode = at++;
	address->mode = MODE_DEFAULT;
	if (mode) {
		length = (size_t)(mode - text);
		if (!parse_mode(mode + strlen(MODE), &address->mode))
			return false;
	}
	/* In either order; a name that ends like that would hide that the address is in clear text. */
	if (!address->tls && ends_with_tls(text, length)) {
		address->tls = true;
		length -= strlen(TLS);
	}
	if (ends_with_tls(text, length))
		return false;
	if (length == 0 || length >= sizeof(un->sun_path) || (length == 1 && *text == '@'))
		return false;
	un->sun_family = AF_UNIX;
	memcpy(un->sun_path, text, length);
	address->length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
	if (*text == '@')
		un->sun_path[0] = '\0';
	else
		address->length++;
	return true;
}

static bool parse_ip(const char *text, struct listen_address *address)
{
	const char *colon = strrchr(text, ':');
	char host[INET6_ADDRSTRLEN + 2]; /* with brackets */
	uint16_t port;
	size_t length;

	if (!parse_port(colon ? colon + 1 : text, &port))
		return false;
	length = colon ? (size_t)(colon - text) : 0;
	if (length >= sizeof(host))
		return false;
	memcpy(host, text, length);
	host[length] = '\0';
	if (length > 1 && host[0] == '[' && host[length - 1] == ']') {
		struct sockaddr_in6 *in6 = as_in6(address);

		host[length - 1] = '\0';
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
		address->length = sizeof(*in6);
		return inet_pton(AF_INET6, host + 1, &in6->sin6_addr) == 1;
	} else {
		struct sockaddr_in *in = as_in(address);

		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		address->length = sizeof(*in);
		if (length == 0)
			in->sin_addr.s_addr = htonl(colon ? INADDR_ANY : INADDR_LOOPBACK);
		return length == 0 || strcmp(host, "*") == 0 ||
		       inet_pton(AF_INET, host, &in->sin_addr) == 1;
	}
}

bool address_parse(const char *text, struct listen_address *address)
{
	size_t unix_length = strlen(ADDRESS_UNIX), length = strlen(text);
	char plain[sizeof(address->text) + sizeof(MODE "777")];
	bool good;

	memset(address, 0, sizeof(*address));
	if (ends_with_tls(text, length)) {
		address->tls = true;
		length -= strlen(TLS);
	}
	if (length >= sizeof(plain))
		return false;
	memcpy(plain, text, length);
	plain[length] = '\0';
	good = strncmp(plain, ADDRESS_UNIX, unix_length) == 0
		       ? parse_unix(plain + unix_length, address)
		       : parse_ip(plain, address);
	if (good)
		address_write(address);
	return good;
}

/* Returns the end of a label of a host name, which is not empty; or NULL. */
static const char *skip_label(const char *at)
{
	const char *start = at;

	while (g_ascii_isalnum(*at) || *at == '-' || *at == '_')
		at++;
	return at > start && at - start <= LABEL_MAX && *start != '-' && at[-1] != '-' ? at : NULL;
}

static bool is_number(const char *text)
{
	bool hex = text[0] == '0' && (text[1] | 0x20) == 'x';

	return text[strspn(hex ? text + 2 : text, hex ? "0123456789abcdefABCDEF" : "0123456789") +
		    (hex ? 2 : 0)] == '\0';
}

static bool is_host_name(char *host)
{
	size_t length = strlen(host);
	const char *at = host, *label = host;
	bool number;

	/* A name may end with a dot: then the resolver appends no domain. */
	bool rooted = length && host[length - 1] == '.';

	if (rooted)
		host[--length] = '\0';
	if (length > HOST_NAME_MAX_LENGTH)
		return false;
	for (; (at = skip_label(at)) && *at == '.'; at++)
		label = at + 1;
	number = is_number(label);
	if (rooted)
		host[length] = '.';
	return at == host + length && !number;
}

bool address_parse_name(const char *text, struct host_port *name)
{
	const char *colon = strrchr(text, ':');
	size_t length = colon ? (size_t)(colon - text) : 0;

	if (!length || length >= sizeof(name->host) || !parse_port(colon + 1, &name->port))
		return false;
	memcpy(name->host, text, length);
	name->host[length] = '\0';
	return name->port && is_host_name(name->host);
}

void address_set_port(struct listen_address *address, uint16_t port)
{
	if (address->address.ss_family == AF_INET6)
		as_in6(address)->sin6_port = htons(port);
	else
		as_in(address)->sin_port = htons(port);
	address_write(address);
}

void address_write(struct listen_address *address)
{
	char host[INET6_ADDRSTRLEN];

	if (address->address.ss_family == AF_UNIX) {
		const char *name = as_un(address)->sun_path;
		int length = (int)un_length(address);

		snprintf(address->text, sizeof(address->text), ADDRESS_UNIX "%s%.*s",
			 length && !name[0] ? "@" : "", length && !name[0] ? length - 1 : length,
			 length && !name[0] ? name + 1 : name);
	} else if (address->address.ss_family == AF_INET6) {
		inet_ntop(AF_INET6, &as_in6(address)->sin6_addr, host, sizeof(host));
		snprintf(address->text, sizeof(address->text), "[%s]:%u", host,
			 ntohs(as_in6(address)->sin6_port));
	} else {
		inet_ntop(AF_INET, &as_in(address)->sin_addr, host, sizeof(host));
		snprintf(address->text, sizeof(address->text), "%s:%u", host,
			 ntohs(as_in(address)->sin_port));
	}
}

bool address_equal(const struct listen_address *one, const struct listen_address *other)
{
	if (one->address.ss_family != other->address.ss_family)
		return false;
	if (one->address.ss_family == AF_UNIX) {
		size_t length = un_length(one);

		return length == un_length(other) &&
		       memcmp(as_un(one)->sun_path, as_un(other)->sun_path, length) == 0;
	}
	/* The text holds everything that can be set: other parts of an IPv6 address cannot. */
	return strcmp(one->text, other->text) == 0;
}

static bool accepts6(const struct sockaddr_in6 *own, const struct sockaddr_in6 *local)
{
	return (own->sin6_port == 0 || own->sin6_port == local->sin6_port) &&
	       (IN6_IS_ADDR_UNSPECIFIED(&own->sin6_addr) ||
		IN6_ARE_ADDR_EQUAL(&own->sin6_addr, &local->sin6_addr));
}

bool address_accepts(const struct listen_address *address, const struct sockaddr *local)
{
	const struct sockaddr_in *own = (const struct sockaddr_in *)(const void *)&address->address;
	const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)local;

	if (address->address.ss_family != local->sa_family)
		return false;
	if (local->sa_family == AF_INET6)
		return accepts6((const struct sockaddr_in6 *)(const void *)own,
				(const struct sockaddr_in6 *)(const void *)local);
	if (local->sa_family != AF_INET)
		return true;
	return (own->sin_port == 0 || own->sin_port == in->sin_port) &&
	       (own->sin_addr.s_addr == htonl(INADDR_ANY) ||
		own->sin_addr.s_addr == in->sin_addr.s_addr);
}

const char *address_path(const struct listen_address *address)
{
	const char *path = as_un(address)->sun_path;

	return address->address.ss_family == AF_UNIX && un_length(address) && *path ? path : NULL;
}

unsigned address_port(const struct listen_address *address)
{
	struct listen_address copy = *address;

	if (address->address.ss_family == AF_INET6)
		return ntohs(as_in6(&copy)->sin6_port);
	return address->address.ss_family == AF_INET ? ntohs(as_in(&copy)->sin_port) : 0;
}
