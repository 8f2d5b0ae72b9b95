/* SPDX-License-Identifier: MIT */
/*
 * fault.c - makes the calls of a program fail, as a plan says (fault.h).
 *
 *	FAULT_PLAN=file LD_PRELOAD=fault.so PROGRAM
 *
 * It stands between the program and libc, and between it and liburing, whose
 * own system calls do not pass libc: what is submitted to a ring and shall
 * fail is turned into a no-op with that result.  What GLib allocates does not
 * fail, since GLib would end the process.  Programs that this one starts are
 * left alone; what it forks counts as itself.
 */
#include "fault.h"

#include <dirent.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <liburing.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* liburing 2.3 does not know it; Linux 6.13 and later obey. */
#define NOP_INJECT_RESULT 0x1u
#define EVENTFDS_MAX 65536u

/* glibc's own, for who stands in its place. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *block);

struct fault_plan *fault_plan;

static uintptr_t glib_start, glib_end;
static bool ring_injects;
static _Atomic unsigned char eventfds[EVENTFDS_MAX]; /* which descriptors are */
static __thread bool inside;

/* --- who fails ---------------------------------------------------------- */

static void remember_caller(void)
{
	void *frames[FAULT_FRAMES_MAX];
	int i, count;

	inside = true;
	count = backtrace(frames, FAULT_FRAMES_MAX);
	inside = false;
	for (i = 0; i < count; i++)
		fault_plan->frames[i] = (uintptr_t)frames[i];
	fault_plan->frame_count = count > 0 ? (uint64_t)count : 0;
}

/* Whether GLib had it allocated, itself or through libc: then it ends the process. */
static bool is_for_glib(void)
{
	uint64_t i;

	for (i = 0; i < fault_plan->frame_count; i++)
		if (fault_plan->frames[i] >= glib_start && fault_plan->frames[i] < glib_end)
			return true;
	return false;
}

/* Whether a descriptor can have this error at all: what never happens proves nothing. */
static bool fits(int fd, int error, size_t length)
{
	struct stat stat;
	int type = 0;
	socklen_t size = sizeof(type);
	bool fit = true;

	inside = true;
	if (fstat(fd, &stat) < 0)
		fit = true;
	else if (S_ISREG(stat.st_mode))
		fit = error == EINTR || error == EIO || error == ENOSPC || error == FAULT_SHORT;
	else if (S_ISSOCK(stat.st_mode) && getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
		 type == SOCK_STREAM)
		fit = error != EIO && error != ENOSPC && error != FAULT_CUT;
	else if (S_ISSOCK(stat.st_mode))
		/* Messages: whole, or not at all; their peers are this program's own. */
		fit = error == EINTR || error == EAGAIN || error == ENOMEM || error == ENOBUFS ||
		      error == FAULT_CUT;
	else if (S_ISFIFO(stat.st_mode) && length > sizeof(uint64_t))
		fit = error == EINTR || error == EAGAIN || error == FAULT_SHORT;
	else
		/* Doorbells, timers, signals: never refused for long. */
		fit = error == EINTR || error == FAULT_LOST;
	inside = false;
	return fit;
}

/* 0, or the error with which this call, of a descriptor if that is not -1, is to fail. */
static int met_on(enum fault_kind kind, int fd, size_t length)
{
	struct fault_plan *plan = fault_plan;
	uint64_t number, at;
	int error;

	if (!plan || inside)
		return 0;
	number = atomic_fetch_add(&plan->kinds[kind].calls, 1);
	if (atomic_load(&plan->kind) != (uint64_t)kind)
		return 0;
	at = atomic_load(&plan->at);
	if (number < at || number - at >= atomic_load(&plan->times))
		return 0;
	error = (int)atomic_load(&plan->error);
	if (fd >= 0 && !fits(fd, error, length))
		return 0;
	remember_caller();
	if (kind <= FAULT_aligned_alloc && is_for_glib())
		return 0;
	atomic_fetch_add(&plan->fired, 1);
	return error;
}

static int met(enum fault_kind kind)
{
	return met_on(kind, -1, 0);
}

/* The same with errno set: more than 0, 0, or how the call is to be maimed. */
static int met_error_on(enum fault_kind kind, int fd, size_t length)
{
	int error = met_on(kind, fd, length);

	if (error > 0)
		errno = error;
	return error;
}

static int met_error(enum fault_kind kind)
{
	return met_error_on(kind, -1, 0);
}

