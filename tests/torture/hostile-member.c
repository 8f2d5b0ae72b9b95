/* SPDX-License-Identifier: MIT */
/*
 * hostile-member.c - a process of another user that connects to a cache and does all
 * that a member should not:
 *
 *	hostile-member SOCKET CPU SEED FIGURES [ID...]
 *
 * It attaches and is silent, sends incomplete or invalid messages, passes unwanted
 * descriptors, requests units that are not its own (the IDs), sends requests without
 * reading, overwrites the memory that it received, and exits in the middle of it.
 * Figures: 0 connections, 1 messages, 2 refusals, 3 operator's rights that it got, 4
 * answers it should not have had, 5 thrown out.  Single-threaded; owns its sockets.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/peer.h"
#include "wire/wire.h"

#include "content.h"
#include "hostile.h"

#define HELD 24
#define IDS 64
#define WAIT_MS 200

enum { CONNECTED, MESSAGES, REFUSED, OPERATOR, STOLEN, THROWN };

static uint64_t seed;
static uint64_t ids[IDS];
static unsigned id_count;

static bool say(int socket, const void *data, size_t length, unsigned fds)
{
	int error, many[NC_PEER_FDS_MAX] = {0};

	for (unsigned i = 0; i < fds; i++)
		many[i] = socket;
	error = nc_peer_send(socket, data, length, many, fds);
	figures[MESSAGES] += error == 0;
	figures[THROWN] += error == -EPIPE || error == -ECONNRESET;
	return error == 0;
}

/* Returns whether the reply contains something that no call of this member permits. */
static bool is_theft(const struct nc_wire_reply *reply, uint32_t op)
{
	switch (op) {
	case NC_WIRE_FETCH:
	case NC_WIRE_DESTROY:
	case NC_WIRE_GRANT:
	case NC_WIRE_STAT:
	case NC_WIRE_COUNTERS:
	case NC_WIRE_KEEP:
	case NC_WIRE_PURGE:
	case NC_WIRE_ROUTE:
	case NC_WIRE_NAME_SET:
	case NC_WIRE_NAME_HOLD:
	case NC_WIRE_NAME_REMOVE:
		return reply->error == 0;
	default:
		return false;
	}
}

static void spoil(int segment)
{
	struct stat stat;
	char *memory;

	if (fstat(segment, &stat) < 0 || stat.st_size < 8)
		return;
	memory = mmap(NULL, (size_t)stat.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, segment, 0);
	if (memory == MAP_FAILED)
		return;
	for (unsigned i = 0; i < 200; i++) {
		uint64_t value = content_next(&seed);
		size_t at = content_next(&seed) % (i % 2 ? 65536 : (size_t)stat.st_size);

		if (at + sizeof(value) < (size_t)stat.st_size)
			memcpy(memory + at, &value, i % 3 ? sizeof(value) : 1);
	}
	munmap(memory, (size_t)stat.st_size);
	(void)!ftruncate(segment, 0);
	(void)fallocate(segment, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096);
}

/* Attaches by the protocol; returns true if the welcome has arrived. */
static bool join(int socket, uint32_t flags, struct nc_wire_welcome *welcome)
{
	struct nc_wire_hello hello = {NC_WIRE_MAGIC, NC_WIRE_VERSION, flags, 0};
	int fds[NC_PEER_FDS_MAX];
	unsigned count = NC_PEER_FDS_MAX;
	ssize_t got;

	if (!say(socket, &hello, sizeof(hello), 0))
		return false;
	got = nc_peer_receive(socket, welcome, sizeof(*welcome), fds, &count, WAIT_MS);
	if (got != sizeof(*welcome)) {
		if (got > 0)
			nc_peer_close_fds(fds, count);
		return false;
	}
	figures[REFUSED] += welcome->error != 0;
	figures[OPERATOR] += welcome->error == 0 && (welcome->flags & NC_WIRE_OPERATOR);
	if (count && content_next(&seed) % 2)
		spoil(fds[0]);
	nc_peer_close_fds(fds, count);
	return welcome->error == 0;
}

static uint64_t some_id(void)
{
	uint64_t id = id_count ? ids[content_next(&seed) % id_count] : content_next(&seed);

	/* An existing one, or one beside it. */
	return content_next(&seed) % 2 ? id : id ^ UINT64_C(1) << content_next(&seed) % 64;
}

