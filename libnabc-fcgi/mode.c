/* SPDX-License-Identifier: MIT */
/*
 * mode.c - see mode.h.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "mode.h"

#define OWN_NAME "libnabc-fcgi.so"

bool fcgi_is_worker;
bool fcgi_is_child;
atomic_bool fcgi_is_shutting_down;

int fcgi_socket = -1;

static int option_of(int socket, int option)
{
	int value = -1;
	socklen_t length = sizeof(value);

	return getsockopt(socket, SOL_SOCKET, option, &value, &length) ? -1 : value;
}

/*
 * Returns the socket to the server, or -1.  The variable alone proves nothing: programs that a worker
 * starts inherit it.
 */
static int socket_of(const char *text)
{
	char *end;
	long fd = text && *text ? strtol(text, &end, 10) : -1;

	if (fd < 0 || fd > 0xffff || *end)
		return -1;
	return option_of((int)fd, SO_TYPE) == SOCK_SEQPACKET &&
			       option_of((int)fd, SO_DOMAIN) == AF_UNIX
		       ? (int)fd
		       : -1;
}

/* FastCGI's own sign: standard input is a socket that accepts connections. */
static bool is_plain_fastcgi(void)
{
	return option_of(0, SO_ACCEPTCONN) == 1;
}

void fcgi_mode_settle(void)
{
	fcgi_socket = socket_of(secure_getenv("NABC_WORKER_FD"));
	fcgi_is_worker = fcgi_socket >= 0 && !is_plain_fastcgi();
}

static bool is_own(const char *path, size_t length)
{
	size_t own = strlen(OWN_NAME);

	return length >= own && memcmp(path + length - own, OWN_NAME, own) == 0;
}

/* Other libraries of LD_PRELOAD stay. */
static void leave_preload(void)
{
	const char *at = getenv("LD_PRELOAD");
	char *rest = at ? malloc(strlen(at) + 1) : NULL, *to = rest;

	if (!rest)
		return;
	for (at += strspn(at, ": "); *at; at += strspn(at, ": ")) {
		size_t length = strcspn(at, ": ");

		if (!is_own(at, length)) {
			if (to > rest)
				*to++ = ':';
			memcpy(to, at, length);
			to += length;
		}
		at += length;
	}
	*to = '\0';
	if (to > rest)
		setenv("LD_PRELOAD", rest, 1);
	else
		unsetenv("LD_PRELOAD");
	free(rest);
}

void fcgi_mode_clear(void)
{
	unsetenv("NABC_WORKER_FD");
	leave_preload();
}
