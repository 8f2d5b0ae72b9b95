/* SPDX-License-Identifier: MIT */
/*
 * log-output.c - see log-output.h.
 *
 * O_NONBLOCK belongs to an open file, which standard output and error share with the shell and with
 * programs.  Linux opens a pipe or terminal again by /proc/self/fd, which makes an open file of our
 * own; it is kept, because that is not permitted any more when root has dropped its privileges.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/user-open.h"
#include "log/log-output.h"

#define STANDARD (STDERR_FILENO + 1)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int kept[STANDARD] = {-1, -1, -1}; /* protected by the lock */
static _Atomic uint64_t lost;

/* --- opening -------------------------------------------------------------------------- */

int log_output_open(const char *path)
{
	const int flags = O_CREAT | O_APPEND | O_NONBLOCK | O_CLOEXEC | O_NOCTTY;
	int fd = user_open(path, flags | O_WRONLY, 0640);

	/* A FIFO that nobody reads yet: what fits into it waits there. */
	return fd == -ENXIO ? user_open(path, flags | O_RDWR, 0640) : fd;
}

/* Returns true if both descriptors are of the same pipe, file or terminal. */
static bool same(int fd, int other)
{
	struct stat one, two;

	return other >= 0 && fstat(fd, &one) == 0 && fstat(other, &two) == 0 &&
	       one.st_dev == two.st_dev && one.st_ino == two.st_ino;
}

static int open_again(int fd)
{
	struct stat stat;
	char path[32];
	int opened, moved;

	if (fstat(fd, &stat) < 0 || !(S_ISFIFO(stat.st_mode) || S_ISCHR(stat.st_mode)))
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	opened = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	if (opened < 0 || opened >= STANDARD)
		return opened;
	/* Its number is that of a standard descriptor that is closed. */
	moved = fcntl(opened, F_DUPFD_CLOEXEC, STANDARD);
	close(opened);
	return moved;
}

int log_output_standard(int fd)
{
	int own;

	pthread_mutex_lock(&lock);
	/* The number of another descriptor, if a helper process has closed all that it need not have. */
	if (!same(fd, kept[fd]))
		kept[fd] = open_again(fd);
	own = kept[fd];
	pthread_mutex_unlock(&lock);
	return own < 0 ? fd : own;
}

struct log_output log_output_of(int fd)
{
	struct log_output output = {.fd = fd, .way = LOG_WAY_POLLED};
	struct stat stat;
	int flags;

	if (fd < 0 || fstat(fd, &stat) < 0)
		return output;
	flags = fcntl(fd, F_GETFL);
	if (S_ISREG(stat.st_mode))
		output.way = LOG_WAY_FILE;
	else if (S_ISSOCK(stat.st_mode))
		output.way = LOG_WAY_SOCKET;
	else if (flags >= 0 && flags & O_NONBLOCK)
		output.way = LOG_WAY_NONBLOCKING;
	return output;
}

/* --- writing --------------------------------------------------------------------------- */

/* Returns the length of the whole lines that a pipe takes at once, or not at all. */
static size_t piece_of(const char *data, size_t length)
{
	const char *end;

	if (length <= PIPE_BUF)
		return length;
	end = memrchr(data, '\n', PIPE_BUF);
	return end ? (size_t)(end - data) + 1 : PIPE_BUF;
}

static ssize_t write_piece(const struct log_output *output, const char *data, size_t length)
{
	struct pollfd ready = {.fd = output->fd, .events = POLLOUT};

	if (output->way == LOG_WAY_SOCKET)
		return send(output->fd, data, length, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (output->way == LOG_WAY_POLLED && poll(&ready, 1, 0) == 0) {
		errno = EAGAIN;
		return -1;
	}
	return write(output->fd, data, length);
}

int log_output_write(const struct log_output *output, const char *data, size_t length, size_t *done)
{
	*done = 0;
	while (*done < length) {
		size_t left = length - *done;
		ssize_t written = write_piece(
			output, data + *done,
			output->way == LOG_WAY_FILE ? left : piece_of(data + *done, left));

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return -errno;
		*done += (size_t)written;
	}
	return 0;
}

void log_output_lose(uint64_t lines)
{
	atomic_fetch_add_explicit(&lost, lines, memory_order_relaxed);
}

uint64_t log_output_lost(void)
{
	return atomic_load_explicit(&lost, memory_order_relaxed);
}
