/* SPDX-License-Identifier: MIT */
/*
 * reload-call.c - see reload-call.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "log/log.h"
#include "process/reload-call.h"

#define ANSWER_MAX 4096	     /* bytes */
#define WAIT_NS 80000000000u /* for the response; systemd gives up after 90 s */
#define AGAIN_NS 1000000000u /* until an unacknowledged signal is sent again */
#define STEP_MS 100

/* The first byte of a datagram; text follows. */
enum { ACKNOWLEDGED = 'h', DONE = 'd', REFUSED = 'r' };

static socklen_t address_of(uint64_t number, struct sockaddr_un *address)
{
	int length;

	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	length = snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1,
			  "sweet-reload-%016" PRIx64, number);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

/* --- the server's end ---------------------------------------------------------------- */

static void send_answer(uint64_t caller, char what, const char *said)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un address;
	socklen_t length = address_of(caller, &address);
	char text[ANSWER_MAX];

	if (fd < 0)
		return;
	snprintf(text, sizeof(text), "%c%s", what, said ? said : "");
	/* If the caller has ended, the error does not matter. */
	(void)sendto(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT,
		     (const struct sockaddr *)&address, length);
	close(fd);
}

void reload_calls_add(struct reload_calls *calls, const struct signalfd_siginfo *info)
{
	if (info->ssi_code != SI_QUEUE || !info->ssi_ptr)
		return;
	/* Sent again: the first signal was late, not lost. */
	for (unsigned i = 0; i < calls->count; i++)
		if (calls->callers[i] == info->ssi_ptr)
			return;
	if (calls->count == RELOAD_CALLS_MAX) {
		send_answer(info->ssi_ptr, REFUSED,
			    "too many callers wait for a reload: try again");
		return;
	}
	calls->callers[calls->count++] = info->ssi_ptr;
	send_answer(info->ssi_ptr, ACKNOWLEDGED, NULL);
}

void reload_calls_begin(struct reload_calls *calls)
{
	calls->running = calls->count;
}

void reload_calls_answer(struct reload_calls *calls, bool good, const char *said)
{
	for (unsigned i = 0; i < calls->running; i++)
		send_answer(calls->callers[i], good ? DONE : REFUSED, said);
	calls->count -= calls->running;
	memmove(calls->callers, calls->callers + calls->running,
		calls->count * sizeof(calls->callers[0]));
	calls->running = 0;
}

/* --- the caller's end ------------------------------------------------------------------ */

struct call {
	pid_t pid;
	int pidfd, socket; /* -1: not open */
	uint64_t number;
	bool heard;
};

/* Reads a decimal number with at most a newline after it; returns 0 if it is invalid. */
static pid_t read_pid(const char *text)
{
	char *end;
	long pid;

	if (*text < '1' || *text > '9')
		return 0;
	errno = 0;
	pid = strtol(text, &end, 10);
	return errno || pid > INT32_MAX || (*end && strcmp(end, "\n") != 0) ? 0 : (pid_t)pid;
}

