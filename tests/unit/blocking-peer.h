/* SPDX-License-Identifier: MIT */
/*
 * blocking-peer.h - shared by test-blocking.c and its neighbour: a process that owns a cache, to
 * which this process is attached, and that is attached to a cache which this process owns.
 */
#ifndef BLOCKING_PEER_H
#define BLOCKING_PEER_H

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include <nabc.h>

#include "blocking-fixture.h"
#include "process-fixture.h"
#include "suite.h"

#define SIZE 100u

static char folder[64], path[3][100]; /* of the peer's cache, of this process's two */
static int commands;		      /* to the peer */

static NC_cache *cache, *operator_of, *mine; /* of the peer twice, and an own one */
static int full[2], empty[2]; /* sockets, one that takes no more, and one without bytes */

/* --- the peer ------------------------------------------------------------------------------ */

static inline size_t peer_unit(NC_cache *in)
{
	NC_handle handle;
	size_t id;

	GOOD(NC_unit_alloc(in, &handle, SIZE, 0, NC_KIND_AUTO, 0) == 0);
	GOOD(NC_printf(&handle, 0, "others") == 6);
	GOOD(NC_insert(&handle) == 0);
	id = NC_cache_id(&handle);
	GOOD(NC_free(&handle) == 0);
	GOOD(NC_grant(in, id, NC_USER, getuid()) == 0);
	return id;
}

/* The peer's process: it owns a cache, and does what each byte says. */
static inline void peer_run(int socket)
{
	struct NC_cache_options options = NC_CACHE_OPTIONS_INIT(.memory = 64 << 20);
	NC_cache *owned = NC_cache_open(&options);
	char command;

	GOOD(owned && NC_cache_serve(owned, path[0], NULL) == 0);
	GOOD(write(socket, "!", 1) == 1);
	while (read(socket, &command, 1) == 1) {
		size_t id = 0;

		if (command == 'u')
			id = peer_unit(owned);
		else
			GOOD(NC_cache_attach(path[1], NULL));
		GOOD(write(socket, &id, sizeof(id)) == sizeof(id));
	}
	_exit(0);
}

static inline size_t peer_ask(char command)
{
	size_t id;

	ck_assert_int_eq(write(commands, &command, 1), 1);
	read_exactly(commands, &id, sizeof(id));
	return id;
}

static inline void open_peer(void)
{
	int pair[2];
	char ready;

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	peer = fork_alone();
	ck_assert_int_ge(peer, 0);
	if (peer == 0) {
		close(pair[0]);
		peer_run(pair[1]);
	}
	close(pair[1]);
	commands = pair[0];
	read_exactly(commands, &ready, 1);
}

static inline void fill(NC_cache *in, NC_handle *handle, enum NC_kind kind)
{
	ck_assert_int_eq(NC_unit_alloc(in, handle, SIZE, 0, kind, 0), 0);
	ck_assert_int_eq(NC_printf(handle, 0, "%0100d", 1), SIZE);
}

static inline size_t insert(NC_cache *in, enum NC_kind kind)
{
	NC_handle handle;
	size_t id;

	fill(in, &handle, kind);
	ck_assert_int_eq(NC_insert(&handle), 0);
	id = NC_cache_id(&handle);
	ck_assert_int_eq(NC_free(&handle), 0);
	return id;
}

static inline long attach_and_close(void)
{
	NC_cache *attached = NC_cache_attach(path[0], NULL);

	return attached ? NC_cache_close(attached) : -1;
}

static inline long open_spare(void)
{
	struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = 1 << 20, .flags = NC_CACHE_NO_THREAD);
	NC_cache *opened = NC_cache_open(&options);

	return opened ? NC_cache_close(opened) : -1;
}

static inline void open_full(void)
{
	static const char bytes[4096];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, full), 0);
	while (send(full[0], bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	ck_assert_int_eq(errno, EAGAIN);
}

static inline void setup(void)
{
	struct NC_attach_options segment = NC_ATTACH_OPTIONS_INIT(.flags = 0),
				 whole = NC_ATTACH_OPTIONS_INIT(.flags = NC_ATTACH_OPERATOR);
	struct NC_cache_options options = NC_CACHE_OPTIONS_INIT(.memory = 16 << 20);
	static const char names[3][8] = {"peer", "mine", "other"};

	make_directory(folder);
	for (unsigned i = 0; i < 3; i++)
		snprintf(path[i], sizeof(path[i]), "%s/%s", folder, names[i]);
	open_peer();
	cache = NC_cache_attach(path[0], &segment);
	operator_of = NC_cache_attach(path[0], &whole);
	mine = NC_cache_open(&options);
	ck_assert(cache && operator_of && mine);
	ck_assert_int_eq(NC_cache_serve(mine, path[1], NULL), 0);
	peer_ask('a');
	open_full();
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, empty), 0);
}

static inline void teardown(void)
{
	close_pair(full);
	close_pair(empty);
	ck_assert_int_eq(NC_cache_close(operator_of), 0);
	/* The owner is stopped: a member leaves without it. */
	peer_stop();
	ck_assert_int_eq(NC_cache_close(cache), 0);
	peer_end();
	close(commands);
	ck_assert_int_eq(NC_cache_close(mine), 0);
	ck_assert_int_eq(unlink(path[0]), 0);
	ck_assert_int_eq(rmdir(folder), 0);
}

#endif
