/* SPDX-License-Identifier: MIT */
/*
 * scenario-units.c - units of all kinds in a cache of this process: filled in each
 * way, inspected, kept, evicted, destroyed; and code that scenarios share.
 */
#include "scenario.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <nabc.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* --- shared ------------------------------------------------------------------------------- */

void close_pair(const int ends[2])
{
	close(ends[0]);
	close(ends[1]);
}

void open_stream(int ends[2], bool tcp)
{
	struct sockaddr_in where = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001)};
	socklen_t length = sizeof(where);
	int listener;

	if (tcp) {
		listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		ends[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (bind(listener, (struct sockaddr *)&where, length) < 0 ||
		    listen(listener, 1) < 0 ||
		    getsockname(listener, (struct sockaddr *)&where, &length) < 0 ||
		    connect(ends[0], (struct sockaddr *)&where, length) < 0)
			abort();
		ends[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		close(listener);
	} else if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
		abort();
	}
	if (ends[1] < 0 || fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0)
		abort();
}

unsigned char byte_of(size_t at)
{
	return (unsigned char)(at * 31 + at / 251);
}

bool await_either(int one, int other)
{
	struct pollfd fds[2] = {{.fd = one, .events = POLLIN}, {.fd = other, .events = POLLIN}};

	return poll(fds, 2, 1000) > 0;
}

pid_t start_beside(void (*live)(int control), int *control)
{
	int pair[2];
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		abort();
	child = fork();
	if (child < 0)
		abort();
	if (child == 0) {
		close(pair[0]);
		live(pair[1]);
		_exit(0);
	}
	close(pair[1]);
	*control = pair[0];
	return child;
}

