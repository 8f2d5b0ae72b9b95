/* SPDX-License-Identifier: MIT */
/*
 * hostile-fixture.h - an owner that serves a cache to everyone, and members that
 * run as other users in processes of their own, for tests of what members can do to
 * each other and to the owner.
 *
 * A member is a forked child that inherits only a socket to its parent (TALK), over
 * which both send ids.  Check's assertions are for the owner; a child uses CHILD,
 * and its exit status is its result.
 */
#ifndef HOSTILE_FIXTURE_H
#define HOSTILE_FIXTURE_H

#include <errno.h>
#include <grp.h>
#include <nabc.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/id.h"
#include "membership/serve.h"
#include "membership/attach.h"
#include "os/peer.h"
#include "wire/wire.h"

#include "nabc-fixture.h"
#include "process-fixture.h"
#include "suite.h"

#define PAGE ((size_t)4096)
#define TALK 3 /* in a child: the socket to its parent */

#define CHILD(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: not true: %s (%s)\n", __FILE__, __LINE__,          \
				#condition, strerror(errno));                                      \
			return 1;                                                                  \
		}                                                                                  \
	} while (0)

#define CHILD_FAILS(call, error)                                                                   \
	do {                                                                                       \
		errno = 0;                                                                         \
		CHILD((call) == -1 && errno == (error));                                           \
	} while (0)

static char directory[64], path[100];

struct member {
	pid_t pid;
	int talk; /* the owner's end */
};

static inline void open_hostile(const struct NC_cache_options *options)
{
	struct NC_serve_options serve = NC_SERVE_OPTIONS_INIT(.mode = 0666);
	struct NC_cache_options these = *options;

	make_directory(directory);
	ck_assert_int_eq(chmod(directory, 0755), 0);
	snprintf(path, sizeof(path), "%s/cache", directory);
	these.flags |= NO_THREAD_TO_FORK;
	cache = NC_cache_open(&these);
	ck_assert_ptr_nonnull(cache);
	ck_assert_int_eq(NC_cache_serve(cache, path, &serve), 0);
}

static inline void close_hostile(void)
{
	close_cache();
	rmdir(directory);
}

/* Closes what a child must not inherit. */
static inline void leave_parent(int talk)
{
	dup2(talk, TALK);
	close_range(TALK + 1, ~0u, 0);
	unsetenv("NABC_CACHE");
}

