/* SPDX-License-Identifier: MIT */
/*
 * test-serve.c - unit tests of serve.c: processes that attach to a cache and die,
 * connections that are not members, an owner that sends invalid data.  The second
 * process is the program worker-fixture, which ends when its standard input closes.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <nabc-worker.h>
#include <nabc.h>

#include "serve-fixture.h"
#include "suite.h"
#include "base/id.h"
#include "cache/grant.h"
#include "cache/hold.h"
#include "cache/index.h"
#include "cache/remote-member.h"
#include "membership/attach.h"
#include "membership/handle.h"
#include "membership/serve.h"
#include "os/peer.h"
#include "os/segment.h"
#include "send/transmit.h"
#include "store/pool.h"
#include "store/store.h"
#include "wire/rpc-client.h"
#include "wire/wire.h"

static int hold(size_t id)
{
	struct nc_view view;
	int error = nc_index_hold(&cache, id, false, &view);

	if (!error)
		ck_assert_int_eq(nc_index_release(&cache, id), 0);
	return error;
}

/* --- attaching within one process --------------------------------------------- */

static size_t insert_attached(size_t size)
{
	unsigned char *data = must_alloc(size);
	NC_handle handle;
	size_t id;

	pattern_fill(data, 1, 0, size);
	ck_assert_int_eq(nc_handle_alloc(&handle, &attached, size, 1448, NC_KIND_AUTO, 0), 0);
	ck_assert_int_eq(nc_handle_write(&handle, 0, data, size), (ssize_t)size);
	ck_assert_int_eq(nc_handle_insert(&handle, NC_WHOLE), 0);
	id = nc_handle_id(&handle);
	ck_assert_int_eq(nc_handle_free(&handle), 0);
	free(data);
	return id;
}

START_TEST(test_join)
{
	struct NC_range range = {.length = 9000};
	struct NC_send message = NC_SEND_INIT(.ranges = &range, .range_count = 1);
	struct NC_hold lent;
	struct nc_view view;
	int socket_fd, pair[2];
	char got[9000];

	open_owner();
	ck_assert_int_eq(join_here(&socket_fd), 0);
	ck_assert_uint_eq(cache.members, 1);
	ck_assert_uint_eq(attached.max_unit, cache.max_unit);
	ck_assert(!attached.owner);
	range.id = insert_attached(9000);
	ck_assert_uint_eq(nc_id_member(range.id), 1);
	/* The owner sends a unit of the member. */
	tcp_pair(pair);
	ck_assert_int_eq(nc_transmit_send(&transmit, pair[0], &message), 9000);
	read_exactly(pair[1], got, sizeof(got));
	ck_assert_uint_eq(pattern_match(got, 1, 0, sizeof(got)), sizeof(got));
	/* The owner returns it: the member's memory is free again. */
	ck_assert_int_eq(nc_index_destroy(&cache, range.id), 0);
	ck_assert_int_eq(hold(range.id), -ENOENT);
	for (unsigned i = 0; i < 100; i++) {
		size_t id = insert_attached(20000);

		ck_assert_int_eq(nc_index_destroy(&cache, id), 0);
		/* Collected or not, the member can reuse it when it needs memory. */
	}
	/* Destroyed by the member while the owner holds it: the owner's copy stays. */
	range.id = insert_attached(9000);
	message.holds = &lent;
	message.hold_count = 1;
	ck_assert_int_eq(nc_index_hold(&cache, range.id, false, &view), 0);
	nc_hold_write(&lent, &cache, &view);
	ck_assert_int_eq(nc_index_release(&cache, range.id), 0);
	ck_assert_int_eq(nc_transmit_send(&transmit, pair[0], &message), -EINVAL);
	ck_assert_int_eq(nc_index_hold(&cache, range.id, false, &view), 0);
	ck_assert_int_eq(nc_index_destroy(&attached, range.id), 0);
	message.hold_count = 0;
	ck_assert_int_eq(nc_transmit_send(&transmit, pair[0], &message), -ENOENT);
	message.hold_count = 1;
	ck_assert_int_eq(nc_transmit_send(&transmit, pair[0], &message), 9000);
	read_exactly(pair[1], got, sizeof(got));
	ck_assert_uint_eq(pattern_match(got, 1, 0, sizeof(got)), sizeof(got));
	ck_assert_int_eq(nc_index_release(&cache, range.id), 0);
	ck_assert_int_eq(hold(range.id), -ENOENT);
	close_pair(pair);
	nc_index_fini(&attached);
	close(socket_fd);
	dispatch_until(0);
	close_owner();
}
END_TEST

