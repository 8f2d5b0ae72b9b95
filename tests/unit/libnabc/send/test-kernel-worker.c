/* SPDX-License-Identifier: MIT */
/*
 * test-kernel-worker.c - unit tests of units that a worker passes to its server in the
 * kernel module, with a model of it.  Both are in this process; to the model the
 * worker is another process.
 */
#include <nabc-worker.h>
#include <nabc.h>
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/id.h"
#include "cache/hold.h"
#include "cache/index.h"
#include "cache/inspect.h"
#include "cache/remote-member.h"
#include "membership/handle.h"
#include "os/device.h"
#include "os/identity.h"
#include "os/peer.h"
#include "os/segment.h"
#include "send/transmit.h"
#include "store/pool.h"
#include "store/store.h"
#include "store/unit.h"

#include "device-model.h"
#include "kernel-fixture.h"
#include "suite.h"
#include "transmit-fixture.h"

#define WORKER 4242
#define SEGMENT (256 * KIB)

static struct nc_index worker;
static struct nc_remote_member *remote;
static int pair[2];

static void recognise(pid_t pid)
{
	nc_remote_member_identify(remote, &cache.device, pid, -1);
	/* This process's pid stands for the worker's in its own requests. */
	if (pid == WORKER)
		atomic_store(&worker.own.shared[0].maker, (uint64_t)getpid());
}

static void open_worker(void)
{
	struct nc_segment segment;
	size_t first;

	ck_assert_int_eq(nc_index_admit(&cache, SEGMENT, &remote, &first), 0);
	ck_assert_int_eq(nc_segment_adopt(&segment, dup(remote->store->segment.fd), SEGMENT), 0);
	ck_assert_int_eq(nc_index_init_attached(&worker, remote->number, &segment, first,
						remote->slots, remote->units.generation,
						cache.max_unit),
			 0);
	ck_assert_int_eq(nc_peer_pair(pair), 0);
	nc_index_connect(&worker, pair[0]);
}

/* Opens both with the module; returns false if this system has no pidfds to grant by. */
static bool open_both(void)
{
	int error;

	open_with_module(16 * MIB);
	open_worker();
	model.pid = WORKER;
	error = nc_index_use_device(&worker, &model_system);
	if (error == -ENOSYS)
		return false;
	ck_assert_int_eq(error, 0);
	recognise(WORKER);
	return true;
}

static void close_worker(void)
{
	nc_index_fini(&worker);
	close_pair(pair);
}

static void close_both(void)
{
	close_worker();
	close_cache();
	ck_assert_uint_eq(model_units(), 0);
}

/* A body of the worker with the pattern of a seed. */
static size_t answer(uint64_t seed, size_t size)
{
	unsigned char *data = must_alloc(size);
	NC_handle handle;
	size_t id;

	pattern_fill(data, seed, 0, size);
	ck_assert_int_eq(nc_handle_alloc(&handle, &worker, size, 0, NC_KIND_AUTO, 0), 0);
	ck_assert_int_eq(nc_handle_write(&handle, 0, data, size), (ssize_t)size);
	ck_assert_int_eq(nc_handle_insert(&handle, NC_WHOLE), 0);
	id = nc_handle_id(&handle);
	ck_assert_int_eq(nc_handle_free(&handle), 0);
	free(data);
	return id;
}

static enum NC_kind workers_kind(size_t id)
{
	struct NC_stat stat;

	ck_assert_int_eq(nc_inspect_unit(&worker, id, &stat), 0);
	return stat.kind;
}

/* Returns the worker's entry in the table; the first unit has the first one. */
static struct nc_unit_shared *entry_of(size_t id)
{
	return &worker.own.shared[nc_id_slot(id)];
}

static void check_sent(const struct nc_view *view, uint64_t seed, size_t size)
{
	struct NC_range range = {.id = view->id, .length = size};
	struct NC_hold lent;
	struct NC_send message =
		NC_SEND_INIT(.ranges = &range, .holds = &lent, .range_count = 1, .hold_count = 1);
	char *got = must_alloc(size);
	int ends[2];

	nc_hold_write(&lent, &cache, view);
	tcp_pair_between(ends, "127.0.0.1", "127.0.0.1", 4 << 20, 4 << 20);
	ck_assert_int_eq(nc_transmit_send(&transmit, ends[0], &message), (ssize_t)size);
	read_exactly(ends[1], got, size);
	ck_assert_uint_eq(pattern_match(got, seed, 0, size), size);
	close_pair(ends);
	free(got);
}

