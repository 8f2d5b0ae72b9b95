/* SPDX-License-Identifier: MIT */
/*
 * test-bytes.c - the exact bytes arrive: over devices with and without checksum
 * offload, with MTUs of 1500 and 9000, with and without kept checksums, over IPv4 and
 * IPv6, on a clean line and on one that loses, reorders and duplicates packets.  A
 * stream consists of messages with a header, ranges at any offsets, bytes written
 * between them, and units that are destroyed while they are in flight.
 */
#include <errno.h>
#include <nabc-uapi.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "device.h"
#include "guest.h"

enum { UNITS = 8, UNIT_SIZE = 150001, MESSAGES = 12 };

/* A message: both ends derive the same ones from a state. */
struct message {
	size_t header, plain; /* bytes before and after, of the seed 1000 */
	unsigned int ranges;
	struct {
		unsigned int unit;
		uint64_t offset, length;
	} range[5];
};

static struct message next_message(uint64_t *state)
{
	struct message message = {.header = guest_random(state) % 300,
				  .plain = guest_random(state) % 4 ? 0 : guest_random(state) % 5000,
				  .ranges = 1 + (unsigned int)(guest_random(state) % 5)};

	for (unsigned int i = 0; i < message.ranges; i++) {
		uint64_t most = guest_random(state) % 3 ? UNIT_SIZE : 700;

		message.range[i].unit = (unsigned int)(guest_random(state) % UNITS);
		message.range[i].offset = guest_random(state) % UNIT_SIZE;
		if (most > UNIT_SIZE - message.range[i].offset)
			most = UNIT_SIZE - message.range[i].offset;
		message.range[i].length = 1 + guest_random(state) % most;
	}
	return message;
}

struct stream {
	int socket;
	uint64_t state;
	uint64_t seed; /* of unit 0 */
};

static int receiving(void *context)
{
	struct stream *stream = context;

	for (int i = 0; i < MESSAGES; i++) {
		struct message message = next_message(&stream->state);

		must(guest_receive(stream->socket, 1000, 0, message.header));
		for (unsigned int j = 0; j < message.ranges; j++)
			must(guest_receive(stream->socket, stream->seed + message.range[j].unit,
					   message.range[j].offset, message.range[j].length));
		must(guest_receive(stream->socket, 1000, 0, message.plain));
	}
	must(guest_ended(stream->socket));
	return 0;
}

static void write_plain(int socket, size_t length)
{
	unsigned char bytes[5000];

	guest_fill(bytes, 1000, 0, length);
	must(send(socket, bytes, length, 0) == (ssize_t)length);
}

static void send_stream(struct device *device, struct stream *stream, uint32_t flags)
{
	uint64_t ids[UNITS];

	for (uint64_t i = 0; i < UNITS; i++)
		ids[i] = device_unit(device, stream->seed + i, UNIT_SIZE);
	for (int i = 0; i < MESSAGES; i++) {
		struct message message = next_message(&stream->state);
		struct nabc_range ranges[5];
		unsigned char header[300];
		uint64_t left = message.header, done = 0;

		guest_fill(header, 1000, 0, message.header);
		for (unsigned int j = 0; j < message.ranges; j++) {
			unsigned int unit = message.range[j].unit;

			ranges[j] = (struct nabc_range){ids[unit], message.range[j].offset,
							message.range[j].length};
			left += message.range[j].length;
		}
		while (left) {
			bool more = message.plain || i % 2;
			ssize_t sent = nabc_socksendv(device->fd, stream->socket, header,
						      message.header, ranges, message.ranges, done,
						      flags | (more ? NABC_SEND_MORE : 0));

			must(sent > 0);
			done += (uint64_t)sent;
			left -= (uint64_t)sent;
		}
		if (message.plain)
			write_plain(stream->socket, message.plain);
		/* A sent unit is destroyed while it is in flight; its memory is reused. */
		for (unsigned int j = 0; j < message.ranges; j++) {
			unsigned int unit = message.range[j].unit;

			if (nabc_destroy(device->fd, ids[unit]) == 0)
				ids[unit] = device_unit(device, stream->seed + unit, UNIT_SIZE);
			else
				must(errno == ENOENT);
		}
	}
	for (int i = 0; i < UNITS; i++)
		must(nabc_destroy(device->fd, ids[i]) == 0);
	must(shutdown(stream->socket, SHUT_WR) == 0);
}

static void test_line(struct device *device, int family, bool lossy, bool offloaded, int mtu,
		      uint32_t flags)
{
	static uint64_t round;
	struct guest_pair pair = guest_connect(family);
	struct stream stream = {pair.far, 1 + 77 * ++round, 10 * round};
	struct nabc_statistics before = device_statistics(device->fd), after;
	uint64_t began = guest_now();
	pid_t child;

	child = guest_fork(receiving, &stream);
	close(pair.far);
	stream.socket = pair.near;
	send_stream(device, &stream, flags);
	guest_join(child);
	close(pair.near);
	after = device_statistics(device->fd);
	if (flags & NABC_SEND_SUMS && !offloaded && device->info.features & NABC_FEATURE_SUMS)
		must(after.sum_reused > before.sum_reused);
	if (offloaded)
		must(after.sum_reused == before.sum_reused);
	guest_tested("IPv%d, MTU %d, %s, %s, %s sums: %llu bytes, %llu with kept sums, %llu ms",
		     family == AF_INET ? 4 : 6, mtu, lossy ? "lossy" : "clean",
		     offloaded ? "offload" : "no offload", flags ? "kept" : "no",
		     (unsigned long long)(after.sent_bytes - before.sent_bytes),
		     (unsigned long long)(after.sum_reused - before.sum_reused),
		     (unsigned long long)(guest_now() - began));
}

int main(void)
{
	static const int mtus[] = {1500, 9000};
	struct device device;

	device_open(&device);
	for (int i = 0; i < 2; i++) {
		guest_run("/sbin/ip link set near mtu %d && /sbin/ip -n peer link set far mtu %d",
			  mtus[i], mtus[i]);
		for (int lossy = 0; lossy < 2; lossy++) {
			if (lossy)
				guest_run("/sbin/tc qdisc replace dev near root netem delay 2ms 1ms"
					  " reorder 5%% loss 2%% duplicate 1%%");
			for (int offloaded = 0; offloaded < 2; offloaded++) {
				guest_offload(offloaded);
				test_line(&device, AF_INET, lossy, offloaded, mtus[i], 0);
				test_line(&device, AF_INET6, lossy, offloaded, mtus[i], 0);
				test_line(&device, AF_INET, lossy, offloaded, mtus[i],
					  NABC_SEND_SUMS);
				test_line(&device, AF_INET6, lossy, offloaded, mtus[i],
					  NABC_SEND_SUMS);
			}
			if (lossy)
				guest_run("/sbin/tc qdisc del dev near root");
		}
	}
	guest_run("/sbin/ip link set near mtu 1500 && /sbin/ip -n peer link set far mtu 1500");
	must(device_wait(device.fd, GAUGE(units), 0));
	device_close(&device);
	return 0;
}
