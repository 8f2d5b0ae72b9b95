/* SPDX-License-Identifier: MIT */
/*
 * scenario-owner.c - a cache of two processes: this one is the owner and meets the
 * faults while a member attaches, makes calls and exits; or this one is the member.
 * The other process has no faults, and repeats all of it.
 */
#include "scenario.h"

#include <nabc.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <dirent.h>
#include <unistd.h>

#define SIZE ((size_t)20000)
#define NOT_MADE 100 /* a member could not insert its unit */

static pid_t other;
static int control = -1; /* to it */
static bool leaves;	 /* in this round it could not destroy its unit */

static void end_other(bool by_force)
{
	if (by_force)
		kill(other, SIGKILL);
	close(control);
	waitpid(other, NULL, 0);
}

/* --- the member of the owner that is tested ---------------------------------------------- */

/* Makes a unit without faults and without checks; returns its id, or 0. */
static size_t make_plainly(NC_cache *cache, enum NC_kind kind)
{
	char bytes[SIZE];
	NC_handle handle;
	size_t id = 0;

	for (size_t i = 0; i < SIZE; i++)
		bytes[i] = (char)byte_of(i);
	if (NC_unit_alloc(cache, &handle, SIZE, 0, kind, 0) < 0)
		return 0;
	if (NC_write(&handle, bytes, SIZE, 0) == (ssize_t)SIZE && NC_insert(&handle) == 0)
		id = NC_cache_id(&handle);
	NC_free(&handle);
	return id;
}

/* Makes all calls of a member; returns 0, or the number of the first that failed. */
static int want(NC_cache *cache, size_t lent)
{
	unsigned char bytes[64];
	struct NC_stat stats[4];
	struct NC_hold hold;
	size_t id, cursor = 0;

	if (NC_hold(cache, lent, &hold) < 0)
		return 2;
	if (NC_pread(cache, lent, bytes, sizeof(bytes), 100) != sizeof(bytes))
		return 3;
	for (size_t i = 0; i < sizeof(bytes); i++)
		if (bytes[i] != byte_of(100 + i))
			return 4;
	if (NC_release(&hold) < 0)
		return 5;
	id = make_plainly(cache, NC_KIND_SEALED);
	if (!id)
		return NOT_MADE;
	if (NC_set_priority(cache, id, NC_PRIORITY_LOW) < 0 || NC_set_lifetime(cache, id, 1000) < 0)
		return 6;
	if (NC_list(cache, &cursor, stats, sizeof(*stats), 4) < 1)
		return 7;
	if (NC_destroy(cache, id) < 0)
		return 8;
	id = make_plainly(cache, NC_KIND_RECYCLED);
	if (!id || NC_grant(cache, id, NC_USER, getuid()) < 0)
		return 9;
	return NC_destroy(cache, id) < 0 ? 10 : 0;
}

static void live_as_member(int owner)
{
	size_t lent;
	int result;

	while (read(owner, &lent, sizeof(lent)) == sizeof(lent)) {
		NC_cache *cache = NC_cache_attach(scratch("owner"), NULL);

		result = cache ? want(cache, lent) : 1;
		if (cache)
			NC_cache_close(cache);
		if (write(owner, &result, sizeof(result)) != sizeof(result))
			break;
	}
}

static void open_owner(void)
{
	other = start_beside(live_as_member, &control);
}

static void close_other(void)
{
	end_other(false);
}

/* A unit whose insertion failed for the member does not exist. */
static void check_units(NC_cache *cache, int result)
{
	struct NC_cache_stat stat;

	leaves |= result && result != NOT_MADE;
	if (OK(NC_cache_dispatch(cache)) && OK(NC_cache_stat(cache, &stat, sizeof(stat))))
		MUST(stat.units == 1 || leaves);
}

