/* SPDX-License-Identifier: MIT */
/*
 * fuzz-rpc-server.c - calls of members to the owner of a cache
 * (libnabc/membership/rpc-server.c), three of them in any order: every reply is
 * well-formed, nothing is exported without a grant, and received descriptors are
 * closed.
 */
#include <nabc-worker.h>
#include <nabc.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fragment.h"
#include "cache/grant.h"
#include "cache/index.h"
#include "membership/rpc-server.h"
#include "os/peer.h"
#include "os/segment.h"
#include "store/store.h"
#include "wire/wire.h"

#include "descriptors.h"
#include "fuzz.h"

#define PAGE ((size_t)4096)
#define MIB ((size_t)1 << 20)
#define IDS 16u

enum { MAKER, STRANGER, OVERSEER, ASKERS };

struct caller {
	int socket[2]; /* [0] is the owner's */
	struct nc_subject subject;
	bool gone;
};

static struct nc_index cache;
static struct caller callers[ASKERS];

/* Every known id, and its creator. */
static struct {
	size_t id;
	unsigned maker; /* ASKERS: the owner */
} ids[IDS];
static unsigned id_count;
static bool granted; /* a grant was made */

static void know(size_t id, unsigned maker)
{
	if (id_count == IDS)
		return;
	ids[id_count].id = id;
	ids[id_count++].maker = maker;
}

static void open_caller(struct caller *caller, uid_t uid, bool operates)
{
	*caller = (struct caller){.subject = {.who = {.pid = getpid(), .pidfd = -1, .uid = uid},
					      .operates = operates,
					      .quota = MIB,
					      .revocations = {.segment = {.fd = -1}}}};
	MUST(nc_peer_pair(caller->socket) == 0 && nc_peer_ask_sender(caller->socket[0]) == 0);
	nc_grants_join(&cache.grants, &caller->subject);
}

static void make_own(void)
{
	struct nc_layout layout;
	struct nc_unit *unit;
	size_t id;

	MUST(nc_layout_init(&layout, 5000, 0) == 0);
	MUST(nc_index_alloc(&cache, &layout, NC_KIND_RECYCLED, &unit) == 0);
	memset(nc_unit_base(unit), 'o', 5000);
	MUST(nc_index_insert(&cache, unit, NULL, &id) == 0);
	know(id, ASKERS);
}

static void open_all(void)
{
	static const struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = 4 * MIB, .member_size = 128 << 10,
				      .flags = NC_CACHE_NO_URING);

	MUST(nc_index_init_owner(&cache, &options) == 0);
	open_caller(&callers[MAKER], 1000, false);
	open_caller(&callers[STRANGER], 1001, false);
	open_caller(&callers[OVERSEER], 0, true);
	callers[MAKER].subject.names = true;
	id_count = 0;
	granted = false;
	make_own();
}

static void no_orphan(void *context, size_t id)
{
	(void)context;
	(void)id;
}

static void close_all(void)
{
	for (unsigned i = 0; i < ASKERS; i++) {
		nc_grants_part(&cache.grants, &callers[i].subject, no_orphan, NULL);
		close(callers[i].socket[0]);
		close(callers[i].socket[1]);
	}
	nc_index_fini(&cache);
}

/* A frozen segment, a writable one, or no segment at all. */
static int make_fd(unsigned choice)
{
	struct nc_segment segment;
	int fd;

	if (choice == 3)
		return open("/dev/null", O_RDONLY | O_CLOEXEC);
	MUST(nc_segment_create(&segment, (1 + choice % 2) * PAGE, false, false) == 0);
	if (choice < 2)
		MUST(nc_segment_freeze(&segment) == 0);
	fd = fcntl(segment.fd, F_DUPFD_CLOEXEC, 0);
	nc_segment_close(&segment);
	return fd;
}

