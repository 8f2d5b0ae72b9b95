/* SPDX-License-Identifier: MIT */
/*
 * wan.c - joins two network namespaces by a model of a wide-area link: a TUN device in
 * each, and between them a delay, a rate with a queue before it, and packet loss, the
 * same for both directions.  One process and thread: epoll, a timer for the next
 * packet to deliver, signals as a descriptor.  The caller sets addresses and routes
 * after "wan: ready" on standard output; SIGTERM or SIGINT stops it, and it prints its
 * counts.  The kernel's netem does the same, where it is built; this works everywhere,
 * and a seed determines which packets get lost.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "wan-link.h"
#include "wan-spoil.h"
#include "wan-tun.h"

#define MILLISECOND 1000000.0
#define SECOND UINT64_C(1000000000)
#define BATCH 64	      /* packets of one end before it is the other's turn */
#define GRAIN UINT64_C(50000) /* ns: packets due within it are delivered together, late */

struct end {
	struct wan_tun tun;
	struct wan_link link; /* from here to the other end */
	struct wan_spoil spoil;
	uint64_t refused; /* packets of the other end that this one's device did not accept */
};

struct wan {
	const char *names[2]; /* of the namespaces */
	struct end ends[2];
	int epoll, timer, signals;
	uint64_t armed; /* when the timer expires; UINT64_MAX: it is not set */
};

static const char usage[] =
	"usage: wan [OPTION]... NAMESPACE NAMESPACE\n"
	"  --delay MS      of a packet from one end to the other (0)\n"
	"  --loss PERCENT  of the packets, each for itself (0)\n"
	"  --rate MBIT     per second and direction (0: no limit)\n"
	"  --duplicate PERCENT  of the packets, which come twice (0)\n"
	"  --reorder PERCENT    of them, which others overtake (0)\n"
	"  --late MS       by how much those are late, at most (5)\n"
	"  --spoil PERCENT of the packets with bytes of TCP: one bit is another, the checksum\n"
	"                  right; to see that it is found (0)\n"
	"  --queue KB      that may wait for their turn, with --rate (256)\n"
	"  --room MB       of memory for each direction (64)\n"
	"  --seed N        which packets get lost (1)\n"
	"  --device NAME   what the TUN devices are called (wan0)\n"
	"A namespace is a name of ip-netns(8), or a path like /proc/PID/ns/net.\n";

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

