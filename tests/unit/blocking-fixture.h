/* SPDX-License-Identifier: MIT */
/*
 * blocking-fixture.h - makes a call in a thread of its own while its peer is stopped, and finds
 * out whether it waits: the thread sleeps in a system call that waits for others.
 *
 * A test has lists of rows CALL(NAME, WAITS, EXPRESSION).  tests/check-blocking.sh compares them
 * with the manual's pages, so names and WAITS are the words there; UNTESTED(NAME, WAITS, REASON)
 * is a row without a test.
 */
#ifndef BLOCKING_FIXTURE_H
#define BLOCKING_FIXTURE_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "suite.h"

enum waits { NEVER, OWNER, SOCKET, DESCRIPTOR, SERVER, PURGER, ATTACHMENT, THREAD, MEMORY };

struct blocking_call {
	const char *name;
	enum waits waits;
	long (*make)(void); /* negative: failed */
};

#define BLOCKING_DEFINE(name, waits, call)                                                         \
	static long name##_##waits(void)                                                           \
	{                                                                                          \
		return (long)(call);                                                               \
	}
#define BLOCKING_ROW(name, waits, call) {#name, waits, name##_##waits},
/* clang-format off */
#define BLOCKING_ROWS(list) {list(BLOCKING_ROW)}
/* clang-format on */
#define BLOCKING_UNTESTED(name, waits, reason)

/* A call in a thread. */
struct blocking_thread {
	pthread_t thread;
	_Atomic pid_t id;
	_Atomic bool done;
	long (*make)(void);
	long result;
	int error;
};

static inline void *blocking_run(void *context)
{
	struct blocking_thread *thread = context;

	atomic_store(&thread->id, (pid_t)syscall(SYS_gettid));
	thread->result = thread->make();
	thread->error = errno;
	atomic_store(&thread->done, true);
	return NULL;
}

static inline void blocking_start(struct blocking_thread *thread, long (*make)(void))
{
	*thread = (struct blocking_thread){.make = make};
	ck_assert_int_eq(pthread_create(&thread->thread, NULL, blocking_run, thread), 0);
}

static inline void blocking_pause(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
}

/* Returns the number of the system call in which a thread sleeps, or -1: it runs. */
static inline long blocking_system_call(pid_t thread)
{
	char path[64], text[32] = "";
	ssize_t length;
	long number;
	int file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", (int)thread);
	file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return -1;
	length = read(file, text, sizeof(text) - 1);
	close(file);
	return length > 0 && sscanf(text, "%ld", &number) == 1 ? number : -1;
}

/* Whether the thread waits for what others do; locks: also for another thread. */
static inline bool blocking_waits(const struct blocking_thread *thread, bool locks)
{
	pid_t id = atomic_load(&thread->id);

	switch (id ? blocking_system_call(id) : -1) {
#ifdef SYS_poll
	case SYS_poll:
#endif
	case SYS_ppoll:
	case SYS_read:
	case SYS_readv:
	case SYS_recvmsg:
	case SYS_sendfile:
	case SYS_sendmsg:
	case SYS_sendto:
		return true;
	case SYS_futex:
		return locks;
	default:
		return false;
	}
}

/* Some sandboxes do not show it. */
static inline bool blocking_is_shown(void)
{
	if (access("/proc/self/syscall", R_OK) == 0)
		return true;
	printf("test-blocking: skipped: /proc/self/syscall is missing\n");
	return false;
}

static inline void blocking_await_sleep(const struct blocking_thread *thread, const char *name)
{
	while (!blocking_waits(thread, true)) {
		ck_assert_msg(!atomic_load(&thread->done),
			      "%s() has returned %ld (%s), but its page says that it can wait",
			      name, thread->result, strerror(thread->error));
		blocking_pause();
	}
}

static inline void blocking_await_end(struct blocking_thread *thread, const char *name)
{
	while (!atomic_load(&thread->done)) {
		ck_assert_msg(!blocking_waits(thread, false),
			      "%s() waits in system call %ld, but its page says that it never does",
			      name, blocking_system_call(atomic_load(&thread->id)));
		blocking_pause();
	}
}

static inline void blocking_join(struct blocking_thread *thread, const char *name)
{
	ck_assert_int_eq(pthread_join(thread->thread, NULL), 0);
	ck_assert_msg(thread->result >= 0, "%s(): %s", name, strerror(thread->error));
}

/* --- a process that is stopped ---------------------------------------------------------- */

static pid_t peer;

static inline void peer_stop(void)
{
	int status;

	ck_assert_int_eq(kill(peer, SIGSTOP), 0);
	ck_assert_int_eq(waitpid(peer, &status, WUNTRACED), peer);
	ck_assert(WIFSTOPPED(status));
}

static inline void peer_continue(void)
{
	ck_assert_int_eq(kill(peer, SIGCONT), 0);
}

static inline void peer_end(void)
{
	ck_assert_int_eq(kill(peer, SIGKILL), 0);
	ck_assert_int_eq(waitpid(peer, NULL, 0), peer);
}

#endif
