// SPDX-License-Identifier: MIT
/*
 * guest.c - what "bench kernel" runs in the guest: all ways to send, over all
 * networks, in all sizes.  Environment, from the kernel's command line: BENCH_SIZES,
 * bytes with commas between them; BENCH_RUNS; BENCH_BYTES, sent in each;
 * BENCH_NETWORKS, names of the table below; BENCH_SINK, IP:PORT beyond virtio-net.
 * Prints a line for each run, separated by tabs: "figure", network, body, way, size,
 * instructions for a document.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "count.h"
#include "guest.h"
#include "kernel.h"

#define HUGE ((size_t)2 << 20)

struct network {
	const char *name;
	const char *device;
	int mtu;
	bool offload;
};

static const struct network networks[] = {
	{"veth-1500-offload", "near", 1500, true}, {"veth-9000-offload", "near", 9000, true},
	{"veth-1500", "near", 1500, false},	   {"veth-9000", "near", 9000, false},
	{"virtio-1500", "eth0", 1500, true},
};

static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ-\n";
static char pattern[65536];

void document_fill(char *to, size_t size)
{
	size_t period = sizeof(alphabet) - 1, step = sizeof(pattern) / period * period;

	for (size_t at = 0; at < size; at += step)
		memcpy(to + at, pattern, size - at < step ? size - at : step);
}

static size_t huge(size_t size)
{
	return (size + HUGE - 1) / HUGE * HUGE;
}

char *document_memory(size_t size)
{
	char *memory =
		mmap(NULL, huge(size), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	must(memory != MAP_FAILED);
	must(madvise(memory, huge(size), MADV_HUGEPAGE) == 0);
	memset(memory, 0, huge(size));
	return memory;
}

void document_forget(char *memory, size_t size)
{
	must(munmap(memory, huge(size)) == 0);
}

void document_write(int socket, const char *from, size_t size)
{
	while (size) {
		ssize_t n = write(socket, from, size);

		must(n > 0);
		from += n;
		size -= (size_t)n;
	}
}

static const char *setting(const char *name)
{
	const char *value = getenv(name);

	must(value != NULL);
	return value;
}

static bool listed(const char *list, const char *name)
{
	size_t length = strlen(name);

	for (; list; list = strchr(list, ',')) {
		list += *list == ',';
		if (strncmp(list, name, length) == 0 && strchr(",", list[length]))
			return true;
	}
	return false;
}

static void batch(const struct way *way, size_t size, unsigned int count, int socket)
{
	peer_expect(socket, (uint64_t)count * size);
	for (unsigned int i = 0; i < count; i++)
		way->send(size, socket);
	peer_await(socket);
}

/* Uses a warm connection of its own; returns the instructions for a document. */
static uint64_t run(const struct network *network, const struct way *way, size_t size)
{
	unsigned int count = (unsigned int)(strtoul(setting("BENCH_BYTES"), NULL, 10) / size);
	bool outside = strcmp(network->device, "near") != 0;
	int socket = peer_connect(outside ? setting("BENCH_SINK") : NULL);
	uint64_t before;

	way->init(size, socket);
	batch(way, size, count, socket);
	before = count_busy();
	batch(way, size, count, socket);
	before = count_busy() - before;
	way->fini(size);
	close(socket);
	if (!outside)
		must(wait(NULL) > 0);
	return before / count;
}

static void measure(const struct network *network, const char *kind, const struct way *way,
		    size_t size)
{
	for (int left = atoi(setting("BENCH_RUNS")); left; left--)
		printf("figure\t%s\t%s\t%s\t%zu\t%llu\n", network->name, kind, way->name, size,
		       (unsigned long long)run(network, way, size));
	fflush(stdout);
	/* Interrupts of the console must not be counted. */
	tcdrain(STDOUT_FILENO);
}

static void set_up(const struct network *network)
{
	if (strcmp(network->device, "near") == 0) {
		guest_offload(network->offload);
		guest_run("/sbin/ip link set near mtu %d && /sbin/ip -n peer link set far mtu %d",
			  network->mtu, network->mtu);
	} else {
		guest_run("/sbin/ip addr replace 10.9.1.1/24 dev %s && /sbin/ip link set %s up",
			  network->device, network->device);
	}
}

int main(void)
{
	const struct {
		const char *kind;
		const struct way *ways;
	} bodies[] = {{"static", static_ways}, {"dynamic", dynamic_ways}};

	for (size_t i = 0; i < sizeof(pattern); i++)
		pattern[i] = alphabet[i % (sizeof(alphabet) - 1)];
	setvbuf(stdout, NULL, _IOFBF, BUFSIZ);
	signal(SIGPIPE, SIG_IGN);
	guest_run("echo advise >/sys/kernel/mm/transparent_hugepage/shmem_enabled");
	count_begin();
	count_settle();
	for (size_t n = 0; n < sizeof(networks) / sizeof(*networks); n++) {
		if (!listed(setting("BENCH_NETWORKS"), networks[n].name))
			continue;
		set_up(&networks[n]);
		for (size_t b = 0; b < sizeof(bodies) / sizeof(*bodies); b++) {
			const char *sizes = setting("BENCH_SIZES");

			for (; sizes; sizes = strchr(sizes, ',')) {
				sizes += *sizes == ',';
				for (const struct way *way = bodies[b].ways; way->name; way++)
					measure(&networks[n], bodies[b].kind, way,
						strtoul(sizes, NULL, 10));
			}
		}
	}
	return 0;
}
