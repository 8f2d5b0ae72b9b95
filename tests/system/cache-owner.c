/* SPDX-License-Identifier: MIT */
/*
 * cache-owner.c - owns a cache and serves it, as any program may.
 *
 *	cache-owner SOCKET MODE SIZE [LENGTH...]
 *
 * MODE (octal) is the socket's, SIZE the cache's in bytes.  Inserts a unit of
 * each LENGTH, writes their ids to standard output, one a line, and then an
 * empty line; ends with its standard input.  Byte i of unit n is 7 * i + n,
 * counted from 0.  Purging by name takes the length of a unit as its name.
 */
#include <err.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

#include <nabc.h>

static size_t insert(size_t length, unsigned number)
{
	unsigned char *data = malloc(length);
	NC_handle unit;
	size_t id;

	if (!data)
		err(1, "malloc");
	for (size_t i = 0; i < length; i++)
		data[i] = (unsigned char)(7 * i + number);
	if (NC_alloc(&unit, length, 0) < 0 || NC_write(&unit, data, length, 0) < 0 ||
	    NC_insert(&unit) < 0)
		err(1, "%zu bytes", length);
	id = NC_cache_id(&unit);
	NC_free(&unit);
	free(data);
	return id;
}

static int forget(void *context, const char *name)
{
	struct NC_stat units[64];
	size_t cursor = 0, length = strtoul(name, NULL, 10);
	int count = NC_list(NULL, &cursor, units, sizeof(*units), 64), forgotten = 0;

	(void)context;
	if (!length)
		return -EINVAL;
	for (int i = 0; i < count; i++)
		forgotten += units[i].size == length && NC_destroy(NULL, units[i].id) == 0;
	return forgotten;
}

int main(int argc, char **argv)
{
	struct NC_cache_options options = NC_CACHE_OPTIONS_INIT();
	struct NC_serve_options serve = NC_SERVE_OPTIONS_INIT();
	struct pollfd waits[2] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.events = POLLIN}};
	NC_cache *cache;

	if (argc < 4)
		errx(2, "usage: cache-owner SOCKET MODE SIZE [LENGTH...]");
	serve.mode = (mode_t)strtoul(argv[2], NULL, 8);
	options.memory = strtoul(argv[3], NULL, 10);
	cache = NC_cache_open(&options);
	if (!cache || NC_cache_serve(cache, argv[1], &serve) < 0)
		err(1, "%s", argv[1]);
	if (NC_cache_on_purge(cache, forget, NULL) < 0)
		err(1, "NC_cache_on_purge");
	for (int i = 4; i < argc; i++)
		printf("%zu\n", insert(strtoul(argv[i], NULL, 10), (unsigned)i - 4));
	puts("");
	fflush(stdout);
	waits[1].fd = NC_cache_fd(cache);
	while (!waits[0].revents) {
		if (poll(waits, 2, -1) < 0 && errno != EINTR)
			err(1, "poll");
		if (NC_cache_dispatch(cache) < 0)
			err(1, "NC_cache_dispatch");
	}
	return NC_cache_close(cache) < 0;
}
