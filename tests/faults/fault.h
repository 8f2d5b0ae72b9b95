/* SPDX-License-Identifier: MIT */
/*
 * fault.h - the calls that can be made to fail, and the plan that says which do.  The
 * plan is a file that the program under test, which preloads fault.c, and its driver
 * both map.  The driver arms one kind of call: its calls number `at` to `at + times -
 * 1`, counted from the start of the program, fail with `error`, or process only one
 * byte (FAULT_SHORT).
 */
#ifndef FAULT_H
#define FAULT_H

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>

#define FAULT_MAGIC 0x6661756c74303121ull
#define FAULT_SHORT (-1)       /* as an error: only one byte is processed */
#define FAULT_CUT (-3)	       /* descriptors in a message are lost: no space for them */
#define FAULT_LOST (-2)	       /* a wake-up that is lost */
#define FAULT_NONE 0xffffffffu /* as a kind: nothing is armed */
#define FAULT_ERRORS_MAX 8u
#define FAULT_FRAMES_MAX 16u

/*
 * Each kind, and the errors of its manual page that a program can meet.  No fault
 * makes a socket return EAGAIN: a caller that waits for the next edge would rightly
 * wait forever.
 */
#define FAULT_KINDS(X)                                                                             \
	X(malloc, ENOMEM)                                                                          \
	X(calloc, ENOMEM)                                                                          \
	X(realloc, ENOMEM)                                                                         \
	X(aligned_alloc, ENOMEM)                                                                   \
	X(mmap, ENOMEM, EAGAIN, ENFILE)                                                            \
	X(mprotect, ENOMEM, EACCES)                                                                \
	X(madvise, ENOMEM, EINVAL)                                                                 \
	X(mlock2, ENOMEM, EPERM, EAGAIN)                                                           \
	X(memfd_create, EMFILE, ENFILE, ENOMEM)                                                    \
	X(ftruncate, ENOMEM, ENOSPC, EIO)                                                          \
	X(open, EMFILE, ENFILE, ENOMEM, EACCES, EINTR, EIO, ENOSPC)                                \
	X(openat, EMFILE, ENFILE, ENOMEM, EACCES, EINTR, EIO)                                      \
	X(openat2, EMFILE, ENFILE, ENOMEM, EACCES, EINTR, EIO, EAGAIN)                             \
	X(fopen, EMFILE, ENFILE, ENOMEM, EACCES)                                                   \
	X(fopencookie, ENOMEM)                                                                     \
	X(fdopendir, ENOMEM)                                                                       \
	X(readdir, EIO, ENOMEM)                                                                    \
	X(fstat, EIO, ENOMEM)                                                                      \
	X(fstatat, EIO, ENOMEM, EACCES)                                                            \
	X(stat, EIO, ENOMEM, EACCES)                                                               \
	X(lstat, EIO, ENOMEM, EACCES)                                                              \
	X(unlink, EACCES, EROFS)                                                                   \
	X(chmod, EPERM, EROFS)                                                                     \
	X(chown, EPERM, EROFS)                                                                     \
	X(read, EINTR, EIO, FAULT_SHORT)                                                           \
	X(readv, EINTR, EIO, FAULT_SHORT)                                                          \
	X(preadv2, EINTR, EIO, EAGAIN, FAULT_SHORT)                                                \
	X(write, EINTR, EIO, ENOSPC, FAULT_SHORT)                                                  \
	X(writev, EINTR, EIO, ENOSPC, FAULT_SHORT)                                                 \
	X(wake, EINTR)                                                                             \
	X(pipe2, EMFILE, ENFILE)                                                                   \
	X(dup2, EBUSY)                                                                             \
	X(dup3, EBUSY)                                                                             \
	X(fcntl, EMFILE)                                                                           \
	X(seal, EBUSY)                                                                             \
	X(socket, EMFILE, ENFILE, ENOBUFS, ENOMEM, EAFNOSUPPORT)                                   \
	X(socketpair, EMFILE, ENFILE, ENOBUFS)                                                     \
	X(bind, EADDRINUSE, EACCES, ENOMEM)                                                        \
	X(listen, EADDRINUSE)                                                                      \
	X(connect, ECONNREFUSED, EAGAIN, ETIMEDOUT)                                                \
	X(accept4, EMFILE, ENFILE, ENOBUFS, ENOMEM, ECONNABORTED, EINTR, EPROTO)                   \
	X(getsockname, ENOBUFS)                                                                    \
	X(getpeername, ENOBUFS, ENOTCONN)                                                          \
	X(getsockopt, ENOMEM, ENOPROTOOPT)                                                         \
	X(setsockopt, ENOMEM, ENOBUFS, ENOPROTOOPT)                                                \
	X(shutdown, ENOTCONN)                                                                      \
	X(send, EINTR, ENOBUFS, ENOMEM, ECONNRESET, EPIPE)                                         \
	X(sendmsg, EINTR, ENOBUFS, ENOMEM, ECONNRESET, EPIPE)                                      \
	X(sendfile, EINTR, ENOMEM, EIO, ECONNRESET, EPIPE)                                         \
	X(recv, EINTR, ENOMEM, ECONNRESET)                                                         \
	X(recvmsg, EINTR, ENOMEM, ECONNRESET, FAULT_CUT)                                           \
	X(poll, EINTR, ENOMEM)                                                                     \
	X(epoll_create1, EMFILE, ENFILE, ENOMEM)                                                   \
	X(epoll_ctl, ENOMEM, ENOSPC)                                                               \
	X(epoll_wait, EINTR)                                                                       \
	X(eventfd, EMFILE, ENFILE, ENOMEM)                                                         \
	X(timerfd_create, EMFILE, ENFILE, ENOMEM)                                                  \
	X(timerfd_settime, ECANCELED)                                                              \
	X(signalfd, EMFILE, ENFILE, ENOMEM)                                                        \
	X(pidfd_open, EMFILE, ENFILE, ENOMEM, ESRCH, ENOSYS)                                       \
	X(pidfd_send_signal, ESRCH, EPERM)                                                         \
	X(clone, EAGAIN, ENOMEM)                                                                   \
	X(fork, EAGAIN, ENOMEM)                                                                    \
	X(pthread_create, EAGAIN)                                                                  \
	X(pthread_mutex_init, ENOMEM)                                                              \
	X(getrandom, EINTR)                                                                        \
	X(getrlimit, EPERM)                                                                        \
	X(setrlimit, EPERM)                                                                        \
	X(ring_init, EMFILE, ENFILE, ENOMEM, EPERM, ENOSYS)                                        \
	X(ring_buffers, ENOMEM, EINVAL)                                                            \
	X(ring_submit, EINTR, EAGAIN, EBUSY, ENOMEM)                                               \
	X(ring_reap, EINTR, EAGAIN)                                                                \
	X(sqe_accept, EMFILE, ENFILE, ENOMEM, ECONNABORTED)                                        \
	X(sqe_recv, ENOBUFS, ENOMEM, ECONNRESET, EINTR)                                            \
	X(sqe_send, ENOBUFS, ENOMEM, EPIPE, ECONNRESET)                                            \
	X(sqe_poll, ENOMEM, ECANCELED)