static void call(int socket, unsigned times, bool reads)
{
	unsigned char reply[NC_WIRE_BEHIND_MAX + sizeof(struct nc_wire_reply)];

	for (unsigned i = 0; i < times && !ended; i++) {
		struct nc_wire_call call = {
			.magic = NC_WIRE_MAGIC,
			.op = (uint32_t)(content_next(&seed) % (NC_WIRE_OPS + 2)),
			.tag = content_next(&seed),
			.id = some_id(),
			.size = content_next(&seed) >> content_next(&seed) % 64,
			.fraglen = content_next(&seed) >> content_next(&seed) % 64,
			.slot = (uint32_t)(content_next(&seed) >> content_next(&seed) % 64),
			.principal = (uint32_t)(content_next(&seed) % 5),
			.who = (uint32_t)getuid(),
			.length = 0};
		size_t length = sizeof(call);
		int fds[NC_PEER_FDS_MAX];
		unsigned count = NC_PEER_FDS_MAX;

		if (content_next(&seed) % 8 == 0)
			length = content_next(&seed) % sizeof(call);
		if (content_next(&seed) % 8 == 0)
			call.length = (uint32_t)content_next(&seed);
		if (!say(socket, &call, length,
			 content_next(&seed) % 4 ? 0 : (unsigned)content_next(&seed) % 4))
			return;
		if (!reads)
			continue;
		if (nc_peer_receive(socket, reply, sizeof(reply), fds, &count, WAIT_MS) >=
		    (ssize_t)sizeof(struct nc_wire_reply)) {
			struct nc_wire_reply head;

			memcpy(&head, reply, sizeof(head));
			figures[STOLEN] += head.tag == call.tag && is_theft(&head, call.op);
			nc_peer_close_fds(fds, count);
		}
	}
}

static void be_hostile(int socket)
{
	struct nc_wire_hello hello = {NC_WIRE_MAGIC, NC_WIRE_VERSION, (uint32_t)content_next(&seed),
				      1};
	struct nc_wire_welcome welcome;
	unsigned char noise[512];

	for (size_t i = 0; i < sizeof(noise); i++)
		noise[i] = (unsigned char)content_next(&seed);
	switch (content_next(&seed) % 8) {
	case 0:
		break; /* sends nothing */
	case 1:
		say(socket, noise, content_next(&seed) % sizeof(noise), 0);
		break;
	case 2:
		say(socket, &hello, content_next(&seed) % sizeof(hello), 0);
		break;
	case 3:
		say(socket, &hello, sizeof(hello), 1 + (unsigned)content_next(&seed) % 20);
		break;
	case 4:
		(void)join(socket, NC_WIRE_OPERATOR, &welcome);
		call(socket, 10, true);
		break;
	case 5:
		if (join(socket, NC_WIRE_SEGMENT, &welcome))
			call(socket, 20, true);
		break;
	case 6:
		if (join(socket, 0, &welcome))
			call(socket, 500, false);
		break;
	default:
		if (join(socket, NC_WIRE_SEGMENT, &welcome))
			say(socket, noise, content_next(&seed) % sizeof(noise),
			    (unsigned)content_next(&seed) % 20);
	}
}

int main(int argc, char **argv)
{
	int held[HELD];
	uint64_t started;
	double share;

	if (argc < 5)
		errx(1, "usage: hostile-member SOCKET CPU SEED FIGURES [ID...]");
	share = atof(argv[2]);
	seed = strtoull(argv[3], NULL, 10);
	begin(argv[4]);
	for (int i = 5; i < argc && id_count < IDS; i++)
		ids[id_count++] = strtoull(argv[i], NULL, 10);
	for (unsigned i = 0; i < HELD; i++)
		held[i] = -1;
	started = now_ns();
	for (unsigned turn = 0; !ended; turn++) {
		int *place = &held[turn % HELD];

		if (*place >= 0)
			close(*place);
		*place = nc_peer_connect(argv[1], WAIT_MS);
		if (*place < 0) {
			figures[REFUSED]++;
			nap(5000000);
		} else {
			figures[CONNECTED]++;
			be_hostile(*place);
		}
		keep_to(share, started);
	}
	return 0;
}