/* One response after the other, each sent once: the worker gets the memory back. */
START_TEST(test_one_shot)
{
	if (!open_both())
		return;
	for (unsigned i = 0; i < 100; i++) {
		size_t id = answer(i, 100 * KIB);
		struct nc_view view;

		ck_assert_int_eq(workers_kind(id), NC_KIND_KERNEL);
		ck_assert_uint_eq(model_units(), 1);
		/* As a backend receives it: held, and dropped after it was sent. */
		ck_assert_int_eq(nc_index_hold(&cache, id, false, &view), 0);
		ck_assert_int_eq(view.unit->store->kind, NC_KIND_KERNEL);
		ck_assert_int_eq(nc_index_destroy(&cache, id), 0);
		check_sent(&view, i, 100 * KIB);
		ck_assert_int_eq(nc_index_release(&cache, id), 0);
		ck_assert_int_eq(nc_index_hold(&cache, id, false, &view), -ENOENT);
	}
	ck_assert_uint_eq(counters().by_kernel.bytes, 100 * 100 * KIB);
	ck_assert_uint_eq(counters().kernel_copies, 0);
	close_both();
}
END_TEST

/* A kept unit, sent repeatedly, then destroyed by its creator while it is sent. */
START_TEST(test_kept)
{
	struct nc_view view;
	size_t id;

	if (!open_both())
		return;
	id = answer(7, 60 * KIB);
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_int_eq(nc_index_hold(&cache, id, false, &view), 0);
		check_sent(&view, 7, 60 * KIB);
		ck_assert_int_eq(nc_index_release(&cache, id), 0);
	}
	ck_assert_int_eq(nc_index_hold(&cache, id, false, &view), 0);
	ck_assert_int_eq(nc_index_destroy(&worker, id), 0);
	ck_assert_uint_eq(model_units(), 1);
	check_sent(&view, 7, 60 * KIB);
	ck_assert_int_eq(nc_index_release(&cache, id), 0);
	ck_assert_int_eq(nc_index_hold(&cache, id, false, &view), -ENOENT);
	/* Reclaimed with the next one. */
	ck_assert_int_eq(nc_index_destroy(&cache, answer(8, 60 * KIB)), 0);
	ck_assert_uint_eq(model_units(), 1);
	close_both();
}
END_TEST

/* The worker's death takes away nothing that the server holds. */
START_TEST(test_death)
{
	struct nc_view view, none;
	size_t id, other;

	if (!open_both())
		return;
	id = answer(7, 60 * KIB);
	other = answer(8, 60 * KIB);
	ck_assert_int_eq(nc_index_hold(&cache, id, false, &view), 0);
	close_worker();
	ck_assert_uint_eq(model_units(), 1);
	check_sent(&view, 7, 60 * KIB);
	ck_assert_int_eq(nc_index_hold(&cache, other, false, &none), -EACCES);
	nc_remote_member_identify(remote, NULL, 0, -1);
	nc_index_detach(&cache, remote);
	check_sent(&view, 7, 60 * KIB);
	ck_assert_int_eq(nc_index_release(&cache, id), 0);
	ck_assert_uint_eq(model_units(), 0);
	close_cache();
}
END_TEST

/* Copies for sockets that the module refuses, as far as the worker's segment has space. */
START_TEST(test_copies)
{
	struct nc_view view[3];
	size_t ids[3];

	if (!open_both())
		return;
	model.no_sockets = true;
	for (unsigned i = 0; i < 3; i++) {
		ids[i] = answer(i, 60 * KIB);
		ck_assert_int_eq(nc_index_hold(&cache, ids[i], false, &view[i]), 0);
	}
	check_sent(&view[0], 0, 60 * KIB);
	check_sent(&view[0], 0, 60 * KIB);
	check_sent(&view[1], 1, 60 * KIB);
	ck_assert_uint_eq(counters().kernel_copies, 2);
	ck_assert_uint_eq(counters().used, 0);
	remote->copied = SEGMENT - 56 * KIB;
	ck_assert_int_eq(nc_index_fetch(&cache, &view[2]), -ENOMEM);
	remote->copied = 120 * KIB;
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(nc_index_release(&cache, ids[i]), 0);
	ck_assert_uint_eq(remote->copied, 0);
	close_both();
}
END_TEST