/* What the kernel would not do by halves: messages, events. */
static bool can_be_short(int fd)
{
	struct stat stat;
	int type = 0;
	socklen_t length = sizeof(type);
	bool can = false;

	inside = true;
	if (fstat(fd, &stat) == 0) {
		if (S_ISSOCK(stat.st_mode))
			can = getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0 &&
			      type == SOCK_STREAM;
		else
			can = S_ISREG(stat.st_mode) || S_ISFIFO(stat.st_mode);
	}
	inside = false;
	return can;
}

/* The length of a call, of which there is less if that is armed. */
static size_t cut(int error, int fd, size_t length)
{
	return error == FAULT_SHORT && length > 1 && can_be_short(fd) ? 1 : length;
}

/* The same of buffers: the first byte of the first that is not empty. */
static const struct iovec *cut_vector(int error, int fd, const struct iovec *vector, int *count,
				      struct iovec *one)
{
	int i;

	if (error != FAULT_SHORT || !can_be_short(fd))
		return vector;
	for (i = 0; i < *count; i++) {
		if (vector[i].iov_len == 0)
			continue;
		one->iov_base = vector[i].iov_base;
		one->iov_len = 1;
		*count = 1;
		return one;
	}
	return vector;
}

/* --- start -------------------------------------------------------------- */

static int find_glib(struct dl_phdr_info *info, size_t size, void *unused)
{
	int i;

	(void)size, (void)unused;
	if (info->dlpi_name[0] == '\0' && fault_plan && !fault_plan->base)
		fault_plan->base = info->dlpi_addr;
	if (!strstr(info->dlpi_name, "libglib-2"))
		return 0;
	for (i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];

		if (header->p_type != PT_LOAD || !(header->p_flags & PF_X))
			continue;
		glib_start = info->dlpi_addr + header->p_vaddr;
		glib_end = glib_start + header->p_memsz;
	}
	return 0;
}

static void name_kinds(struct fault_plan *plan)
{
	static const struct {
		const char *name;
		int32_t errors[FAULT_ERRORS_MAX];
	} kinds[] = {
#define FAULT_ONE(name, ...) {#name, {__VA_ARGS__}},
		FAULT_KINDS(FAULT_ONE)
#undef FAULT_ONE
	};
	unsigned i;

	for (i = 0; i < FAULT_KIND_COUNT; i++) {
		snprintf(plan->kinds[i].name, sizeof(plan->kinds[i].name), "%s", kinds[i].name);
		memcpy(plan->kinds[i].errors, kinds[i].errors, sizeof(kinds[i].errors));
	}
	plan->kind_count = FAULT_KIND_COUNT;
}

/* Whether a no-op can be told its result. */
static bool probe_ring(void)
{
	struct io_uring ring;
	struct io_uring_cqe *cqe;
	struct io_uring_sqe *sqe;
	bool injects = false;

	if (io_uring_queue_init(1, &ring, 0) < 0)
		return false;
	sqe = io_uring_get_sqe(&ring);
	if (sqe) {
		io_uring_prep_nop(sqe);
		sqe->rw_flags = NOP_INJECT_RESULT;
		sqe->len = (unsigned)-EXDEV;
		if (io_uring_submit_and_wait(&ring, 1) == 1 && io_uring_peek_cqe(&ring, &cqe) == 0)
			injects = cqe->res == -EXDEV;
	}
	io_uring_queue_exit(&ring);
	return injects;
}