void take_bytes(int socket, size_t *at, size_t size)
{
	static unsigned char bytes[256 << 10], pattern[MIB];
	ssize_t got;

	if (!pattern[1])
		for (size_t i = 0; i < sizeof(pattern); i++)
			pattern[i] = byte_of(i);
	while ((got = recv(socket, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0) {
		if ((size_t)got > size - *at || memcmp(bytes, pattern + *at, (size_t)got) != 0) {
			wrong("wrong bytes from %zu on, of %zu", *at, size);
			return;
		}
		*at += (size_t)got;
	}
}

/* From a pipe, as much as possible. */
static bool fill_by_reading(NC_handle *handle, const unsigned char *bytes, size_t at, size_t length)
{
	bool good = true;
	int ends[2];

	if (pipe(ends) < 0 || write(ends[1], bytes + at, length) != (ssize_t)length)
		abort();
	close(ends[1]);
	while (good && length) {
		ssize_t got = 0;

		good = NUMBER(got, NC_unit_read(handle, ends[0], length, at));
		MUST(!good || (got > 0 && (size_t)got <= length));
		if (!good || got <= 0)
			break;
		at += (size_t)got;
		length -= (size_t)got;
	}
	close(ends[0]);
	return good && length == 0;
}

/* Through a stdio stream, which the caller closes. */
static bool fill_by_stream(NC_handle *handle, const unsigned char *bytes, size_t length)
{
	bool good;
	FILE *file;

	if (!GOT(file, NC_stream(handle, "r+")))
		return false;
	call_begin();
	good = fwrite(bytes, 1, length, file) == length;
	good = call_end("NC_stream", fflush(file) == 0 && good);
	call_begin();
	good = call_end("NC_stream", fclose(file) == 0) && good;
	return good;
}

static bool fill(NC_handle *handle, const unsigned char *bytes, size_t size)
{
	/* A quarter each: copied, read, through a stream, and the last one directly in memory. */
	size_t part = size / 4 < 4096 ? size / 4 : 4096, at, length;
	char *place;

	if (!OK(NC_write(handle, bytes, size, 0)) || !fill_by_reading(handle, bytes, part, part) ||
	    !fill_by_stream(handle, bytes, part))
		return false;
	/* A text, and its bytes again. */
	if (!OK(NC_printf(handle, 0, "%s %d", "text", 1)) || !OK(NC_write(handle, bytes, part, 0)))
		return false;
	for (size_t i = 0; i * 4096 < size; i++) {
		at = i * 4096;
		if (!GOT(place, NC_fragment(handle, i, &length)))
			return false;
		memcpy(place, bytes + at, length);
	}
	return true;
}

size_t make_unit(NC_cache *cache, enum NC_kind kind, size_t size, unsigned flags)
{
	unsigned char *bytes = malloc(size);
	NC_handle handle;
	size_t id = 0;
	bool good;

	for (size_t i = 0; i < size; i++)
		bytes[i] = byte_of(i);
	if (OK(NC_unit_alloc(cache, &handle, size, 4096, kind, flags))) {
		good = fill(&handle, bytes, size);
		if (good) {
			good = OK(NC_insert(&handle));
			/* A failed insert may succeed the next time. */
			if (!good)
				good = OK(NC_insert(&handle));
		}
		if (good)
			DO(id = NC_cache_id(&handle));
		MUST(!good || id != 0);
		OK(NC_free(&handle));
	}
	free(bytes);
	return id;
}

/* --- the scenario ---------------------------------------------------------------------------- */

static void look_at(NC_cache *cache, size_t id, size_t size)
{
	unsigned char bytes[64];
	const unsigned char *data;
	struct NC_stat stat;
	uint32_t value;
	ssize_t got;
	struct NC_hold hold;
	size_t run;

	if (OK(NC_stat(cache, id, &stat, sizeof(stat))))
		MUST(stat.size == size);
	if (NUMBER(got, NC_pread(cache, id, bytes, sizeof(bytes), size / 2)))
		for (ssize_t i = 0; i < got; i++)
			MUST(bytes[i] == byte_of(size / 2 + (size_t)i));
	(void)OK(NC_checksum(cache, id, &value, NC_CHECKSUM_CRC32C, size, 0));
	(void)OK(NC_checksum(cache, id, &value, NC_CHECKSUM_DEFAULT, size - 2, 1));
	(void)OK(NC_verify(cache, id));
	if (!OK(NC_hold(cache, id, &hold)))
		return;
	if (GOT(data, NC_data(&hold, &run, 0)))
		MUST(run > 0 && data[0] == byte_of(0));
	(void)OK(NC_set_priority(cache, id, NC_PRIORITY_HIGH));
	(void)OK(NC_set_lifetime(cache, id, 60000));
	(void)OK(NC_release(&hold));
}

/* If no other segment is possible, it may have been evicted. */
static void destroy(NC_cache *cache, size_t id)
{
	bool good;

	call_begin();
	good = NC_destroy(cache, id) == 0 || (errno == ENOENT && !is_clean());
	(void)call_end("NC_destroy", good);
}

/* More than fits. */
static void overfill(NC_cache *cache)
{
	struct NC_cache_stat stat;
	size_t evicted;

	if (!OK(NC_cache_stat(cache, &stat, sizeof(stat))))
		return;
	evicted = stat.evictions;
	for (unsigned i = 0; i < 12; i++) {
		(void)make_unit(cache, i % 2 ? NC_KIND_APPENDED : NC_KIND_AUTO, 200 * KIB, 0);
		(void)OK(NC_cache_dispatch(cache));
	}
	if (OK(NC_cache_stat(cache, &stat, sizeof(stat))))
		MUST(!is_clean() || stat.evictions > evicted);
}

/* Checksums are computed while the unit is filled. */
static void fill_eagerly(void)
{
	const struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = 2 * MIB,
				      .flags = NC_CACHE_NO_THREAD | NC_CACHE_EAGER_SUMS);
	NC_cache *cache;
	size_t id;

	if (!GOT(cache, NC_cache_open(&options)))
		return;
	id = make_unit(cache, NC_KIND_RECYCLED, 40000, 0);
	if (id)
		(void)OK(NC_verify(cache, id));
	(void)OK(NC_cache_close(cache));
}

static void round_of_units(void)
{
	static const struct {
		enum NC_kind kind;
		size_t size;
		unsigned flags;
	} units[] = {{NC_KIND_AUTO, 20000, 0},
		     {NC_KIND_RECYCLED, 5000, 0},
		     {NC_KIND_APPENDED, 300000, 0},
		     {NC_KIND_SEALED, 30000, 0},
		     {NC_KIND_APPENDED, 40000, NC_UNIT_UNSUMMED}};
	const struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = 2 * MIB, .member_size = 256 * KIB,
				      .flags = NC_CACHE_NO_THREAD, .scrub_rate = MIB);
	struct NC_stat list[8];
	NC_cache *cache;
	size_t ids[5] = {0}, cursor = 0;
	NC_handle handle;
	int fd;

	if (!GOT(cache, NC_cache_open(&options)))
		return;
	(void)NUMBER(fd, NC_cache_fd(cache));
	for (unsigned i = 0; i < 5; i++) {
		ids[i] = make_unit(cache, units[i].kind, units[i].size, units[i].flags);
		if (ids[i] && i < 4)
			look_at(cache, ids[i], units[i].size);
	}
	(void)OK(NC_list(cache, &cursor, list, sizeof(*list), 8));
	(void)OK(NC_cache_dispatch(cache));
	for (unsigned i = 0; i < 5; i++)
		if (ids[i] && i != 1)
			destroy(cache, ids[i]);
	if (ids[0])
		(void)REFUSED(NC_destroy(cache, ids[0]), ENOENT);
	/* One that is begun and abandoned. */
	if (OK(NC_alloc(&handle, 100000, 1448)))
		(void)OK(NC_free(&handle));
	overfill(cache);
	(void)OK(NC_cache_close(cache));
	fill_eagerly();
}

const struct scenario scenario_units = {.name = "units", .round = round_of_units};
