/* SPDX-License-Identifier: MIT */
/*
 * supervisor.c - see supervisor.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "process/supervisor.h"

#define FIRST_FD 3

/* Reads a decimal number from the environment; returns 0 if it is missing or invalid. */
static uint64_t number(const char *name)
{
	const char *text = getenv(name);
	unsigned long long value;
	char *end;

	if (!text || *text < '0' || *text > '9')
		return 0;
	errno = 0;
	value = strtoull(text, &end, 10);
	return *end || errno ? 0 : value;
}

/* Returns true if a variable names this process, or is unset and not needed. */
static bool is_for_us(const char *name, bool needed)
{
	if (!getenv(name))
		return !needed;
	return number(name) == (uint64_t)getpid();
}

static bool read_address(struct supervisor *supervisor)
{
	struct sockaddr_un *un = (struct sockaddr_un *)(void *)&supervisor->address;
	const char *text = getenv("NOTIFY_SOCKET");
	size_t length = text ? strlen(text) : 0;

	if (length < 2 || length >= sizeof(un->sun_path) || (*text != '/' && *text != '@'))
		return false;
	un->sun_family = AF_UNIX;
	memcpy(un->sun_path, text, length);
	supervisor->length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
	if (*text == '@')
		un->sun_path[0] = '\0';
	else
		supervisor->length++;
	return true;
}

static void take_descriptors(struct supervisor *supervisor)
{
	uint64_t count = is_for_us("LISTEN_PID", true) ? number("LISTEN_FDS") : 0;
	const char *names = getenv("LISTEN_FDNAMES");

	supervisor->first_fd = FIRST_FD;
	if (count == 0 || count > SUPERVISOR_FDS_MAX)
		return;
	for (unsigned i = 0; i < count; i++)
		if (fcntl(FIRST_FD + (int)i, F_SETFD, FD_CLOEXEC) < 0)
			return; /* not open: the descriptors are not ours */
	supervisor->fd_count = (unsigned)count;
	supervisor->names = names ? strdup(names) : NULL;
}

void supervisor_open(struct supervisor *supervisor)
{
	static const char *const variables[] = {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID",
						"LISTEN_FDS",	 "LISTEN_PID",	  "LISTEN_FDNAMES",
						"LISTEN_PIDFDID"};

	*supervisor = (struct supervisor){.socket = -1};
	take_descriptors(supervisor);
	if (read_address(supervisor))
		supervisor->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (supervisor->socket >= 0 && is_for_us("WATCHDOG_PID", false))
		supervisor->watchdog_us = number("WATCHDOG_USEC");
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		unsetenv(variables[i]);
}

void supervisor_close(struct supervisor *supervisor)
{
	if (supervisor->socket >= 0)
		close(supervisor->socket);
	free(supervisor->names);
	supervisor->socket = -1;
	supervisor->names = NULL;
}

const char *supervisor_name(const struct supervisor *supervisor, unsigned n, char *name,
			    size_t size)
{
	const char *at = supervisor->names;
	int length;

	for (; at && n > 0; n--) {
		at = strchr(at, ':');
		at = at ? at + 1 : NULL;
	}
	length = at ? (int)strcspn(at, ":") : 0;
	if (length == 0)
		snprintf(name, size, "unknown");
	else
		snprintf(name, size, "%.*s", length, at);
	return name;
}

static void notify(const struct supervisor *supervisor, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void notify(const struct supervisor *supervisor, const char *format, ...)
{
	char text[512];
	va_list arguments;
	int length;

	if (supervisor->socket < 0)
		return;
	va_start(arguments, format);
	length = vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if ((size_t)length >= sizeof(text))
		length = sizeof(text) - 1;
	/* By address each time, so that a restarted supervisor receives it. */
	while (sendto(supervisor->socket, text, (size_t)length, MSG_NOSIGNAL | MSG_DONTWAIT,
		      (const struct sockaddr *)&supervisor->address, supervisor->length) < 0 &&
	       errno == EINTR)
		;
}

void supervisor_ready(const struct supervisor *supervisor, const char *status)
{
	notify(supervisor, "READY=1\nSTATUS=%s\nMAINPID=%d\n", status, (int)getpid());
}

void supervisor_reloading(const struct supervisor *supervisor)
{
	/* The time distinguishes this reload from earlier ones. */
	notify(supervisor, "RELOADING=1\nMONOTONIC_USEC=%llu\nSTATUS=reading the configuration\n",
	       (unsigned long long)clock_monotonic_ns() / 1000u);
}

void supervisor_stopping(const struct supervisor *supervisor, const char *status)
{
	notify(supervisor, "STOPPING=1\nSTATUS=%s\n", status);
}

void supervisor_alive(const struct supervisor *supervisor)
{
	notify(supervisor, "WATCHDOG=1\n");
}