/* Reads the reply; checks the exported unit. */
static void hear(unsigned number, const struct nc_wire_call *call)
{
	struct caller *caller = &callers[number];
	struct {
		struct nc_wire_reply head;
		char behind[NC_WIRE_BEHIND_MAX];
	} reply;
	int fds[NC_PEER_FDS_MAX];
	unsigned count;
	ssize_t got = nc_peer_receive(caller->socket[1], &reply, sizeof(reply), fds, &count, 0);

	MUST(got >= (ssize_t)sizeof(reply.head));
	MUST(nc_wire_check_reply(&reply, (size_t)got, count, &reply.head) == 0);
	MUST(reply.head.tag == call->tag);
	if (reply.head.error == 0 && call->op == NC_WIRE_SEAL)
		know(reply.head.id, number);
	if (reply.head.error == 0 && call->op == NC_WIRE_GRANT)
		granted = true;
	/* Only the creator and operators may list the grants of a unit. */
	for (unsigned i = 0; i < id_count && call->op == NC_WIRE_GRANTS && !reply.head.error; i++)
		MUST(ids[i].id != call->id || ids[i].maker == number || number == OVERSEER);
	if (reply.head.flags & NC_WIRE_HAS_UNIT) {
		char *base = mmap(NULL, reply.head.size, PROT_READ, MAP_SHARED, fds[0], 0);

		MUST(call->op == NC_WIRE_FETCH || call->op == NC_WIRE_NAME_HOLD);
		MUST(base != MAP_FAILED);
		/* No process can write it, not even through another mapping. */
		MUST(mmap(NULL, PAGE, PROT_WRITE, MAP_SHARED, fds[0], 0) == MAP_FAILED);
		munmap(base, reply.head.size);
		for (unsigned i = 0; i < id_count && !granted && number != OVERSEER; i++)
			MUST(ids[i].id != reply.head.id || ids[i].maker == number);
	}
	nc_peer_close_fds(fds, count);
}

static uint64_t choose_id(struct input *input)
{
	uint64_t choice = input_number(input, 1);

	if (choice == 255)
		return input_number(input, 8);
	return (id_count ? ids[choice % IDS % id_count].id : 0) ^ (choice >> 4 ? 0 : choice);
}

static void call(struct input *input)
{
	unsigned choice = (unsigned)input_number(input, 1), number = choice % ASKERS;
	unsigned with = (unsigned)input_number(input, 1), count = with & 3;
	struct caller *caller = &callers[number];
	size_t length = with >> 2 & 1 ? input_number(input, 1) : 0;
	struct {
		struct nc_wire_call call;
		uint8_t behind[255];
	} message = {.call = {.magic = NC_WIRE_MAGIC, .length = (uint32_t)length}};
	struct nc_wire_call *call = &message.call;
	const uint8_t *behind;
	int fds[3], result;

	if (caller->gone)
		return;
	call->op = (uint32_t)input_number(input, 1) % (NC_WIRE_OPS + 1);
	call->tag = input_number(input, 1);
	call->id = choose_id(input);
	call->size = input_number(input, with >> 3 & 1 ? 8 : 2);
	call->fraglen = with >> 4 & 1 ? input_number(input, 4) : PAGE;
	call->slot = (uint32_t)input_number(input, 1);
	call->principal = (uint32_t)input_number(input, 1) % 6;
	call->who = with >> 5 & 1 ? 1001 : (uint32_t)input_number(input, 1);
	behind = input_bytes(input, &length);
	if (length)
		memcpy(message.behind, behind, length);
	for (unsigned i = 0; i < count; i++)
		fds[i] = make_fd(choice >> (2 + 2 * i) & 3);
	/* Truncated or not, by chance. */
	(void)nc_peer_send(caller->socket[1], &message,
			   sizeof(*call) + length - (with >> 6 == 3 ? sizeof(*call) / 2 : 0), fds,
			   count);
	nc_peer_close_fds(fds, count);
	result = nc_rpc_server_serve(&cache, caller->socket[0], &caller->subject, NULL, NULL);
	if (result == 1)
		hear(number, call);
	else
		caller->gone = true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned before = open_descriptors();
	struct input input = {data, size};

	open_all();
	while (input.left)
		call(&input);
	close_all();
	MUST(open_descriptors() == before);
	return 0;
}
