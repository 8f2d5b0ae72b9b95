/* SPDX-License-Identifier: MIT */
/*
 * test-serve-access.c - unit tests of serve.c: which users may attach, how many
 * processes may, and what happens to those that send nothing or too much.
 */
#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <nabc-worker.h>
#include <nabc.h>

#include "cache/index.h"
#include "membership/attach.h"
#include "membership/serve.h"
#include "os/peer.h"
#include "send/transmit.h"
#include "wire/wire.h"

#include "process-fixture.h"
#include "serve-fixture.h"
#include "suite.h"

/* --- which users may attach ------------------------------------------------------- */

static void open_owner_to(const struct NC_serve_options *serve)
{
	struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = MIB, .member_size = 128 << 10,
				      .flags = NC_CACHE_NO_URING);

	make_directory(directory);
	ck_assert_int_eq(chmod(directory, 0755), 0);
	snprintf(path, sizeof(path), "%s/cache", directory);
	ck_assert_int_eq(nc_index_init_owner(&cache, &options), 0);
	nc_transmit_init(&transmit, &cache);
	ck_assert_int_eq(nc_serve_init(&owner, &cache), 0);
	ck_assert_int_eq(nc_serve_listen(&owner, path, serve), 0);
}

/* In a child, as another user: the errno of attaching, or 0. */
static int join_as(uid_t uid, gid_t gid, gid_t other_group, uint32_t flags)
{
	struct nc_wire_welcome welcome = {0};
	int fds[NC_PEER_FDS_MAX], error, socket_fd;
	unsigned count = 0;

	if (setgroups(other_group ? 1 : 0, &other_group) || setresgid(gid, gid, gid) ||
	    setresuid(uid, uid, uid))
		return 120;
	socket_fd = nc_peer_connect(path, 5000);
	if (socket_fd < 0)
		return -socket_fd;
	error = nc_attach_hello(socket_fd, flags);
	if (error && error != -EPIPE && error != -ECONNRESET)
		return 121;
	error = (int)nc_peer_receive(socket_fd, &welcome, sizeof(welcome), fds, &count, 10000);
	if (error == -ECONNRESET)
		error = (int)nc_peer_receive(socket_fd, &welcome, sizeof(welcome), fds, &count,
					     10000);
	error = nc_wire_check_welcome(&welcome, error < 0 ? 0 : (size_t)error, count);
	if (!error && flags & NC_WIRE_OPERATOR && !(welcome.flags & NC_WIRE_OPERATOR))
		return 122;
	return -error;
}

static int joins(uid_t uid, gid_t gid, gid_t other_group, uint32_t flags)
{
	pid_t pid = fork_alone();
	int status;

	if (pid == 0)
		_exit(join_as(uid, gid, other_group, flags));
	ck_assert_int_gt(pid, 0);
	while (waitpid(pid, &status, WNOHANG) == 0) {
		(void)poll(&(struct pollfd){.fd = owner.epoll, .events = POLLIN}, 1, 5);
		ck_assert_int_ge(nc_serve_dispatch(&owner), 0);
	}
	ck_assert(WIFEXITED(status));
	dispatch_until(0);
	return WEXITSTATUS(status);
}

static bool skip_unless_root(const char *what)
{
	if (geteuid() == 0)
		return false;
	printf("serve: %s: skipped: only root can be another user\n", what);
	fflush(stdout);
	return true;
}

START_TEST(test_users)
{
	uid_t users[] = {4001, 4002};
	struct NC_serve_options serve =
		NC_SERVE_OPTIONS_INIT(.mode = 0666, .users = users, .user_count = 2);

	if (skip_unless_root("users"))
		return;
	/* By default only the owner's user and root, and the mode of the file says so too. */
	open_owner_to(NULL);
	ck_assert_int_eq(joins(0, 0, 0, NC_WIRE_SEGMENT), 0);
	ck_assert_int_eq(joins(4001, 4001, 0, 0), EACCES);
	ck_assert_int_eq(chmod(path, 0666), 0);
	ck_assert_int_eq(joins(4001, 4001, 0, 0), EACCES);
	close_owner();
	open_owner_to(&serve);
	ck_assert_int_eq(joins(4001, 4001, 0, NC_WIRE_SEGMENT), 0);
	ck_assert_int_eq(joins(4002, 1, 0, 0), 0);
	ck_assert_int_eq(joins(4003, 4001, 4001, 0), EACCES);
	ck_assert_int_eq(joins(0, 0, 0, 0), 0);
	/* Operators must be the owner's user or root. */
	ck_assert_int_eq(joins(4001, 4001, 0, NC_WIRE_OPERATOR), EPERM);
	ck_assert_int_eq(joins(0, 0, 0, NC_WIRE_OPERATOR), 0);
	close_owner();
}
END_TEST