enum fault_kind {
#define FAULT_ONE(name, ...) FAULT_##name,
	FAULT_KINDS(FAULT_ONE)
#undef FAULT_ONE
		FAULT_KIND_COUNT
};

struct fault_counter {
	char name[24];
	int32_t errors[FAULT_ERRORS_MAX]; /* 0 ends */
	_Atomic uint64_t calls;
};

struct fault_plan {
	_Atomic uint64_t magic; /* written last by the first process that maps it */
	_Atomic uint64_t fired; /* faults so far */
	_Atomic uint64_t at;
	_Atomic uint64_t times;
	_Atomic int64_t error;
	_Atomic uint64_t kind;	   /* FAULT_NONE, or the armed kind: written last */
	_Atomic int64_t live;	   /* blocks of the heap in use */
	_Atomic int64_t realtime;  /* nanoseconds that clocks are put forward: CLOCK_REALTIME */
	_Atomic int64_t monotonic; /* ns by which clocks are moved forward: CLOCK_REALTIME */
	uint64_t base;		   /* the load address of the program */
	uint64_t frame_count;
	uint64_t frames[FAULT_FRAMES_MAX]; /* the call stack of the last fault */
	uint64_t kind_count;
	struct fault_counter kinds[FAULT_KIND_COUNT];
};

#endif