/* Above its own limit the server gets a copy instead of a hold. */
START_TEST(test_no_hold)
{
	struct nc_view view;
	size_t id;

	if (!open_both())
		return;
	id = answer(5, 60 * KIB);
	model.no_holding = true;
	ck_assert_int_eq(nc_index_hold(&cache, id, false, &view), 0);
	ck_assert_int_eq(nc_index_destroy(&worker, id), 0);
	check_sent(&view, 5, 60 * KIB);
	ck_assert_uint_eq(counters().by_kernel.bytes, 0);
	ck_assert_int_eq(nc_index_release(&cache, id), 0);
	close_both();
}
END_TEST

/* Falls back to the worker's segment when the module is full, up to the size of that. */
START_TEST(test_bounds)
{
	size_t ids[8];
	unsigned kernel = 0;

	if (!open_both())
		return;
	for (unsigned i = 0; i < 6; i++) {
		ids[i] = answer(i, 60 * KIB);
		kernel += workers_kind(ids[i]) == NC_KIND_KERNEL;
	}
	ck_assert_uint_eq(kernel, 4);
	/* The server returned one: there is space again. */
	ck_assert_int_eq(nc_index_destroy(&cache, ids[0]), 0);
	ids[6] = answer(6, 60 * KIB);
	ck_assert_int_eq(workers_kind(ids[6]), NC_KIND_KERNEL);
	/* The segment is used as before. */
	ck_assert_int_eq(workers_kind(ids[5]), NC_KIND_RECYCLED);
	ck_assert_int_eq(nc_index_destroy(&cache, ids[1]), 0);
	model.memory = model.used;
	ids[7] = answer(7, 60 * KIB);
	ck_assert_int_eq(workers_kind(ids[7]), NC_KIND_KERNEL);
	close_both();
}
END_TEST

/* A worker that the server does not know, or knows as another process, uses its segment. */
START_TEST(test_unknown)
{
	if (!open_both())
		return;
	recognise(0);
	ck_assert_int_eq(workers_kind(answer(1, 60 * KIB)), NC_KIND_RECYCLED);
	recognise(getpid() + 1);
	ck_assert_int_eq(workers_kind(answer(2, 60 * KIB)), NC_KIND_RECYCLED);
	recognise(WORKER);
	ck_assert_int_eq(workers_kind(answer(3, 60 * KIB)), NC_KIND_KERNEL);
	/* Also for units that are cheaper in a segment. */
	ck_assert_int_eq(workers_kind(answer(4, 48 * KIB)), NC_KIND_KERNEL);
	ck_assert_int_eq(workers_kind(answer(5, 48 * KIB - 1)), NC_KIND_RECYCLED);
	close_both();
}
END_TEST

/* The server has no device: the worker must not store units there, and such a unit is refused. */
START_TEST(test_server_without)
{
	struct nc_view view;
	size_t id;

	open_cache(16 * MIB, NC_CACHE_NO_URING);
	open_worker();
	model.pid = WORKER;
	if (nc_index_use_device(&worker, &model_system))
		return;
	nc_remote_member_identify(remote, &cache.device, getpid(), -1);
	id = answer(1, 60 * KIB);
	ck_assert_int_eq(workers_kind(id), NC_KIND_RECYCLED);
	ck_assert_int_eq(nc_index_hold(&cache, id, false, &view), 0);
	ck_assert_int_eq(nc_index_release(&cache, id), 0);
	atomic_store(&worker.own.shared[0].maker, (uint64_t)getpid());
	id = answer(2, 60 * KIB);
	ck_assert_int_eq(workers_kind(id), NC_KIND_KERNEL);
	ck_assert_int_eq(nc_index_hold(&cache, id, false, &view), -EACCES);
	close_both();
}
END_TEST

/* --- invalid entries ------------------------------------------------------------- */