/* Serves the cache until the member has reported its result. */
static void serve_member(NC_cache *cache, int fd, size_t lent)
{
	int result;

	if (write(control, &lent, sizeof(lent)) != sizeof(lent))
		abort();
	while (await_either(control, fd)) {
		if (recv(control, &result, sizeof(result), MSG_DONTWAIT) == sizeof(result)) {
			MUST(result == 0 || !is_clean());
			check_units(cache, result);
			return;
		}
		(void)OK(NC_cache_dispatch(cache));
	}
	/* It waits for a reply that could not be sent; any other one must arrive. */
	if (!is_fault_of("sendmsg"))
		wrong("a member is not answered");
	end_other(true);
	other = start_beside(live_as_member, &control);
	leaves = true;
}

static int purge(void *context, const char *name)
{
	(void)context;
	return name[0] == 'n' ? 3 : 0;
}

static void grant_and_revoke(NC_cache *cache, size_t id)
{
	int number, pidfd = (int)syscall(SYS_pidfd_open, other, 0);

	if (OK(NC_grant(cache, id, NC_PROCESS, (id_t)other)))
		(void)OK(NC_revoke(cache, id, NC_PROCESS, (id_t)other));
	if (OK(NC_grant(cache, id, NC_PROCESS_FD, (id_t)pidfd)))
		(void)OK(NC_revoke(cache, id, NC_PROCESS_FD, (id_t)pidfd));
	if (OK(NC_grant(cache, id, NC_GROUP, getgid()))) {
		if (NUMBER(number, NC_grants(cache, id, NULL, 0, 0)))
			MUST(number >= 2);
		(void)OK(NC_revoke(cache, id, NC_GROUP, getgid()));
	}
	if (OK(NC_cache_on_purge(cache, purge, NULL)) && NUMBER(number, NC_purge(cache, "name")))
		MUST(number == 3);
	close(pidfd);
}

static void round_of_owner(void)
{
	const struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = 2 * MIB, .member_size = 256 * KIB,
				      .flags = NC_CACHE_NO_THREAD | NC_CACHE_PIN,
				      .orphan_lifetime = 1);
	NC_cache *cache;
	size_t id;
	int fd;

	leaves = false;
	if (!GOT(cache, NC_cache_open(&options)))
		return;
	id = make_unit(cache, NC_KIND_APPENDED, SIZE, 0);
	if (id && NUMBER(fd, NC_cache_fd(cache)) &&
	    OK(NC_cache_serve(cache, scratch("owner"), NULL)) &&
	    OK(NC_grant(cache, id, NC_USER, getuid()))) {
		serve_member(cache, fd, id);
		grant_and_revoke(cache, id);
		/* After a fault one that works replaces it. */
		serve_member(cache, fd, id);
		(void)OK(NC_cache_dispatch(cache));
	}
	(void)OK(NC_cache_close(cache));
	MUST(access(scratch("owner"), F_OK) < 0 || is_fault_of("unlink"));
}

const struct scenario scenario_owner = {
	.name = "owner", .open = open_owner, .close = close_other, .round = round_of_owner};

/* --- the owner of the member that is tested ------------------------------------------------ */

static size_t lent; /* its unit */

static void live_as_owner(int member)
{
	const struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = 8 * MIB, .orphan_lifetime = 1);
	NC_cache *cache = NC_cache_open(&options);
	size_t id = cache ? make_plainly(cache, NC_KIND_APPENDED) : 0;
	char byte;

	if (!id || NC_grant(cache, id, NC_USER, getuid()) < 0 ||
	    NC_cache_on_purge(cache, purge, NULL) < 0 ||
	    NC_cache_serve(cache, scratch("member"), NULL) < 0 ||
	    write(member, &id, sizeof(id)) != sizeof(id))
		_exit(1);
	while (read(member, &byte, 1) > 0)
		;
	NC_cache_close(cache);
}

static unsigned descriptors_of_other(void)
{
	unsigned count = 0;
	char path[64];
	DIR *fds;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)other);
	fds = opendir(path);
	while (fds && readdir(fds))
		count++;
	if (fds)
		closedir(fds);
	return count;
}

static unsigned descriptors_before;

