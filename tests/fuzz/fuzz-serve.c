/* SPDX-License-Identifier: MIT */
/*
 * fuzz-serve.c - processes that connect to a cache (libnabc/membership/serve.c): they
 * send arbitrary messages with arbitrary descriptors, hang up, or never read.  The
 * owner continues, without a descriptor or member too many.
 */
#include <errno.h>
#include <nabc-worker.h>
#include <nabc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cache/index.h"
#include "membership/serve.h"
#include "os/peer.h"
#include "wire/wire.h"

#include "descriptors.h"
#include "fuzz.h"

#define MIB ((size_t)1 << 20)
#define CLIENTS 4u

static char folder[] = "/tmp/fuzz-attach-XXXXXX", path[sizeof(folder) + 8];
static struct nc_index cache;
static struct nc_serve owner;
static int clients[CLIENTS];

static void remove_folder(void)
{
	unlink(path);
	rmdir(folder);
}

static void open_owner(void)
{
	static const struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = MIB, .member_size = 64 << 10,
				      .flags = NC_CACHE_NO_URING);

	if (!*path) {
		MUST(mkdtemp(folder));
		atexit(remove_folder);
		snprintf(path, sizeof(path), "%s/cache", folder);
	}
	MUST(nc_index_init_owner(&cache, &options) == 0);
	MUST(nc_serve_init(&owner, &cache) == 0);
	MUST(nc_serve_listen(&owner, path, NULL) == 0);
	for (unsigned i = 0; i < CLIENTS; i++)
		clients[i] = -1;
}

static void hang_up(int *client)
{
	if (*client >= 0)
		close(*client);
	*client = -1;
}

/* Until no connection waits any more, including those that were closed again. */
static void dispatch(void)
{
	int events;

	for (unsigned turns = 0; (events = nc_serve_dispatch(&owner)); turns++)
		MUST(events > 0 && turns < 10000);
}

/* Sends a hello or a call that is almost valid, or arbitrary bytes. */
static void say(struct input *input, int client, unsigned how)
{
	struct nc_wire_hello hello = {.magic = NC_WIRE_MAGIC, .version = NC_WIRE_VERSION};
	struct nc_wire_call call = {.magic = NC_WIRE_MAGIC};
	unsigned count = (unsigned)input_number(input, 1) % 5;
	int fds[] = {owner.epoll, 0, 0, 0, 0};
	size_t length = 20;
	const uint8_t *bytes;

	switch (how % 3) {
	case 0:
		hello.flags = (uint32_t)input_number(input, 1);
		(void)nc_peer_send(client, &hello, sizeof(hello), NULL, 0);
		break;
	case 1:
		call.op = (uint32_t)input_number(input, 1);
		call.id = input_number(input, 2);
		call.size = input_number(input, 2);
		call.who = (uint32_t)input_number(input, 1);
		(void)nc_peer_send(client, &call, sizeof(call), fds + 1, count);
		break;
	default:
		bytes = input_bytes(input, &length);
		(void)nc_peer_send(client, bytes, length, fds, count);
		break;
	}
}

static void hear(int client)
{
	char message[sizeof(struct nc_wire_reply) + NC_WIRE_BEHIND_MAX];
	int fds[NC_PEER_FDS_MAX];
	unsigned count;

	while (nc_peer_receive(client, message, sizeof(message), fds, &count, 0) > 0)
		nc_peer_close_fds(fds, count);
}

static void act(struct input *input)
{
	unsigned choice = (unsigned)input_number(input, 1);
	int *client = &clients[choice % CLIENTS];

	if (*client < 0) {
		*client = nc_peer_connect(path, 0);
		return;
	}
	switch (choice >> 2 & 7) {
	case 0:
		hang_up(client);
		break;
	case 1:
		shutdown(*client, choice >> 5 & 1 ? SHUT_WR : SHUT_RDWR);
		break;
	case 2:
		hear(*client);
		break;
	case 3:
		dispatch();
		break;
	default:
		say(input, *client, choice >> 5);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned before = open_descriptors();
	struct input input = {data, size};

	open_owner();
	while (input.left)
		act(&input);
	for (unsigned i = 0; i < CLIENTS; i++)
		hang_up(&clients[i]);
	dispatch();
	MUST(owner.guests == NULL && owner.waiting == 0 && cache.members == 0);
	nc_serve_fini(&owner);
	nc_index_fini(&cache);
	MUST(open_descriptors() == before);
	return 0;
}