START_TEST(test_group)
{
	struct NC_serve_options serve =
		NC_SERVE_OPTIONS_INIT(.mode = 0660, .flags = NC_SERVE_GROUP, .group = 5005);
	struct stat status;

	if (skip_unless_root("group"))
		return;
	open_owner_to(&serve);
	ck_assert_int_eq(stat(path, &status), 0);
	ck_assert_uint_eq(status.st_gid, 5005);
	ck_assert_uint_eq(status.st_mode & 0777, 0660);
	ck_assert_int_eq(joins(4001, 5005, 0, 0), 0);
	ck_assert_int_eq(joins(4001, 4001, 5005, NC_WIRE_SEGMENT), 0);
	ck_assert_int_eq(joins(4001, 4001, 4001, 0), EACCES);
	ck_assert_int_eq(joins(4001, 5005, 0, NC_WIRE_OPERATOR), EPERM);
	close_owner();
}
END_TEST

START_TEST(test_everyone)
{
	struct NC_serve_options serve = NC_SERVE_OPTIONS_INIT(.mode = 0666);

	if (skip_unless_root("everyone"))
		return;
	open_owner_to(&serve);
	ck_assert_int_eq(joins(4001, 4001, 0, NC_WIRE_SEGMENT), 0);
	ck_assert_int_eq(joins(65534, 65534, 0, 0), 0);
	ck_assert_int_eq(joins(65534, 65534, 0, NC_WIRE_OPERATOR), EPERM);
	ck_assert_int_eq(joins(65534, 65534, 0, NC_WIRE_OPERATOR | NC_WIRE_SEGMENT), EPERM);
	close_owner();
}
END_TEST

/* --- connections that only occupy resources ------------------------------------------- */

/* Silent connections are dropped in favour of those that send, however many there are. */
START_TEST(test_silent_guests)
{
	int silent[200], socket_fd;
	unsigned gone = 0;

	open_owner();
	for (unsigned i = 0; i < 200; i++) {
		silent[i] = nc_peer_connect(path, 5000);
		ck_assert_int_ge(silent[i], 0);
		while (readable(owner.epoll))
			ck_assert_int_ge(nc_serve_dispatch(&owner), 0);
		ck_assert_uint_le(owner.waiting, 64);
	}
	ck_assert_int_eq(join_here(&socket_fd), 0);
	for (unsigned i = 0; i < 200; i++) {
		gone += readable(silent[i]);
		close(silent[i]);
	}
	ck_assert_uint_ge(gone, 200 - 64);
	ck_assert_uint_lt(gone, 200);
	nc_index_fini(&attached);
	close(socket_fd);
	dispatch_until(0);
	while (owner.waiting) {
		await(owner.epoll, POLLIN);
		ck_assert_int_ge(nc_serve_dispatch(&owner), 0);
	}
	close_owner();
}
END_TEST

