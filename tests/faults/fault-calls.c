/* SPDX-License-Identifier: MIT */
/* fault-calls.c - calls that fail completely or not at all; clocks that are moved. */
#include "fault-internal.h"
#include "fault.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define WRAP_AS(kind, type, name, failure, parameters, arguments)                                  \
	type name parameters                                                                       \
	{                                                                                          \
		REAL(name);                                                                        \
		if (fault_met_error(FAULT_##kind) > 0)                                             \
			return failure;                                                            \
		return real arguments;                                                             \
	}
#define WRAP(type, name, failure, parameters, arguments)                                           \
	WRAP_AS(name, type, name, failure, parameters, arguments)
/* Calls that return the error. */
#define WRAP_NUMBER(name, parameters, arguments)                                                   \
	int name parameters                                                                        \
	{                                                                                          \
		int error = fault_met(FAULT_##name);                                               \
		REAL(name);                                                                        \
		if (error > 0)                                                                     \
			return error;                                                              \
		return real arguments;                                                             \
	}

WRAP(void *, mmap, MAP_FAILED,
     (void *where, size_t length, int protection, int flags, int fd, off_t offset),
     (where, length, protection, flags, fd, offset))
WRAP(int, mprotect, -1, (void *where, size_t length, int protection), (where, length, protection))
WRAP(int, madvise, -1, (void *where, size_t length, int advice), (where, length, advice))
WRAP(int, mlock2, -1, (const void *where, size_t length, unsigned flags), (where, length, flags))
WRAP(int, memfd_create, -1, (const char *name, unsigned flags), (name, flags))
WRAP(int, ftruncate, -1, (int fd, off_t length), (fd, length))
WRAP(FILE *, fopen, NULL, (const char *path, const char *mode), (path, mode))
WRAP(FILE *, fopencookie, NULL, (void *cookie, const char *mode, cookie_io_functions_t calls),
     (cookie, mode, calls))
WRAP(DIR *, fdopendir, NULL, (int fd), (fd))
WRAP(struct dirent *, readdir, NULL, (DIR * folder), (folder))
WRAP(int, fstat, -1, (int fd, struct stat *into), (fd, into))
WRAP(int, fstatat, -1, (int fd, const char *path, struct stat *into, int flags),
     (fd, path, into, flags))
WRAP(int, stat, -1, (const char *path, struct stat *into), (path, into))
WRAP(int, lstat, -1, (const char *path, struct stat *into), (path, into))
WRAP(int, unlink, -1, (const char *path), (path))
WRAP(int, chmod, -1, (const char *path, mode_t mode), (path, mode))
WRAP(int, chown, -1, (const char *path, uid_t user, gid_t group), (path, user, group))
WRAP(int, pipe2, -1, (int ends[2], int flags), (ends, flags))
WRAP(int, dup2, -1, (int from, int to), (from, to))
WRAP(int, dup3, -1, (int from, int to, int flags), (from, to, flags))
WRAP(int, socket, -1, (int family, int type, int protocol), (family, type, protocol))
WRAP(int, socketpair, -1, (int family, int type, int protocol, int ends[2]),
     (family, type, protocol, ends))
WRAP(int, bind, -1, (int fd, const struct sockaddr *address, socklen_t length),
     (fd, address, length))
WRAP(int, listen, -1, (int fd, int backlog), (fd, backlog))
WRAP(int, connect, -1, (int fd, const struct sockaddr *address, socklen_t length),
     (fd, address, length))
WRAP(int, accept4, -1, (int fd, struct sockaddr *address, socklen_t *length, int flags),
     (fd, address, length, flags))
WRAP(int, getsockname, -1, (int fd, struct sockaddr *address, socklen_t *length),
     (fd, address, length))
WRAP(int, getpeername, -1, (int fd, struct sockaddr *address, socklen_t *length),
     (fd, address, length))
WRAP(int, getsockopt, -1, (int fd, int level, int name, void *value, socklen_t *length),
     (fd, level, name, value, length))
WRAP(int, setsockopt, -1, (int fd, int level, int name, const void *value, socklen_t length),
     (fd, level, name, value, length))
WRAP(int, shutdown, -1, (int fd, int how), (fd, how))
WRAP(int, poll, -1, (struct pollfd * fds, nfds_t count, int timeout), (fds, count, timeout))
WRAP(int, epoll_create1, -1, (int flags), (flags))
WRAP(int, epoll_ctl, -1, (int epoll, int operation, int fd, struct epoll_event *event),
     (epoll, operation, fd, event))
WRAP(int, epoll_wait, -1, (int epoll, struct epoll_event *events, int most, int timeout),
     (epoll, events, most, timeout))
WRAP(int, timerfd_create, -1, (int clock, int flags), (clock, flags))
WRAP(int, timerfd_settime, -1,
     (int fd, int flags, const struct itimerspec *value, struct itimerspec *old),
     (fd, flags, value, old))
WRAP(int, signalfd, -1, (int fd, const sigset_t *mask, int flags), (fd, mask, flags))
WRAP(int, setrlimit, -1, (__rlimit_resource_t resource, const struct rlimit *limit),
     (resource, limit))
WRAP(int, getrlimit, -1, (__rlimit_resource_t resource, struct rlimit *limit), (resource, limit))
WRAP(pid_t, fork, -1, (void), ())
WRAP(ssize_t, getrandom, -1, (void *data, size_t length, unsigned flags), (data, length, flags))
WRAP_NUMBER(pthread_create,
	    (pthread_t * thread, const pthread_attr_t *attributes, void *(*run)(void *),
	     void *context),
	    (thread, attributes, run, context))
WRAP_NUMBER(pthread_mutex_init, (pthread_mutex_t * mutex, const pthread_mutexattr_t *attributes),
	    (mutex, attributes))

/* The optional argument after the named ones. */
#define ONE_MORE(last, type, into)                                                                 \
	do {                                                                                       \
		va_list list;                                                                      \
		va_start(list, last);                                                              \
		into = va_arg(list, type);                                                         \
		va_end(list);                                                                      \
	} while (0)

int open(const char *path, int flags, ...)
{
	mode_t mode;
	REAL(open);

	ONE_MORE(flags, mode_t, mode);
	if (fault_met_error(FAULT_open) > 0)
		return -1;
	return real(path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...)
{
	mode_t mode;
	REAL(openat);

	ONE_MORE(flags, mode_t, mode);
	if (fault_met_error(FAULT_openat) > 0)
		return -1;
	return real(folder, path, flags, mode);
}

int fcntl(int fd, int command, ...)
{
	void *argument;
	REAL(fcntl);

	ONE_MORE(command, void *, argument);
	/* The others fail only through errors of the caller. */
	if ((command == F_DUPFD_CLOEXEC || command == F_DUPFD) && fault_met_error(FAULT_fcntl) > 0)
		return -1;
	if (command == F_ADD_SEALS && (intptr_t)argument & F_SEAL_WRITE &&
	    fault_met_error(FAULT_seal) > 0)
		return -1;
	return real(fd, command, argument);
}

long syscall(long number, ...)
{
	long a[6];
	va_list list;
	unsigned i;
	int error = 0;
	REAL(syscall);

	va_start(list, number);
	for (i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	switch (number) {
	case SYS_openat2:
		error = fault_met_error(FAULT_openat2);
		break;
	case SYS_pidfd_open:
		error = fault_met_error(FAULT_pidfd_open);
		break;
	case SYS_pidfd_send_signal:
		error = fault_met_error(FAULT_pidfd_send_signal);
		break;
	case SYS_clone:
		error = fault_met_error(FAULT_clone);
		break;
	}
	if (error > 0)
		return -1;
	return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* --- clocks ------------------------------------------------------------- */

int clock_gettime(clockid_t clock, struct timespec *now)
{
	int64_t more, sum;
	int result;
	REAL(clock_gettime);

	result = real(clock, now);
	if (result < 0 || !fault_plan)
		return result;
	more = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE
		       ? atomic_load_explicit(&fault_plan->realtime, memory_order_relaxed)
		       : atomic_load_explicit(&fault_plan->monotonic, memory_order_relaxed);
	if (more == 0 || clock == CLOCK_THREAD_CPUTIME_ID || clock == CLOCK_PROCESS_CPUTIME_ID)
		return result;
	sum = (int64_t)now->tv_sec * 1000000000 + now->tv_nsec + more;
	now->tv_sec = sum / 1000000000;
	now->tv_nsec = sum % 1000000000;
	return result;
}

time_t time(time_t *into)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (into)
		*into = now.tv_sec;
	return now.tv_sec;
}