/* The member's segment cannot be shortened, and no seals can be added. */
START_TEST(test_segment_is_sealed)
{
	int socket_fd, fd;

	open_owner();
	ck_assert_int_eq(join_here(&socket_fd), 0);
	fd = attached.own.stores->segment.fd;
	ck_assert_int_lt(ftruncate(fd, 0), 0);
	ck_assert_int_lt(ftruncate(fd, 10 * MIB), 0);
	ck_assert_int_lt(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
	nc_index_fini(&attached);
	close(socket_fd);
	dispatch_until(0);
	close_owner();
}
END_TEST

START_TEST(test_serve)
{
	struct stat status;
	char other[160];

	open_owner();
	ck_assert_int_eq(stat(path, &status), 0);
	ck_assert(S_ISSOCK(status.st_mode));
	ck_assert_uint_eq(status.st_mode & 0777, 0600);
	snprintf(other, sizeof(other), "%s2", path);
	ck_assert_int_eq(nc_serve_listen(&owner, other, NULL), -EALREADY);
	ck_assert_int_lt(access(other, F_OK), 0);
	/* Without work, nothing is done. */
	ck_assert(!readable(owner.epoll));
	ck_assert_int_eq(nc_serve_dispatch(&owner), 0);
	close_owner();
}
END_TEST

START_TEST(test_serve_refused)
{
	struct NC_cache_options options = NC_CACHE_OPTIONS_INIT(.memory = MIB);
	char wrong[200];

	ck_assert_int_eq(nc_index_init_owner(&cache, &options), 0);
	ck_assert_int_eq(nc_serve_init(&owner, &cache), 0);
	memset(wrong, 'x', sizeof(wrong));
	wrong[199] = '\0';
	ck_assert_int_eq(nc_serve_listen(&owner, wrong, NULL), -ENAMETOOLONG);
	ck_assert_int_eq(nc_serve_listen(&owner, "", NULL), -EINVAL);
	ck_assert_int_eq(nc_serve_listen(&owner, "/nonexistent/socket", NULL), -ENOENT);
	ck_assert_int_eq(nc_serve_listen(&owner, "/dev/null", NULL), -EADDRINUSE);
	/* After failures it is still possible. */
	make_directory(directory);
	snprintf(path, sizeof(path), "%s/cache", directory);
	ck_assert_int_eq(nc_serve_listen(&owner, path, NULL), 0);
	nc_serve_fini(&owner);
	nc_index_fini(&cache);
	rmdir(directory);
}
END_TEST

/* Clients that connect and close, or connect and send, before and after being admitted. */
START_TEST(test_garbage_connections)
{
	unsigned descriptors;
	int guest[4], socket_fd;

	open_owner();
	descriptors = open_descriptors();
	for (unsigned i = 0; i < 20; i++) {
		for (unsigned k = 0; k < 4; k++) {
			guest[k] = nc_peer_connect(path, 5000);
			ck_assert_int_ge(guest[k], 0);
		}
		close(guest[0]);
		(void)send(guest[1], "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL);
		ck_assert_int_ge(nc_serve_dispatch(&owner), 1);
		(void)send(guest[2], "\377\377\377\377", 4, MSG_NOSIGNAL);
		shutdown(guest[3], SHUT_WR);
		/* Guests that send are disconnected. */
		while (readable(owner.epoll))
			ck_assert_int_ge(nc_serve_dispatch(&owner), 1);
		ck_assert_uint_eq(cache.members, 0);
		for (unsigned k = 1; k < 4; k++)
			close(guest[k]);
	}
	ck_assert_uint_eq(open_descriptors(), descriptors);
	ck_assert_int_eq(join_here(&socket_fd), 0);
	nc_index_fini(&attached);
	close(socket_fd);
	dispatch_until(0);
	close_owner();
}
END_TEST

/* --- an owner that misbehaves ------------------------------------------------- */

static struct nc_wire_welcome good_welcome(void)
{
	return (struct nc_wire_welcome){.magic = NC_WIRE_MAGIC,
					.version = NC_WIRE_VERSION,
					.member = 1,
					.slots = 64,
					.generation = 1,
					.segment_size = 64 << 10,
					.data_offset = PAGE,
					.max_unit = 16 << 10};
}

static int welcomed_by(const void *message, size_t length, const int *fds, unsigned count)
{
	struct nc_wire_welcome welcome;
	int received[NC_PEER_FDS_MAX], pair[2], error;
	unsigned descriptors = open_descriptors();

	ck_assert_int_eq(nc_peer_pair(pair), 0);
	if (length)
		ck_assert_int_eq(nc_peer_send(pair[0], message, length, fds, count), 0);
	close(pair[0]);
	error = nc_attach(&attached, pair[1], 1000, &welcome, received);
	if (!error)
		nc_index_fini(&attached);
	close(pair[1]);
	/* After any error, no received descriptor stays open. */
	ck_assert_uint_eq(open_descriptors(), descriptors);
	return error;
}

START_TEST(test_bad_owner)
{
	struct nc_wire_welcome welcome = good_welcome();
	struct nc_segment segment;
	int pair[2], fds[NC_PEER_FDS_MAX], unsealed;

	ck_assert_int_eq(nc_segment_create(&segment, 64 << 10, false, true), 0);
	for (unsigned i = 0; i < NC_PEER_FDS_MAX; i++)
		fds[i] = segment.fd;
	ck_assert_int_eq(welcomed_by(&welcome, sizeof(welcome), fds, 1), 0);
	ck_assert_int_eq(welcomed_by(NULL, 0, NULL, 0), -ECONNRESET);
	ck_assert_int_eq(welcomed_by("x", 1, NULL, 0), -EPROTO);
	ck_assert_int_eq(welcomed_by(&welcome, sizeof(welcome) - 1, fds, 1), -EPROTO);
	ck_assert_int_eq(welcomed_by(&welcome, sizeof(welcome), NULL, 0), -EPROTO);
	ck_assert_int_eq(welcomed_by(&welcome, sizeof(welcome), fds, 2), -EPROTO);
	ck_assert_int_eq(welcomed_by(&welcome, sizeof(welcome), fds, NC_PEER_FDS_MAX), -EPROTO);
	welcome.segment_size = 128 << 10;
	ck_assert_int_eq(welcomed_by(&welcome, sizeof(welcome), fds, 1), -EPROTO);
	welcome = good_welcome();
	unsealed = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	ck_assert_int_eq(ftruncate(unsealed, 64 << 10), 0);
	ck_assert_int_eq(welcomed_by(&welcome, sizeof(welcome), &unsealed, 1), -EPROTO);
	close(unsealed);
	welcome.version++;
	ck_assert_int_eq(welcomed_by(&welcome, sizeof(welcome), fds, 1), -EPROTONOSUPPORT);
	/* A newer owner that still supports this version. */
	welcome.oldest = NC_WIRE_VERSION;
	ck_assert_int_eq(welcomed_by(&welcome, sizeof(welcome), fds, 1), 0);
	welcome = good_welcome();
	welcome.error = EUSERS;
	ck_assert_int_eq(welcomed_by(&welcome, sizeof(welcome), NULL, 0), -EUSERS);
	ck_assert_int_eq(welcomed_by(&welcome, sizeof(welcome), fds, 3), -EUSERS);
	/* The client does not wait forever for a silent owner. */
	ck_assert_int_eq(nc_peer_pair(pair), 0);
	ck_assert_int_eq(nc_attach(&attached, pair[1], 1, &welcome, fds), -ETIMEDOUT);
	close_pair(pair);
	nc_segment_close(&segment);
}
END_TEST

/* --- other processes ----------------------------------------------------------- */

struct guest {
	pid_t pid;
	int to, from; /* its standard input and output */
};

static void guest_start(struct guest *guest)
{
	const char *program = helper_path("WORKER_FIXTURE", "worker-fixture");
	int in[2], out[2];

	ck_assert_int_eq(pipe2(in, O_CLOEXEC), 0);
	ck_assert_int_eq(pipe2(out, O_CLOEXEC), 0);
	guest->pid = fork_alone();
	if (guest->pid == 0) {
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		execl(program, program, "attach", path, (char *)NULL);
		_exit(127);
	}
	ck_assert_int_gt(guest->pid, 0);
	close(in[0]);
	close(out[1]);
	guest->to = in[1];
	guest->from = out[0];
}

static uint64_t guest_reports(const struct guest *guest)
{
	uint64_t value;

	read_exactly(guest->from, &value, sizeof(value));
	return value;
}

static uint64_t guest_does(const struct guest *guest, char order)
{
	ck_assert_int_eq(write(guest->to, &order, 1), 1);
	return guest_reports(guest);
}

static int guest_end(struct guest *guest)
{
	int status;

	close(guest->to);
	close(guest->from);
	ck_assert_int_eq(waitpid(guest->pid, &status, 0), guest->pid);
	ck_assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void check_sends(size_t id, const struct NC_hold *hold)
{
	struct NC_range range = {.id = id, .length = 10000};
	struct NC_send message = NC_SEND_INIT(.ranges = &range, .holds = hold, .range_count = 1,
					      .hold_count = hold != NULL);
	char got[10000];
	int pair[2];

	tcp_pair(pair);
	ck_assert_int_eq(nc_transmit_send(&transmit, pair[0], &message), 10000);
	read_exactly(pair[1], got, sizeof(got));
	ck_assert_mem_eq(got, "from a member\n\0", 15);
	for (size_t i = 14; i < sizeof(got); i++)
		expect(got[i] == 0);
	close_pair(pair);
}

START_TEST(test_other_process)
{
	struct NC_hold lent;
	struct nc_view view;
	struct guest guest;
	size_t id, own;
	NC_handle handle;
	char order = 'h';

	open_owner();
	ck_assert_int_eq(nc_handle_alloc(&handle, &cache, 10, 0, NC_KIND_AUTO, 0), 0);
	ck_assert_int_eq(nc_handle_insert(&handle, NC_WHOLE), 0);
	own = nc_handle_id(&handle);
	guest_start(&guest);
	dispatch_until(1);
	id = guest_reports(&guest);
	ck_assert_uint_eq(nc_id_member(id), 1);
	check_sends(id, NULL);
	/* The member cannot use the owner's units. */
	ck_assert_int_eq(write(guest.to, &order, 1), 1);
	ck_assert_int_eq(write(guest.to, &own, sizeof(own)), sizeof(own));
	while (!readable(guest.from)) {
		struct pollfd either[] = {{.fd = owner.epoll, .events = POLLIN},
					  {.fd = guest.from, .events = POLLIN}};

		/* The reply may arrive without a pending request. */
		ck_assert_int_gt(poll(either, 2, 60000), 0);
		ck_assert_int_ge(nc_serve_dispatch(&owner), 0);
	}
	ck_assert_uint_eq(guest_reports(&guest), EACCES);
	ck_assert_uint_eq(guest_does(&guest, 'a'), ENOTSUP);
	/* Destroyed there while held here: sendable until the end of the hold. */
	ck_assert_int_eq(nc_index_hold(&cache, id, false, &view), 0);
	ck_assert_uint_eq(guest_does(&guest, 'd'), 0);
	ck_assert_uint_eq(guest_does(&guest, 'd'), ENOENT);
	nc_hold_write(&lent, &cache, &view);
	check_sends(id, &lent);
	ck_assert_int_eq(nc_index_release(&cache, id), 0);
	ck_assert_int_eq(hold(id), -ENOENT);
	ck_assert_int_eq(guest_end(&guest), 0);
	dispatch_until(0);
	close_owner();
}
END_TEST

/* However a member exits, the owner's descriptor reports it, and its ids become invalid. */
START_TEST(test_death)
{
	struct guest guest;
	struct nc_view view;
	size_t id;

	open_owner();
	for (unsigned i = 0; i < 3; i++) {
		guest_start(&guest);
		dispatch_until(1);
		id = guest_reports(&guest);
		ck_assert_uint_eq(nc_id_member(id), i + 1);
		ck_assert_int_eq(nc_index_hold(&cache, id, false, &view), 0);
		ck_assert(!readable(owner.epoll));
		if (i == 0) {
			kill(guest.pid, SIGKILL);
			ck_assert_int_eq(waitpid(guest.pid, NULL, 0), guest.pid);
			close(guest.to);
			close(guest.from);
		} else if (i == 1) {
			ck_assert_int_eq(write(guest.to, "x", 1), 1);
			ck_assert_int_eq(guest_end(&guest), 7);
		} else {
			ck_assert_uint_eq(guest_does(&guest, 'c'), 0);
		}
		dispatch_until(0);
		ck_assert_int_eq(hold(id), -ENOENT);
		/* A unit that was held when it died is still complete. */
		ck_assert_mem_eq(nc_unit_base(view.unit), "from a member\n", 14);
		ck_assert_int_eq(nc_index_release(&cache, id), 0);
		ck_assert(nc_remote_member_vacant(view.remote));
		ck_assert_int_eq(nc_index_release(&cache, id), -EINVAL);
		if (i == 2)
			ck_assert_int_eq(guest_end(&guest), 0);
	}
	close_owner();
}
END_TEST

START_TEST(test_several_members)
{
	struct guest guest[5];
	size_t id[5];

	open_owner();
	for (unsigned i = 0; i < 5; i++)
		guest_start(&guest[i]);
	dispatch_until(5);
	for (unsigned i = 0; i < 5; i++) {
		id[i] = guest_reports(&guest[i]);
		for (unsigned k = 0; k < i; k++)
			ck_assert_uint_ne(nc_id_member(id[i]), nc_id_member(id[k]));
		check_sends(id[i], 0);
	}
	ck_assert_int_eq(guest_end(&guest[2]), 0);
	dispatch_until(4);
	ck_assert_int_eq(hold(id[2]), -ENOENT);
	for (unsigned i = 0; i < 5; i++)
		if (i != 2) {
			check_sends(id[i], 0);
			ck_assert_int_eq(guest_end(&guest[i]), 0);
		}
	dispatch_until(0);
	close_owner();
}
END_TEST

/* The sealed units of a worker are its own until its last response has been received. */
START_TEST(test_worker_ends)
{
	struct nc_serve_offer offer = {.memory = 128 << 10};
	struct nc_wire_reply reply;
	struct nc_rpc_client_load load = {0};
	struct nc_wire_call call = {.op = NC_WIRE_SEAL, .size = 100, .fraglen = PAGE};
	struct nc_wire_welcome welcome;
	struct nc_segment segment;
	struct nc_guest *guest;
	int fds[NC_PEER_FDS_MAX], pair[2];
	bool made;

	open_owner();
	ck_assert_int_eq(nc_peer_pair(pair), 0);
	ck_assert_int_eq(nc_serve_offer(&owner, pair[0], &offer, &guest), 0);
	ck_assert_int_eq(nc_serve_expect(&owner, guest, getpid(), -1, true), 0);
	ck_assert_int_eq(nc_attach(&attached, pair[1], 1000, &welcome, fds), 0);
	ck_assert_int_eq(nc_segment_create(&segment, PAGE, false, false), 0);
	ck_assert_int_eq(nc_segment_freeze(&segment), 0);
	call.magic = NC_WIRE_MAGIC;
	ck_assert_int_eq(nc_peer_send(pair[1], &call, sizeof(call), &segment.fd, 1), 0);
	ck_assert_int_ge(nc_serve_dispatch(&owner), 1);
	load.fd = nc_peer_receive(pair[1], &reply, sizeof(reply), fds, &(unsigned){0}, 1000) < 0;
	ck_assert_int_eq(load.fd, 0);
	ck_assert_int_eq(reply.error, 0);
	close(fds[0]);
	nc_segment_close(&segment);
	nc_index_fini(&attached);
	close(pair[1]);
	dispatch_until(0);
	ck_assert(nc_grants_known(&cache.grants, reply.id, nc_guest_subject(guest), &made));
	ck_assert(made);
	nc_serve_dismiss(&owner, guest);
	ck_assert(nc_grants_known(&cache.grants, reply.id, NULL, &made));
	ck_assert(made);
	ck_assert_int_eq(hold(reply.id), 0);
	close_owner();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_join);
	tcase_add_test(tcase, test_segment_is_sealed);
	tcase_add_test(tcase, test_serve);
	tcase_add_test(tcase, test_serve_refused);
	tcase_add_test(tcase, test_garbage_connections);
	tcase_add_test(tcase, test_bad_owner);
	tcase_add_test(tcase, test_other_process);
	tcase_add_test(tcase, test_death);
	tcase_add_test(tcase, test_several_members);
	tcase_add_test(tcase, test_worker_ends);
}

RUN_SUITE("serve", fill)