/* Returns the server's pid, or 0. */
static pid_t find(const char *server)
{
	pid_t pid = read_pid(server);
	char text[32];
	ssize_t length;
	int fd;

	if (pid)
		return pid;
	fd = open(server, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	length = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (length < 0)
		log_error("cannot read the pid-file \"%s\": %s", server, strerror(errno));
	if (fd >= 0)
		close(fd);
	if (length < 0)
		return 0;
	text[length] = '\0';
	pid = read_pid(text);
	if (!pid)
		log_error("the pid-file \"%s\" contains no process id", server);
	return pid;
}

/*
 * Returns false if the process neither blocks nor catches SIGHUP, so that the
 * signal would end it or be ignored: it is not a server (the pid-file is old), or
 * has only just started.  Returns true if /proc does not tell.
 */
static bool takes_signal(pid_t pid)
{
	uint64_t taken = 0;
	bool known = false;
	char line[256];
	FILE *status;

	snprintf(line, sizeof(line), "/proc/%d/status", (int)pid);
	status = fopen(line, "re");
	while (status && fgets(line, sizeof(line), status))
		for (unsigned i = 0; i < 2; i++) {
			static const char *const names[] = {"SigBlk:", "SigCgt:"};

			if (strncmp(line, names[i], strlen(names[i])) != 0)
				continue;
			taken |= strtoull(line + strlen(names[i]), NULL, 16);
			known = true;
		}
	if (status)
		fclose(status);
	return !known || taken >> (SIGHUP - 1) & 1;
}

static bool open_call(struct call *call)
{
	struct sockaddr_un address;
	socklen_t length;
	int on = 1;

	/* Without a pidfd, the next signal shows that the server has ended. */
	call->pidfd = (int)syscall(SYS_pidfd_open, call->pid, 0);
	if (call->pidfd < 0 && errno == ESRCH) {
		log_error("there is no process %d", (int)call->pid);
		return false;
	}
	if (!takes_signal(call->pid)) {
		log_error("process %d is not a running server: it does not handle SIGHUP",
			  (int)call->pid);
		return false;
	}
	call->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (call->socket >= 0 &&
	    setsockopt(call->socket, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) == 0 &&
	    getrandom(&call->number, sizeof(call->number), 0) == sizeof(call->number)) {
		call->number |= 1; /* 0 means no caller */
		length = address_of(call->number, &address);
		if (bind(call->socket, (const struct sockaddr *)&address, length) == 0)
			return true;
	}
	log_error("cannot open a socket for the response: %s", strerror(errno));
	return false;
}

/* Receives the next datagram from the server, NUL-terminated; returns false if there is none. */
static bool receive(const struct call *call, char *text)
{
	union {
		struct cmsghdr header; /* for its alignment */
		char bytes[CMSG_SPACE(sizeof(struct ucred))];
	} control;
	struct iovec part = {.iov_base = text, .iov_len = ANSWER_MAX - 1};

	for (;;) {
		struct msghdr message = {.msg_iov = &part,
					 .msg_iovlen = 1,
					 .msg_control = control.bytes,
					 .msg_controllen = sizeof(control.bytes)};
		ssize_t length = recvmsg(call->socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		struct cmsghdr *header = length < 0 ? NULL : CMSG_FIRSTHDR(&message);
		struct ucred sender;

		if (length < 0)
			return false;
		if (!header || header->cmsg_level != SOL_SOCKET ||
		    header->cmsg_type != SCM_CREDENTIALS)
			continue;
		memcpy(&sender, CMSG_DATA(header), sizeof(sender));
		text[length] = '\0';
		if (sender.pid == call->pid && length > 0)
			return true;
	}
}

/* Returns true if the response arrived, and its result in *good. */
static bool is_over(struct call *call, bool *good)
{
	char text[ANSWER_MAX], *at = text + 1, *line;

	while (receive(call, text)) {
		call->heard = true;
		if (text[0] != DONE && text[0] != REFUSED)
			continue;
		*good = text[0] == DONE;
		while ((line = strsep(&at, "\n")))
			if (*line)
				log_at(*good ? LOG_LEVEL_NOTICE : LOG_LEVEL_ERROR, "%s", line);
		return true;
	}
	return false;
}

/* Logs the error of sigqueue(), which shows the end of the process if there is no pidfd. */
static bool unsent(pid_t pid, bool was_there)
{
	if (errno != ESRCH)
		log_error("cannot signal process %d: %s", (int)pid, strerror(errno));
	else if (was_there)
		log_error("process %d has ended", (int)pid);
	else
		log_error("there is no process %d", (int)pid);
	return false;
}

static bool wait_for(struct call *call)
{
	union sigval value = {.sival_ptr = (void *)(uintptr_t)call->number};
	uint64_t now = clock_monotonic_ns(), until = now + WAIT_NS, again = 0;
	bool good = false;

	for (; now < until; now = clock_monotonic_ns()) {
		struct pollfd polls[] = {{.fd = call->socket, .events = POLLIN},
					 {.fd = call->pidfd, .events = POLLIN}};

		/* The kernel merges two pending signals: one of the numbers is lost. */
		if (!call->heard && now >= again) {
			if (sigqueue(call->pid, SIGHUP, value) < 0)
				return unsent(call->pid, again > 0);
			again = now + AGAIN_NS;
		}
		(void)poll(polls, 2, STEP_MS);
		if (is_over(call, &good))
			return good;
		if (polls[1].revents & POLLIN) {
			log_error("process %d has ended", (int)call->pid);
			return false;
		}
	}
	log_error("process %d %s within 80 s", (int)call->pid,
		  call->heard ? "has acknowledged the reload, but not finished it"
			      : "has not responded (is it a SWEET of this version, in this network "
				"namespace?)");
	return false;
}

bool reload_call(const char *server)
{
	struct call call = {.pid = find(server), .pidfd = -1, .socket = -1};
	bool good = call.pid && open_call(&call) && wait_for(&call);

	if (call.socket >= 0)
		close(call.socket);
	if (call.pidfd >= 0)
		close(call.pidfd);
	return good;
}