/* Members leave most descriptors to the owner. */
START_TEST(test_many_members)
{
	struct nc_wire_welcome welcome;
	struct rlimit limit;
	int member[64], fds[NC_PEER_FDS_MAX];
	unsigned count, let_in = 0;

	open_owner();
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = 240;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	for (unsigned i = 0; i < 40; i++) {
		member[i] = nc_peer_connect(path, 5000);
		(void)nc_attach_hello(member[i], 0);
		while (!readable(member[i])) {
			await(owner.epoll, POLLIN);
			ck_assert_int_ge(nc_serve_dispatch(&owner), 1);
		}
		if (nc_peer_receive(member[i], &welcome, sizeof(welcome), fds, &count, 0) < 0)
			(void)nc_peer_receive(member[i], &welcome, sizeof(welcome), fds, &count, 0);
		ck_assert(welcome.error == 0 || welcome.error == EUSERS);
		let_in += welcome.error == 0;
	}
	ck_assert_uint_eq(let_in, 30);
	ck_assert_uint_eq(cache.members, 30);
	close(member[0]);
	dispatch_until(29);
	member[0] = nc_peer_connect(path, 5000);
	ck_assert_int_eq(nc_attach_hello(member[0], 0), 0);
	dispatch_until(30);
	for (unsigned i = 0; i < 40; i++)
		close(member[i]);
	dispatch_until(0);
	close_owner();
}
END_TEST

/* Without a descriptor to accept with, new connections are rejected: no loop spins. */
START_TEST(test_no_descriptors)
{
	struct nc_wire_welcome welcome;
	int guest[3], fds[NC_PEER_FDS_MAX], socket_fd;
	unsigned count;

	if (skip_without_limits("serve: no descriptors"))
		return;
	open_owner();
	for (unsigned i = 0; i < 3; i++)
		guest[i] = nc_peer_connect(path, 5000);
	hog_descriptors(400, 0);
	for (unsigned i = 0; i < 3; i++) {
		ck_assert(readable(owner.epoll));
		ck_assert_int_ge(nc_serve_dispatch(&owner), 1);
	}
	ck_assert(!readable(owner.epoll));
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_int_eq(
			nc_peer_receive(guest[i], &welcome, sizeof(welcome), fds, &count, 0),
			sizeof(welcome));
		ck_assert_int_eq(welcome.error, EMFILE);
		close(guest[i]);
	}
	free_descriptors();
	/* One descriptor to accept with, none for a pidfd, none for its segment. */
	for (unsigned spare = 1; spare < 4; spare++) {
		guest[0] = nc_peer_connect(path, 5000);
		ck_assert_int_eq(nc_attach_hello(guest[0], NC_WIRE_SEGMENT), 0);
		hog_descriptors(400, spare);
		for (unsigned i = 0; i < 10 && readable(owner.epoll); i++)
			ck_assert_int_ge(nc_serve_dispatch(&owner), 0);
		ck_assert(readable(guest[0]));
		ck_assert(!readable(owner.epoll));
		close(guest[0]);
		free_descriptors();
		dispatch_until(0);
		while (readable(owner.epoll))
			ck_assert_int_ge(nc_serve_dispatch(&owner), 0);
	}
	/* Even the spare descriptor is lost: no connection is accepted until there is one again. */
	guest[0] = nc_peer_connect(path, 5000);
	close(owner.spare);
	owner.spare = -1;
	hog_descriptors(400, 0);
	ck_assert_int_ge(nc_serve_dispatch(&owner), 1);
	ck_assert(!readable(owner.epoll));
	ck_assert_int_eq(nc_serve_dispatch(&owner), 0);
	free_descriptors();
	ck_assert_int_eq(nc_attach_hello(guest[0], 0), 0);
	ck_assert_int_ge(nc_serve_dispatch(&owner), 1);
	dispatch_until(1);
	close(guest[0]);
	ck_assert_int_eq(join_here(&socket_fd), 0);
	nc_index_fini(&attached);
	close(socket_fd);
	dispatch_until(0);
	close_owner();
}
END_TEST

/* --- ends ------------------------------------------------------------------------------- */