__attribute__((constructor)) static void start(void)
{
	const char *path = getenv("FAULT_PLAN");
	struct fault_plan *plan;
	struct stat stat;
	void *warm[1];
	int fd;

	inside = true;
	unsetenv("LD_PRELOAD");
	unsetenv("FAULT_PLAN");
	(void)backtrace(warm, 1);
	ring_injects = probe_ring();
	fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	if (fd < 0 || fstat(fd, &stat) < 0 || stat.st_size < (off_t)sizeof(*plan)) {
		fprintf(stderr, "fault: no plan, or too short a file, in $FAULT_PLAN\n");
		_exit(120);
	}
	plan = mmap(NULL, sizeof(*plan), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (plan == MAP_FAILED)
		_exit(120);
	if (atomic_load(&plan->magic) != FAULT_MAGIC) {
		name_kinds(plan);
		/* What the driver had armed before stays so. */
		if (atomic_load(&plan->times) == 0)
			atomic_store(&plan->kind, FAULT_NONE);
		atomic_store(&plan->magic, FAULT_MAGIC);
	}
	fault_plan = plan;
	dl_iterate_phdr(find_glib, NULL);
	inside = false;
}

/* --- memory ------------------------------------------------------------- */

static bool refused(enum fault_kind kind, const void *caller)
{
	uintptr_t from = (uintptr_t)caller;
	int error;

	if (!fault_plan || inside || (from >= glib_start && from < glib_end))
		return false;
	error = met(kind);
	if (error > 0)
		errno = error;
	return error > 0;
}

static void *counted(void *block)
{
	if (block && fault_plan)
		atomic_fetch_add_explicit(&fault_plan->live, 1, memory_order_relaxed);
	return block;
}

void *malloc(size_t size)
{
	if (refused(FAULT_malloc, __builtin_return_address(0)))
		return NULL;
	return counted(__libc_malloc(size));
}

void *calloc(size_t count, size_t size)
{
	if (refused(FAULT_calloc, __builtin_return_address(0)))
		return NULL;
	return counted(__libc_calloc(count, size));
}

static void *resize(void *block, size_t size)
{
	void *new = __libc_realloc(block, size);

	if (!block)
		counted(new);
	else if (size == 0 && !new &&fault_plan)
		atomic_fetch_sub_explicit(&fault_plan->live, 1, memory_order_relaxed);
	return new;
}

void *realloc(void *block, size_t size)
{
	if (refused(FAULT_realloc, __builtin_return_address(0)))
		return NULL;
	return resize(block, size);
}

void *reallocarray(void *block, size_t count, size_t size)
{
	size_t bytes;

	if (refused(FAULT_realloc, __builtin_return_address(0)))
		return NULL;
	if (__builtin_mul_overflow(count, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	return resize(block, bytes);
}

void *aligned_alloc(size_t alignment, size_t size)
{
	if (refused(FAULT_aligned_alloc, __builtin_return_address(0)))
		return NULL;
	return counted(__libc_memalign(alignment, size));
}

int posix_memalign(void **block, size_t alignment, size_t size)
{
	void *new;

	if (refused(FAULT_aligned_alloc, __builtin_return_address(0)))
		return ENOMEM;
	new = counted(__libc_memalign(alignment, size));
	if (!new)
		return ENOMEM;
	*block = new;
	return 0;
}

void free(void *block)
{
	if (block && fault_plan)
		atomic_fetch_sub_explicit(&fault_plan->live, 1, memory_order_relaxed);
	__libc_free(block);
}

/* --- calls that fail or do not ------------------------------------------ */

#define REAL(name)                                                                                 \
	static __typeof__(&name) real;                                                             \
	if (!real)                                                                                 \
	real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

#define WRAP_AS(kind, type, name, failure, parameters, arguments)                                  \
	type name parameters                                                                       \
	{                                                                                          \
		REAL(name);                                                                        \
		if (met_error(FAULT_##kind) > 0)                                                   \
			return failure;                                                            \
		return real arguments;                                                             \
	}
#define WRAP(type, name, failure, parameters, arguments)                                           \
	WRAP_AS(name, type, name, failure, parameters, arguments)
/* Those that return the error. */
#define WRAP_NUMBER(name, parameters, arguments)                                                   \
	int name parameters                                                                        \
	{                                                                                          \
		int error = met(FAULT_##name);                                                     \
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

/* The argument behind the named ones, which is there or is not needed. */
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
	if (met_error(FAULT_open) > 0)
		return -1;
	return real(path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...)
{
	mode_t mode;
	REAL(openat);

	ONE_MORE(flags, mode_t, mode);
	if (met_error(FAULT_openat) > 0)
		return -1;
	return real(folder, path, flags, mode);
}

int fcntl(int fd, int command, ...)
{
	void *argument;
	REAL(fcntl);

	ONE_MORE(command, void *, argument);
	/* The others cannot fail, but for what the caller did wrong. */
	if ((command == F_DUPFD_CLOEXEC || command == F_DUPFD) && met_error(FAULT_fcntl) > 0)
		return -1;
	if (command == F_ADD_SEALS && (intptr_t)argument & F_SEAL_WRITE &&
	    met_error(FAULT_seal) > 0)
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
		error = met_error(FAULT_openat2);
		break;
	case SYS_pidfd_open:
		error = met_error(FAULT_pidfd_open);
		break;
	case SYS_pidfd_send_signal:
		error = met_error(FAULT_pidfd_send_signal);
		break;
	case SYS_clone:
		error = met_error(FAULT_clone);
		break;
	}
	if (error > 0)
		return -1;
	return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* --- calls that can do a part ------------------------------------------- */

int eventfd(unsigned value, int flags)
{
	int fd;
	REAL(eventfd);

	if (met_error(FAULT_eventfd) > 0)
		return -1;
	fd = real(value, flags);
	if (fd >= 0 && fd < (int)EVENTFDS_MAX)
		atomic_store(&eventfds[fd], 1);
	return fd;
}

int close(int fd)
{
	REAL(close);

	if (fd >= 0 && fd < (int)EVENTFDS_MAX)
		atomic_store(&eventfds[fd], 0);
	return real(fd);
}

ssize_t write(int fd, const void *data, size_t length)
{
	bool wake = fd >= 0 && fd < (int)EVENTFDS_MAX && atomic_load(&eventfds[fd]);
	int error = met_error_on(wake ? FAULT_wake : FAULT_write, fd, length);
	REAL(write);

	if (error > 0)
		return -1;
	if (error == FAULT_LOST)
		return (ssize_t)length;
	return real(fd, data, cut(error, fd, length));
}

ssize_t read(int fd, void *data, size_t length)
{
	int error = met_error_on(FAULT_read, fd, length);
	REAL(read);

	return error > 0 ? -1 : real(fd, data, cut(error, fd, length));
}

ssize_t readv(int fd, const struct iovec *vector, int count)
{
	int error = met_error_on(FAULT_readv, fd, SIZE_MAX);
	struct iovec one;
	REAL(readv);

	if (error > 0)
		return -1;
	vector = cut_vector(error, fd, vector, &count, &one);
	return real(fd, vector, count);
}

ssize_t preadv2(int fd, const struct iovec *vector, int count, off_t offset, int flags)
{
	int error = met_error_on(FAULT_preadv2, fd, SIZE_MAX);
	struct iovec one;
	REAL(preadv2);

	if (error > 0)
		return -1;
	vector = cut_vector(error, fd, vector, &count, &one);
	return real(fd, vector, count, offset, flags);
}

ssize_t writev(int fd, const struct iovec *vector, int count)
{
	int error = met_error_on(FAULT_writev, fd, SIZE_MAX);
	struct iovec one;
	REAL(writev);

	if (error > 0)
		return -1;
	vector = cut_vector(error, fd, vector, &count, &one);
	return real(fd, vector, count);
}

ssize_t send(int fd, const void *data, size_t length, int flags)
{
	int error = met_error_on(FAULT_send, fd, length);
	REAL(send);

	return error > 0 ? -1 : real(fd, data, cut(error, fd, length), flags);
}

ssize_t sendto(int fd, const void *data, size_t length, int flags, const struct sockaddr *address,
	       socklen_t address_length)
{
	int error = met_error_on(FAULT_send, fd, length);
	REAL(sendto);

	if (error > 0)
		return -1;
	return real(fd, data, cut(error, fd, length), flags, address, address_length);
}

ssize_t recv(int fd, void *data, size_t length, int flags)
{
	int error = met_error_on(FAULT_recv, fd, length);
	REAL(recv);

	return error > 0 ? -1 : real(fd, data, cut(error, fd, length), flags);
}

ssize_t sendfile(int socket, int file, off_t *offset, size_t count)
{
	int error = met_error_on(FAULT_sendfile, socket, SIZE_MAX);
	REAL(sendfile);

	return error > 0 ? -1 : real(socket, file, offset, cut(error, socket, count));
}

/* The message, or but its first byte. */
static const struct msghdr *cut_message(int error, int fd, const struct msghdr *message,
					struct msghdr *copy, struct iovec *one)
{
	int count = (int)message->msg_iovlen;

	*copy = *message;
	copy->msg_iov = (struct iovec *)cut_vector(error, fd, message->msg_iov, &count, one);
	copy->msg_iovlen = (size_t)count;
	return copy;
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	int error = met_error_on(FAULT_sendmsg, fd, SIZE_MAX);
	struct msghdr copy;
	struct iovec one;
	REAL(sendmsg);

	if (error > 0)
		return -1;
	return real(fd, cut_message(error, fd, message, &copy, &one), flags);
}

/* As when this process has no room for the descriptors that came. */
static void cut_rights(struct msghdr *message)
{
	struct cmsghdr *at = CMSG_FIRSTHDR(message);
	size_t i;

	for (; at; at = CMSG_NXTHDR(message, at)) {
		const int *fds = (const int *)CMSG_DATA(at);

		if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_RIGHTS)
			continue;
		for (i = 0; i < (at->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++)
			close(fds[i]);
		/* The kernel leaves none: what stands behind is credentials at most, before it. */
		message->msg_flags |= MSG_CTRUNC;
		message->msg_controllen = (size_t)((char *)at - (char *)message->msg_control);
		return;
	}
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	int error = met_error_on(FAULT_recvmsg, fd, SIZE_MAX);
	struct iovec *vector = message->msg_iov;
	size_t count = message->msg_iovlen;
	struct iovec one;
	struct msghdr copy;
	ssize_t result;
	REAL(recvmsg);

	if (error > 0)
		return -1;
	*message = *cut_message(error, fd, message, &copy, &one);
	result = real(fd, message, flags);
	message->msg_iov = vector;
	message->msg_iovlen = count;
	if (error == FAULT_CUT && result > 0)
		cut_rights(message);
	return result;
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

/* --- rings -------------------------------------------------------------- */

/* Which kind a submission is of; FAULT_KIND_COUNT: none that fails. */
static enum fault_kind kind_of(const struct io_uring_sqe *sqe)
{
	switch (sqe->opcode) {
	case IORING_OP_ACCEPT:
		return FAULT_sqe_accept;
	case IORING_OP_RECV:
	case IORING_OP_RECVMSG:
		return FAULT_sqe_recv;
	case IORING_OP_SEND:
	case IORING_OP_SENDMSG:
	case IORING_OP_SEND_ZC:
	case IORING_OP_SENDMSG_ZC:
		return FAULT_sqe_send;
	case IORING_OP_POLL_ADD:
		return FAULT_sqe_poll;
	default:
		return FAULT_KIND_COUNT;
	}
}

static void fail_submission(struct io_uring_sqe *sqe)
{
	enum fault_kind kind = kind_of(sqe);
	int error = kind == FAULT_KIND_COUNT ? 0 : met(kind);

	if (error <= 0)
		return;
	sqe->opcode = IORING_OP_NOP;
	sqe->flags &= (unsigned char)~(IOSQE_FIXED_FILE | IOSQE_BUFFER_SELECT);
	sqe->ioprio = 0;
	sqe->fd = -1;
	sqe->off = 0;
	sqe->addr = 0;
	sqe->len = (unsigned)-error;
	sqe->rw_flags = NOP_INJECT_RESULT;
	sqe->buf_index = 0;
}

static void fail_submissions(struct io_uring *ring)
{
	unsigned i;

	if (!ring_injects || !fault_plan || inside)
		return;
	for (i = ring->sq.sqe_head; i != ring->sq.sqe_tail; i++)
		fail_submission(&ring->sq.sqes[i & *ring->sq.kring_mask]);
}

#define WRAP_RING(kind, name, submits, parameters, arguments)                                      \
	int name parameters                                                                        \
	{                                                                                          \
		int error = met(FAULT_##kind);                                                     \
		REAL(name);                                                                        \
		if (error > 0)                                                                     \
			return -error;                                                             \
		if (submits)                                                                       \
			fail_submissions(ring);                                                    \
		return real arguments;                                                             \
	}

WRAP_RING(ring_init, io_uring_queue_init, false,
	  (unsigned entries, struct io_uring *ring, unsigned flags), (entries, ring, flags))
WRAP_RING(ring_init, io_uring_queue_init_params, false,
	  (unsigned entries, struct io_uring *ring, struct io_uring_params *parameters),
	  (entries, ring, parameters))
WRAP_RING(ring_buffers, io_uring_register_buf_ring, false,
	  (struct io_uring * ring, struct io_uring_buf_reg *registration, unsigned flags),
	  (ring, registration, flags))
WRAP_RING(ring_submit, io_uring_submit, true, (struct io_uring * ring), (ring))
WRAP_RING(ring_submit, io_uring_submit_and_wait, true, (struct io_uring * ring, unsigned count),
	  (ring, count))
WRAP_RING(ring_submit, io_uring_submit_and_get_events, true, (struct io_uring * ring), (ring))
WRAP_RING(ring_submit, io_uring_submit_and_wait_timeout, true,
	  (struct io_uring * ring, struct io_uring_cqe **cqe, unsigned count,
	   struct __kernel_timespec *timeout, sigset_t *mask),
	  (ring, cqe, count, timeout, mask))
WRAP_RING(ring_reap, __io_uring_get_cqe, false,
	  (struct io_uring * ring, struct io_uring_cqe **cqe, unsigned submit, unsigned count,
	   sigset_t *mask),
	  (ring, cqe, submit, count, mask))
