/* SPDX-License-Identifier: MIT */
/*
 * test-card.c - zero-copy sends of libnabc through a network card: the kernel reports
 * that it copied nothing, and the peer receives the right bytes although each unit is
 * destroyed or evicted, and its memory used again, while they are in flight; also when
 * packets are lost and sent again (invariant 1), or the peer's link goes down meanwhile.
 * In the end nothing is pinned any more.
 */
#include <errno.h>
#include <nabc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "card.h"
#include "guest.h"
#include "library.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define ROUNDS 36

/* Of the units, in turn; together they are larger than the cache. */
static const size_t sizes[] = {64 * KIB, 100000, 256 * KIB, MIB};

static size_t size_of(unsigned int round)
{
	return sizes[round % (sizeof(sizes) / sizeof(sizes[0]))];
}

static void lose_packets(bool lose)
{
	if (lose)
		guest_run("/sbin/tc qdisc replace dev " CARD " root netem delay 10ms loss 1%% "
			  "limit 5000");
	else
		guest_run("/sbin/tc qdisc replace dev " CARD " root pfifo_fast");
}

struct filling {
	NC_handle handle;
	size_t size;
	enum NC_kind kind;
};

/* The cache may be full of units in flight. */
static bool allocates(void *context)
{
	struct filling *filling = context;

	if (NC_unit_alloc(NULL, &filling->handle, filling->size, 0, filling->kind, 0) == 0)
		return true;
	must(errno == ENOMEM);
	return false;
}

static size_t insert_unit(uint64_t seed, size_t size, enum NC_kind kind)
{
	static unsigned char bytes[MIB];
	struct filling filling = {.size = size, .kind = kind};
	size_t id;

	must(guest_wait(allocates, &filling));
	guest_fill(bytes, seed, 0, size);
	must(NC_write(&filling.handle, bytes, size, 0) == (ssize_t)size);
	must(NC_insert(&filling.handle) == 0);
	id = NC_cache_id(&filling.handle);
	must(NC_free(&filling.handle) == 0);
	return id;
}

static int receive_all(void *context)
{
	const int *socket = context;

	for (unsigned int round = 0; round < ROUNDS; round++)
		if (!guest_receive(*socket, round, 0, size_of(round)))
			return 1;
	return 0;
}

/* The link of the peer goes down in mid-send, and up again. */
static int interrupt(void *context)
{
	(void)context;
	guest_run("/sbin/ip -n peer link set eth1 down");
	usleep(500000);
	guest_run("/sbin/ip -n peer link set eth1 up");
	return 0;
}

enum trouble { NONE, LOSS, INTERRUPTION };

static void test_flight(enum NC_kind kind, const char *name, bool destroy, enum trouble trouble)
{
	static const char *const what[] = {[NONE] = "",
					   [LOSS] = ", with loss",
					   [INTERRUPTION] = ", with a link that goes down"};
	struct NC_cache_options options = NC_CACHE_OPTIONS_INIT(.memory = 8 * MIB);
	NC_cache *cache = NC_cache_open(&options);
	struct guest_pair pair = guest_connect_to(AF_INET, CARD_PEER);
	pid_t child = guest_fork(receive_all, &pair.far);
	unsigned long again = guest_retransmitted();
	struct NC_cache_stat stat;
	pid_t other = 0;

	must(cache != NULL);
	must(NC_route_set(NULL, "*", NC_METHOD_ZEROCOPY) == 0);
	for (unsigned int round = 0; round < ROUNDS; round++) {
		size_t id = insert_unit(round, size_of(round), kind);

		if (trouble == INTERRUPTION && round == ROUNDS / 3)
			other = guest_fork(interrupt, NULL);
		card_send(pair.near, id, size_of(round), 0);
		if (destroy)
			must(NC_destroy(NULL, id) == 0);
	}
	if (other)
		guest_join(other);
	guest_join(child);
	card_settle();
	stat = library_stat();
	must(stat.zerocopy_kept >= ROUNDS);
	must(stat.zerocopy_copied == 0);
	must(destroy || stat.evictions > 0);
	must(trouble == NONE || guest_retransmitted() > again);
	guest_disconnect(&pair);
	must(NC_cache_close(cache) == 0);
	card_await_pinned(0);
	guest_tested("%s units, %s%s: %llu sends, none copied", name,
		     destroy ? "destroyed" : "evicted", what[trouble],
		     (unsigned long long)stat.zerocopy_kept);
}

int main(void)
{
	card_set_up();
	for (enum trouble trouble = NONE; trouble <= INTERRUPTION; trouble++) {
		lose_packets(trouble == LOSS);
		for (int destroy = 0; destroy <= 1; destroy++) {
			test_flight(NC_KIND_RECYCLED, "recycled", destroy, trouble);
			test_flight(NC_KIND_APPENDED, "appended", destroy, trouble);
		}
	}
	return 0;
}