/* The process exits while its socket lives on in another one: its membership ends all the same. */
START_TEST(test_socket_outlives)
{
	struct nc_wire_welcome welcome;
	int fds[NC_PEER_FDS_MAX], pair[2], kept;
	unsigned count;
	char byte;
	pid_t pid;

	if (skip_without_pidfds("serve: socket outlives"))
		return;
	open_owner();
	ck_assert_int_eq(nc_peer_pair(pair), 0);
	pid = fork_alone();
	if (pid == 0) {
		int socket_fd = nc_peer_connect(path, 5000);

		if (socket_fd < 0 || nc_attach_hello(socket_fd, NC_WIRE_SEGMENT) ||
		    nc_peer_receive(socket_fd, &welcome, sizeof(welcome), fds, &count, 10000) < 0 ||
		    nc_peer_send(pair[1], "x", 1, &socket_fd, 1))
			_exit(1);
		for (;;)
			pause();
	}
	dispatch_until(1);
	ck_assert_int_eq(nc_peer_receive(pair[0], &byte, 1, &kept, &count, 10000), 1);
	ck_assert_uint_eq(count, 1);
	ck_assert(!readable(owner.epoll));
	/* Nor may another process send over it: the hello was sent by the first one. */
	end_child(pid);
	dispatch_until(0);
	await(kept, POLLIN);
	ck_assert_int_eq(recv(kept, &byte, 1, 0), 0);
	close(kept);
	close_pair(pair);
	close_owner();
}
END_TEST

/* A hello from a process other than the one that connected. */
START_TEST(test_hello_of_another)
{
	int socket_fd, status;
	pid_t pid;

	open_owner();
	socket_fd = nc_peer_connect(path, 5000);
	pid = fork_alone();
	if (pid == 0)
		_exit(nc_attach_hello(socket_fd, NC_WIRE_SEGMENT) ? 1 : 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	while (!readable(socket_fd)) {
		await(owner.epoll, POLLIN);
		ck_assert_int_ge(nc_serve_dispatch(&owner), 1);
	}
	ck_assert_uint_eq(cache.members, 0);
	close(socket_fd);
	/* With descriptors the hello is invalid; they are never received. */
	socket_fd = nc_peer_connect(path, 5000);
	ck_assert_int_eq(nc_peer_send(socket_fd,
				      &(struct nc_wire_hello){.magic = NC_WIRE_MAGIC,
							      .version = NC_WIRE_VERSION},
				      sizeof(struct nc_wire_hello), &socket_fd, 1),
			 0);
	while (readable(owner.epoll))
		ck_assert_int_ge(nc_serve_dispatch(&owner), 1);
	ck_assert_uint_eq(cache.members, 0);
	close(socket_fd);
	close_owner();
}
END_TEST

/* --- many threads ---------------------------------------------------------------- */

static _Atomic bool coming;

static void *dispatch(void *context)
{
	(void)context;
	while (atomic_load(&coming)) {
		struct pollfd wait = {.fd = owner.epoll, .events = POLLIN};

		(void)poll(&wait, 1, 1);
		if (nc_serve_dispatch(&owner) < 0)
			return "dispatch";
	}
	return NULL;
}

/* Two threads do the owner's work concurrently; each guest leaves once. */
START_TEST(test_two_dispatchers)
{
	pthread_t threads[2];
	void *complaint;

	open_owner();
	atomic_store(&coming, true);
	for (unsigned i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, dispatch, NULL), 0);
	for (unsigned i = 0; i < scaled(500); i++) {
		int guest = nc_peer_connect(path, 5000);

		ck_assert_int_ge(guest, 0);
		if (i % 2) {
			(void)send(guest, "x", 1, MSG_NOSIGNAL);
		} else {
			ck_assert_int_eq(nc_attach_hello(guest, i % 4 ? NC_WIRE_SEGMENT : 0), 0);
			await(guest, POLLIN);
		}
		close(guest);
	}
	atomic_store(&coming, false);
	for (unsigned i = 0; i < 2; i++) {
		pthread_join(threads[i], &complaint);
		ck_assert_msg(!complaint, "%s", (const char *)complaint);
	}
	while (readable(owner.epoll))
		ck_assert_int_ge(nc_serve_dispatch(&owner), 0);
	ck_assert_uint_eq(cache.members, 0);
	close_owner();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_users);
	tcase_add_test(tcase, test_group);
	tcase_add_test(tcase, test_everyone);
	tcase_add_test(tcase, test_silent_guests);
	tcase_add_test(tcase, test_many_members);
	tcase_add_test(tcase, test_no_descriptors);
	tcase_add_test(tcase, test_socket_outlives);
	tcase_add_test(tcase, test_hello_of_another);
	tcase_add_test(tcase, test_two_dispatchers);
}

RUN_SUITE("serve-access", fill)
