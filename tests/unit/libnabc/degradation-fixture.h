/* SPDX-License-Identifier: MIT */
/*
 * degradation-fixture.h - a cache whose messages are counted, and system calls that fail.
 * The features of a process are restricted for its rest, so each test has a process of its own.
 */
#ifndef DEGRADATION_FIXTURE_H
#define DEGRADATION_FIXTURE_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <nabc.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "nabc-fixture.h"
#include "suite.h"

static char said[8][512];
static unsigned says;

static inline void hear(void *context, int priority, const char *message)
{
	ck_assert_ptr_eq(context, said);
	ck_assert_int_ge(priority, 0);
	ck_assert_ptr_null(strchr(message, '\n'));
	ck_assert_uint_lt(says, 8);
	snprintf(said[says++], sizeof(said[0]), "%s", message);
}

static inline unsigned times_said(const char *word)
{
	unsigned times = 0;

	for (unsigned i = 0; i < says; i++)
		times += strstr(said[i], word) != NULL;
	return times;
}

static inline void open_listening(size_t size, unsigned flags)
{
	struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = size, .member_size = 256 << 10, .flags = flags,
				      .log = hear, .log_context = said);

	cache = NC_cache_open(&options);
	ck_assert_ptr_nonnull(cache);
}

/*
 * Sends all of a unit to a blocking socket.  A call can be short, as NC_socksend(3) states: when
 * a ring was closed, as one that cannot be used is, the kernel interrupts one later call of its
 * process.
 */
static inline void send_whole(int socket, size_t id, size_t size)
{
	ssize_t sent;

	for (size_t at = 0; at < size; at += (size_t)sent) {
		sent = NC_socksend(socket, id, at, size - at);
		ck_assert_int_gt(sent, 0);
	}
}

/* Makes a system call fail; argument >= 0: only if its second argument is that. */
static inline void refuse_call(unsigned call, int64_t argument, int error)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)argument, 0, argument < 0 ? 0 : 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof(filter) / sizeof(filter[0]), .filter = filter};

	ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

#endif