/* Another user if this process may become one, else the same; tests report what they skip. */
static inline bool become(uid_t uid)
{
	if (geteuid() == 0 &&
	    (setgroups(0, NULL) || setresgid(uid, uid, uid) || setresuid(uid, uid, uid)))
		return false;
	/* So that debuggers and leak checkers can read its memory. */
	prctl(PR_SET_DUMPABLE, 1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	return true;
}

static inline struct member start_member(int (*run)(void), uid_t uid)
{
	struct member member;
	int pair[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	member.pid = fork_alone();
	if (member.pid == 0) {
		leave_parent(pair[1]);
		_exit(become(uid) ? run() : 99);
	}
	ck_assert_int_gt(member.pid, 0);
	close(pair[1]);
	member.talk = pair[0];
	return member;
}

/* Runs the owner's loop until data arrives or the other end closes. */
static inline void serve_until(int fd)
{
	struct pollfd wait[2] = {{.fd = fd, .events = POLLIN},
				 {.fd = NC_cache_fd(cache), .events = POLLIN}};

	do {
		int ready = poll(wait, 2, 60000);

		ck_assert_msg(ready > 0 || (ready < 0 && errno == EINTR), "nothing in a minute");
		if (ready > 0 && wait[1].revents)
			ck_assert_int_ge(NC_cache_dispatch(cache), 0);
	} while (!readable(fd));
}

/* Receives ids from a member, and serves its requests meanwhile. */
static inline void hear_ids(const struct member *member, size_t *ids, unsigned count)
{
	ssize_t got;

	serve_until(member->talk);
	got = recv(member->talk, ids, count * sizeof(*ids), 0);
	ck_assert_msg(got == (ssize_t)(count * sizeof(*ids)), "the member says why above");
}

static inline void send_ids(const struct member *member, const size_t *ids, unsigned count)
{
	ck_assert_int_eq(send(member->talk, ids, count * sizeof(*ids), MSG_NOSIGNAL),
			 count * sizeof(*ids));
}

/* Runs the owner's loop until no member is left. */
static inline void serve_until_alone(void)
{
	struct NC_cache_stat stat;

	for (;;) {
		ck_assert_int_ge(NC_cache_dispatch(cache), 0);
		ck_assert_int_eq(NC_cache_stat(cache, &stat, sizeof(stat)), 0);
		if (stat.members == 0)
			return;
		(void)poll(&(struct pollfd){.fd = NC_cache_fd(cache), .events = POLLIN}, 1, 100);
	}
}

/*
 * Runs the owner's loop until it has that number of descriptors, or ten seconds long: its own
 * thread closes those of a member shortly after that ended, without an event.
 */
static inline void serve_until_open(unsigned descriptors)
{
	struct pollfd wait = {.fd = NC_cache_fd(cache), .events = POLLIN};

	for (unsigned i = 0; i < 10000 && open_descriptors() != descriptors; i++) {
		(void)poll(&wait, 1, 1);
		ck_assert_int_ge(NC_cache_dispatch(cache), 0);
	}
}

/* Serves the member until it ends, which must be with success. */
static inline void end_member(struct member *member)
{
	int status;
	char byte;

	shutdown(member->talk, SHUT_WR);
	do {
		serve_until(member->talk);
	} while (recv(member->talk, &byte, 1, 0) > 0);
	close(member->talk);
	ck_assert_int_eq(waitpid(member->pid, &status, 0), member->pid);
	ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0,
		      "status %x; the member says why above", status);
}

static inline void run_member(int (*run)(void), uid_t uid)
{
	struct member member = start_member(run, uid);

	end_member(&member);
}

/* --- in a child ---------------------------------------------------------------- */

static inline bool said(const size_t *ids, unsigned count)
{
	return send(TALK, ids, count * sizeof(*ids), MSG_NOSIGNAL) ==
	       (ssize_t)(count * sizeof(*ids));
}

static inline bool heard(size_t *ids, unsigned count)
{
	return recv(TALK, ids, count * sizeof(*ids), 0) == (ssize_t)(count * sizeof(*ids));
}

/* Waits until the owner has checked everything. */
static inline void stay(void)
{
	char byte;

	(void)!recv(TALK, &byte, 1, 0);
}

/* Returns 0 on failure. */
static inline size_t child_insert(NC_cache *in, uint64_t seed, size_t size, enum NC_kind kind)
{
	unsigned char *data = malloc(size);
	NC_handle handle;
	size_t id = 0;

	if (!data || NC_unit_alloc(in, &handle, size, 0, kind, 0) < 0) {
		free(data);
		return 0;
	}
	pattern_fill(data, seed, 0, size);
	if (NC_write(&handle, data, size, 0) == (ssize_t)size && NC_insert(&handle) == 0)
		id = NC_cache_id(&handle);
	NC_free(&handle);
	free(data);
	return id;
}

static inline bool holds_pattern(NC_cache *in, size_t id, uint64_t seed, size_t size)
{
	unsigned char *data = malloc(size);
	bool same = data && NC_pread(in, id, data, size, 0) == (ssize_t)size &&
		    pattern_match(data, seed, 0, size) == size;

	free(data);
	return same;
}

/* Sends a hand-made request; returns the errno of the reply, or -1 without a reply. */
static inline int child_call(int socket, struct nc_wire_call call, const int *fds, unsigned count,
			     int *unit)
{
	struct {
		struct nc_wire_reply head;
		char behind[NC_WIRE_BEHIND_MAX];
	} reply;
	int received[NC_PEER_FDS_MAX];
	unsigned came = 0;
	ssize_t got;

	call.magic = NC_WIRE_MAGIC;
	*unit = -1;
	if (nc_peer_send(socket, &call, sizeof(call), fds, count))
		return -1;
	got = nc_peer_receive(socket, &reply, sizeof(reply), received, &came, 10000);
	if (got < (ssize_t)sizeof(reply.head))
		return -1;
	if (came && reply.head.flags & NC_WIRE_HAS_UNIT)
		*unit = received[0];
	else if (came)
		close(received[0]);
	/* The revocation map among the rest is not needed here. */
	if (came > 1)
		close(received[1]);
	return reply.head.error;
}

/* Attaches by hand; *segment is the segment's descriptor, if any. */
static inline int child_join(uint32_t flags, struct nc_wire_welcome *welcome, int *segment)
{
	int fds[NC_PEER_FDS_MAX], socket = nc_peer_connect(path, 5000);
	unsigned count = 0;

	*segment = -1;
	if (socket < 0 || nc_attach_hello(socket, flags))
		return -1;
	if (nc_peer_receive(socket, welcome, sizeof(*welcome), fds, &count, 10000) !=
	    (ssize_t)sizeof(*welcome))
		return -1;
	if (count)
		*segment = fds[0];
	return socket;
}

#endif