static int watch(const struct wan *wan, int fd, uint64_t key)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = key};

	return epoll_ctl(wan->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

/* Returns 0, -EINTR when it must stop, or another -errno. */
static int take(struct end *end)
{
	uint64_t now = now_ns();

	for (unsigned i = 0; i < BATCH; i++) {
		void *room = wan_link_room(&end->link);
		ssize_t got = read(end->tun.fd, room, WAN_PACKET_MAX);

		if (got < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -errno;
		wan_spoil(&end->spoil, room, (size_t)got);
		wan_link_put(&end->link, now, (size_t)got);
	}
	return 0;
}

/* A device that is down accepts nothing: lost, as on any link. */
static void deliver(struct wan_link *link, struct end *to, uint64_t now)
{
	const void *packet;
	size_t length;

	while ((packet = wan_link_first(link, now, &length))) {
		if (write(to->tun.fd, packet, length) < 0)
			to->refused++;
		wan_link_drop(link);
	}
}

/* Never before a packet is due: a short wait delivers it with others. */
static int arm(struct wan *wan, uint64_t now)
{
	uint64_t first = wan_link_due(&wan->ends[0].link);
	uint64_t other = wan_link_due(&wan->ends[1].link);
	struct itimerspec when = {0};

	if (other < first)
		first = other;
	if (first != UINT64_MAX && first < now + GRAIN)
		first = now + GRAIN;
	/* A timer that is set slightly earlier is good enough. */
	if (wan->armed > now ? first >= wan->armed && first != UINT64_MAX : first == wan->armed)
		return 0;
	wan->armed = first;
	if (first != UINT64_MAX) {
		when.it_value.tv_sec = (time_t)(first / SECOND);
		when.it_value.tv_nsec = (long)(first % SECOND);
	}
	return timerfd_settime(wan->timer, TFD_TIMER_ABSTIME, &when, NULL) < 0 ? -errno : 0;
}

static int run(struct wan *wan)
{
	struct epoll_event events[4];
	bool ends = false;
	int error = 0;

	while (!ends && !error) {
		int count = epoll_wait(wan->epoll, events, 4, -1);
		uint64_t now, expired;

		if (count < 0 && errno != EINTR)
			return -errno;
		for (int i = 0; i < count && !error; i++) {
			uint64_t key = events[i].data.u64;

			if (key < 2)
				error = take(&wan->ends[key]);
			else if (key == 2)
				(void)!read(wan->timer, &expired, sizeof(expired));
			else
				ends = true;
		}
		now = now_ns();
		deliver(&wan->ends[0].link, &wan->ends[1], now);
		deliver(&wan->ends[1].link, &wan->ends[0], now);
		if (!error)
			error = arm(wan, now);
	}
	return error;
}

/* Prints one line for each direction; under_way counts packets that entered and have not left. */
static int report(struct wan *wan)
{
	for (unsigned i = 0; i < 2; i++) {
		const struct end *end = &wan->ends[i], *to = &wan->ends[!i];
		const struct wan_counts *counts = &end->link.counts;
		uint64_t unread, ignored;
		int error = wan_tun_lost(&end->tun, &unread, &ignored);

		if (error)
			return error;
		printf("wan: from=%s to=%s packets=%llu bytes=%llu lost=%llu overflowed=%llu"
		       " delivered=%llu delivered_bytes=%llu under_way=%llu refused=%llu "
		       "unread=%llu duplicated=%llu late=%llu spoiled=%llu\n",
		       wan->names[i], wan->names[!i], (unsigned long long)counts->packets,
		       (unsigned long long)counts->bytes, (unsigned long long)counts->lost,
		       (unsigned long long)counts->overflowed,
		       (unsigned long long)counts->delivered,
		       (unsigned long long)counts->delivered_bytes,
		       (unsigned long long)(counts->packets + counts->duplicated - counts->lost -
					    counts->overflowed - counts->delivered),
		       (unsigned long long)to->refused, (unsigned long long)unread,
		       (unsigned long long)counts->duplicated, (unsigned long long)counts->late,
		       (unsigned long long)end->spoil.count);
	}
	return fflush(stdout) ? -errno : 0;
}

static int prepare(struct wan *wan)
{
	sigset_t ending;
	int error;

	sigemptyset(&ending);
	sigaddset(&ending, SIGTERM);
	sigaddset(&ending, SIGINT);
	sigprocmask(SIG_BLOCK, &ending, NULL);
	wan->epoll = epoll_create1(EPOLL_CLOEXEC);
	wan->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	wan->signals = signalfd(-1, &ending, SFD_NONBLOCK | SFD_CLOEXEC);
	if (wan->epoll < 0 || wan->timer < 0 || wan->signals < 0)
		return -errno;
	wan->armed = UINT64_MAX;
	error = watch(wan, wan->ends[0].tun.fd, 0);
	if (!error)
		error = watch(wan, wan->ends[1].tun.fd, 1);
	if (!error)
		error = watch(wan, wan->timer, 2);
	if (!error)
		error = watch(wan, wan->signals, 3);
	return error;
}

static int open_ends(struct wan *wan, const struct wan_settings *settings, double spoil,
		     const char *device)
{
	for (unsigned i = 0; i < 2; i++) {
		struct wan_settings own = *settings;
		int error = wan_tun_open(&wan->ends[i].tun, wan->names[i], device);

		if (error) {
			fprintf(stderr, "wan: %s in %s: %s\n", device, wan->names[i],
				strerror(-error));
			return error;
		}
		own.seed = 2 * settings->seed + i; /* other packets in each direction */
		wan->ends[i].spoil = (struct wan_spoil){.share = spoil, .random = own.seed};
		error = wan_link_init(&wan->ends[i].link, &own);
		if (error) {
			fprintf(stderr, "wan: %s\n", strerror(-error));
			return error;
		}
	}
	return 0;
}

static double parse(const char *name, const char *text, double most)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !(value >= 0 && value <= most)) {
		fprintf(stderr, "wan: --%s %s: a number from 0 to %g is wanted\n", name, text,
			most);
		exit(2);
	}
	return value;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"delay", required_argument, NULL, 'd'},
		{"loss", required_argument, NULL, 'l'},
		{"rate", required_argument, NULL, 'r'},
		{"queue", required_argument, NULL, 'q'},
		{"room", required_argument, NULL, 'm'},
		{"seed", required_argument, NULL, 's'},
		{"device", required_argument, NULL, 'n'},
		{"duplicate", required_argument, NULL, 'D'},
		{"reorder", required_argument, NULL, 'R'},
		{"late", required_argument, NULL, 'L'},
		{"spoil", required_argument, NULL, 'S'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	struct wan_settings settings = {
		.queue = 256 << 10, .room = 64 << 20, .seed = 1, .late = 5 * 1000000};
	struct wan wan = {.ends = {{.tun = {-1, -1, ""}}, {.tun = {-1, -1, ""}}}};
	const char *device = "wan0";
	double spoil = 0;
	int option, error;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'd')
			settings.delay = (uint64_t)(parse("delay", optarg, 60000) * MILLISECOND);
		else if (option == 'l')
			settings.loss = parse("loss", optarg, 100) / 100;
		else if (option == 'r')
			settings.rate = (uint64_t)(parse("rate", optarg, 1e5) * 1e6);
		else if (option == 'q')
			settings.queue = (uint64_t)(parse("queue", optarg, 1e6) * 1024);
		else if (option == 'm')
			settings.room = (uint64_t)(parse("room", optarg, 4096) * (1 << 20));
		else if (option == 's')
			settings.seed = (uint64_t)parse("seed", optarg, 0x1p52);
		else if (option == 'D')
			settings.duplicate = parse("duplicate", optarg, 100) / 100;
		else if (option == 'R')
			settings.reorder = parse("reorder", optarg, 100) / 100;
		else if (option == 'L')
			settings.late = (uint64_t)(parse("late", optarg, 60000) * MILLISECOND);
		else if (option == 'S')
			spoil = parse("spoil", optarg, 100) / 100;
		else if (option == 'n')
			device = optarg;
		else
			break;
	}
	if (option == 'h' || option != -1 || optind != argc - 2) {
		fputs(usage, option == 'h' ? stdout : stderr);
		return option == 'h' ? 0 : 2;
	}
	wan.names[0] = argv[optind];
	wan.names[1] = argv[optind + 1];
	error = open_ends(&wan, &settings, spoil, device);
	if (!error) {
		error = prepare(&wan);
		if (!error) {
			puts("wan: ready");
			fflush(stdout);
			error = run(&wan);
		}
		if (!error)
			error = report(&wan);
		if (error)
			fprintf(stderr, "wan: %s\n", strerror(-error));
	}
	for (unsigned i = 0; i < 2; i++) {
		wan_link_fini(&wan.ends[i].link);
		wan_tun_close(&wan.ends[i].tun);
	}
	return error ? 1 : 0;
}
