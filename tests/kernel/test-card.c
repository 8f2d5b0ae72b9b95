/* SPDX-License-Identifier: MIT */
/*
 * test-card.c - zero-copy sends of libnabc through a network card: the kernel reports
 * that it copied nothing, and the peer receives the right bytes although each unit is
 * destroyed or evicted, and its memory used again, while they are in flight; also when
 * packets are lost and sent again (invariant 1), or the peer's link goes down meanwhile.
 * In the end nothing is pinned any more.
 *
 * The guest has two emulated cards on one hub, with scatter-gather and checksums of
 * their own; the second one belongs to the peer.  A veth pair is not enough: what
 * crosses it is copied.
 */
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "library.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define HERE "10.9.2.1"
#define PEER "10.9.2.2"
#define ROUNDS 36

/* Of the units, in turn; together they are larger than the cache. */
static const size_t sizes[] = {64 * KIB, 100000, 256 * KIB, MIB};

static size_t size_of(unsigned int round)
{
	return sizes[round % (sizeof(sizes) / sizeof(sizes[0]))];
}

/* Cards negotiate for a while; then the peer's address is known, too. */
static bool reachable(void *context)
{
	(void)context;
	return system("ping -c 1 -W 1 " PEER " >/dev/null") == 0;
}

static void set_up_cards(void)
{
	guest_run("/sbin/ip link set eth1 netns peer && "
		  "/sbin/ip addr add " HERE "/24 dev eth0 && /sbin/ip link set eth0 up && "
		  "/sbin/ip -n peer addr add " PEER "/24 dev eth1 && "
		  "/sbin/ip -n peer link set eth1 up");
	if (guest_wait(reachable, NULL))
		return;
	guest_run(
		"/sbin/ip -s addr; /sbin/ip -n peer -s addr; /sbin/ip neigh; dmesg | grep e1000e");
	must(!"the peer is reachable");
}

static void lose_packets(bool lose)
{
	if (lose)
		guest_run("/sbin/tc qdisc replace dev eth0 root netem delay 10ms loss 1%% limit "
			  "5000");
	else
		guest_run("/sbin/tc qdisc replace dev eth0 root pfifo_fast");
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

/* Whether no byte waits for its first transmission; others may wait for acknowledgements. */
static bool transmitted(void *context)
{
	const int *socket = context;
	int waiting;

	must(ioctl(*socket, SIOCOUTQNSD, &waiting) == 0);
	return waiting == 0;
}

/*
 * Since Linux 6.10, a send whose bytes are all appended to a packet of an earlier one
 * is reported as copied, whether it was or not; so there is no packet to append to.
 */
static void send_unit(int socket, size_t id, size_t size)
{
	struct NC_range range = {id, 0, size};
	struct NC_send message =
		NC_SEND_INIT(.ranges = &range, .range_count = 1, .flags = NC_SEND_DONTWAIT);
	struct NC_hold hold;

	must(NC_hold(NULL, id, &hold) == 0);
	while (message.skip < size) {
		struct pollfd room = {.fd = socket, .events = POLLOUT};
		ssize_t sent;

		must(poll(&room, 1, 60000) == 1);
		must(guest_wait(transmitted, &socket));
		sent = NC_send(NULL, socket, &message);
		must(sent > 0 || errno == EAGAIN);
		message.skip += sent > 0 ? (size_t)sent : 0;
	}
	must(NC_release(&hold) == 0);
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

/* Kilobytes of this process that are pinned. */
static unsigned long pinned(void)
{
	FILE *status = fopen("/proc/self/status", "re");
	unsigned long found = 0;
	char line[200];

	must(status != NULL);
	while (fgets(line, sizeof(line), status))
		(void)sscanf(line, "VmPin: %lu", &found);
	fclose(status);
	return found;
}

static bool nothing_pinned(void *context)
{
	(void)context;
	return pinned() == 0;
}

static bool all_reported(void *context)
{
	const uint64_t *sends = context;
	struct NC_cache_stat stat = library_stat();

	*(uint64_t *)context = stat.by_zerocopy.sends;
	return stat.zerocopy_kept + stat.zerocopy_copied == *sends;
}

enum trouble { NONE, LOSS, INTERRUPTION };

static void test_flight(enum NC_kind kind, const char *name, bool destroy, enum trouble trouble)
{
	static const char *const what[] = {[NONE] = "",
					   [LOSS] = ", with loss",
					   [INTERRUPTION] = ", with a link that goes down"};
	struct NC_cache_options options = NC_CACHE_OPTIONS_INIT(.memory = 8 * MIB);
	NC_cache *cache = NC_cache_open(&options);
	struct guest_pair pair = guest_connect_to(AF_INET, PEER);
	pid_t child = guest_fork(receive_all, &pair.far);
	unsigned long again = guest_retransmitted();
	struct NC_cache_stat stat;
	uint64_t sends = 0;
	pid_t other = 0;

	must(cache != NULL);
	must(NC_route_set(NULL, "*", NC_METHOD_ZEROCOPY) == 0);
	for (unsigned int round = 0; round < ROUNDS; round++) {
		size_t id = insert_unit(round, size_of(round), kind);

		if (trouble == INTERRUPTION && round == ROUNDS / 3)
			other = guest_fork(interrupt, NULL);
		send_unit(pair.near, id, size_of(round));
		if (destroy)
			must(NC_destroy(NULL, id) == 0);
	}
	if (other)
		guest_join(other);
	guest_join(child);
	must(guest_wait(all_reported, &sends));
	stat = library_stat();
	must(stat.zerocopy_kept >= ROUNDS);
	must(stat.zerocopy_copied == 0);
	must(destroy || stat.evictions > 0);
	must(trouble == NONE || guest_retransmitted() > again);
	guest_disconnect(&pair);
	must(NC_cache_close(cache) == 0);
	must(guest_wait(nothing_pinned, NULL));
	guest_tested("%s units, %s%s: %llu sends, none copied", name,
		     destroy ? "destroyed" : "evicted", what[trouble],
		     (unsigned long long)stat.zerocopy_kept);
}

int main(void)
{
	set_up_cards();
	for (enum trouble trouble = NONE; trouble <= INTERRUPTION; trouble++) {
		lose_packets(trouble == LOSS);
		for (int destroy = 0; destroy <= 1; destroy++) {
			test_flight(NC_KIND_RECYCLED, "recycled", destroy, trouble);
			test_flight(NC_KIND_APPENDED, "appended", destroy, trouble);
		}
	}
	return 0;
}