/* An invalid entry is refused, and the worker gets its slot back. */
static void check_lie(size_t id)
{
	struct nc_view view;

	ck_assert_int_eq(nc_index_hold(&cache, id, false, &view), -EACCES);
	ck_assert_int_eq(nc_index_hold(&cache, id, false, &view), -ENOENT);
	ck_assert_uint_eq(atomic_load(&entry_of(id)->word) & 0xf, NC_SHARED_DROPPED);
}

START_TEST(test_lies)
{
	size_t id, servers;

	if (!open_both())
		return;
	/* Ids that do not exist. */
	id = answer(1, 60 * KIB);
	atomic_store(&entry_of(id)->kernel, 77777);
	check_lie(id);
	id = answer(1, 60 * KIB);
	atomic_store(&entry_of(id)->kernel, UINT64_MAX);
	check_lie(id);
	/* Another size. */
	id = answer(2, 60 * KIB);
	atomic_store(&entry_of(id)->size, 60 * KIB + 1);
	check_lie(id);
	id = answer(2, 60 * KIB);
	atomic_store(&entry_of(id)->size, 60 * KIB - 1);
	check_lie(id);
	/* The server's own unit, which it may use. */
	servers = insert(3, 60 * KIB, 0, NC_KIND_KERNEL);
	id = answer(3, 60 * KIB);
	atomic_store(&entry_of(id)->kernel, unit_at(servers)->store->name);
	check_lie(id);
	/* A destroyed one, and one that is not inserted. */
	id = answer(4, 60 * KIB);
	ck_assert_int_eq(nc_device_destroy(&worker.device, atomic_load(&entry_of(id)->kernel)), 0);
	check_lie(id);
	close_both();
}
END_TEST

/* A worker must not respond with units that another process has granted to the server. */
START_TEST(test_others)
{
	int pidfd = nc_identity_open(getpid());
	struct nc_device other;
	uint64_t name;
	size_t id;
	char *base;

	if (pidfd < 0 || !open_both())
		return;
	model.pid = WORKER + 1;
	nc_device_init(&other, "");
	ck_assert_int_eq(nc_device_open(&other, &model_system), 0);
	ck_assert_int_eq(nc_device_alloc(&other, 60 * KIB, &name, &base), 0);
	ck_assert_int_eq(nc_device_insert(&other, name, 60 * KIB), 0);
	ck_assert_int_eq(nc_device_grant(&other, name, pidfd), 0);
	id = answer(1, 60 * KIB);
	atomic_store(&entry_of(id)->kernel, name);
	check_lie(id);
	/* The server itself could have used it. */
	ck_assert_int_eq(nc_device_hold(&cache.device, name), 0);
	ck_assert_int_eq(nc_device_release(&cache.device, name), 0);
	nc_device_close(&other);
	close(pidfd);
	close_both();
}
END_TEST

/* A process that has exited has no units any more, even if its pid is reused. */
START_TEST(test_ended)
{
	struct nc_view view;
	int pidfd;
	pid_t child;
	size_t id;

	if (!open_both())
		return;
	child = fork_alone();
	ck_assert_int_ge(child, 0);
	if (child == 0)
		_exit(0);
	pidfd = nc_identity_open(child);
	ck_assert_int_ge(pidfd, 0);
	await(pidfd, POLLIN);
	id = answer(1, 60 * KIB);
	nc_remote_member_identify(remote, &cache.device, WORKER, pidfd);
	ck_assert_int_eq(nc_index_hold(&cache, id, false, &view), -EACCES);
	nc_remote_member_identify(remote, NULL, 0, -1);
	close(pidfd);
	ck_assert_int_eq(waitpid(child, NULL, 0), child);
	close_both();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_one_shot);
	tcase_add_test(tcase, test_kept);
	tcase_add_test(tcase, test_death);
	tcase_add_test(tcase, test_copies);
	tcase_add_test(tcase, test_no_hold);
	tcase_add_test(tcase, test_bounds);
	tcase_add_test(tcase, test_unknown);
	tcase_add_test(tcase, test_server_without);
	tcase_add_test(tcase, test_lies);
	tcase_add_test(tcase, test_others);
	tcase_add_test(tcase, test_ended);
}

RUN_SUITE("kernel-worker", fill)