static void open_member(void)
{
	other = start_beside(live_as_owner, &control);
	if (read(control, &lent, sizeof(lent)) != sizeof(lent))
		abort();
	descriptors_before = descriptors_of_other();
}

/* The units of the last member are dropped shortly after its exit, which may be noticed late. */
static void check_owner(void)
{
	unsigned left = 10000;

	while (left && descriptors_of_other() > descriptors_before) {
		usleep(1000);
		left--;
	}
	MUST(left);
}

static void close_member(void)
{
	end_other(false);
}

static void use_lent(NC_cache *cache)
{
	const unsigned char *data;
	struct NC_hold hold;
	struct NC_stat stat;
	size_t at = 0, run;
	ssize_t sent;
	int ends[2];

	if (!OK(NC_hold(cache, lent, &hold)))
		return;
	if (OK(NC_stat(cache, lent, &stat, sizeof(stat))))
		MUST(stat.size == SIZE);
	if (GOT(data, NC_data(&hold, &run, 0)))
		MUST(data[0] == byte_of(0));
	open_stream(ends, false);
	if (NUMBER(sent, NC_send(cache, ends[0],
				 &(struct NC_send)NC_SEND_INIT(.ranges = &(struct NC_range){lent, 0,
											    SIZE},
							       .range_count = 1)))) {
		take_bytes(ends[1], &at, SIZE);
		MUST(at == (size_t)sent);
	}
	close_pair(ends);
	(void)OK(NC_release(&hold));
}

static void make_and_grant(NC_cache *cache, enum NC_kind kind)
{
	size_t id = make_unit(cache, kind, SIZE, 0);

	if (!id)
		return;
	if (OK(NC_grant(cache, id, NC_PROCESS, (id_t)getppid()))) {
		(void)OK(NC_grants(cache, id, NULL, 0, 0));
		(void)OK(NC_revoke(cache, id, NC_PROCESS, (id_t)getppid()));
	}
	if (kind == NC_KIND_SEALED) {
		(void)OK(NC_set_priority(cache, id, NC_PRIORITY_LOW));
		/* It must not end before NC_destroy(), however busy the machine is. */
		(void)OK(NC_set_lifetime(cache, id, 5000));
	}
	/* A unit that cannot be destroyed stays as long as this process lives. */
	for (unsigned i = 0; i < 4 && !OK(NC_destroy(cache, id)); i++)
		;
}

static void look_after(NC_cache *cache)
{
	struct NC_cache_stat stat;
	struct NC_route routes[4];
	struct NC_stat units[4];
	size_t cursor = 0;
	int number;

	if (OK(NC_cache_stat(cache, &stat, sizeof(stat))))
		MUST(stat.units >= 1);
	(void)OK(NC_routes(cache, routes, sizeof(*routes), 4));
	(void)OK(NC_list(cache, &cursor, units, sizeof(*units), 4));
	(void)OK(NC_set_priority(cache, lent, NC_PRIORITY_HIGH));
	if (NUMBER(number, NC_purge(cache, "name")))
		MUST(number == 3);
}

static void round_of_member(void)
{
	static const unsigned ways[] = {0, NC_ATTACH_LIGHT, NC_ATTACH_OPERATOR};

	for (unsigned i = 0; i < 3; i++) {
		const struct NC_attach_options options = NC_ATTACH_OPTIONS_INIT(.flags = ways[i]);
		NC_cache *cache;

		if (!GOT(cache, NC_cache_attach(scratch("member"), &options)))
			continue;
		if (ways[i] == NC_ATTACH_OPERATOR)
			look_after(cache);
		else
			use_lent(cache);
		if (ways[i] == 0)
			make_and_grant(cache, NC_KIND_RECYCLED);
		make_and_grant(cache, NC_KIND_SEALED);
		(void)OK(NC_cache_dispatch(cache));
		(void)OK(NC_cache_close(cache));
	}
	check_owner();
}

const struct scenario scenario_member = {
	.name = "member", .open = open_member, .close = close_member, .round = round_of_member};
