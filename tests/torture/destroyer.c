/* SPDX-License-Identifier: MIT */
/*
 * destroyer.c - attaches to a cache as its operator and destroys any of its units,
 * while they are in use: "destroyer SOCKET PER-SECOND SEED". It stops on SIGTERM, and
 * prints their number; so it does at the end of the cache.  One thread.
 */
#include <err.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <nabc.h>

#include "content.h"

#define LISTED 64 /* units in a list, one of which is destroyed */

static volatile sig_atomic_t over;

static void on_end(int number)
{
	(void)number;
	over = 1;
}

/* Destroys one of the next in the list.  Returns false if the cache is closed. */
static bool destroy_one(NC_cache *cache, size_t *cursor, uint64_t random, unsigned long long *done)
{
	struct NC_stat units[LISTED];
	int count = NC_list(cache, cursor, units, sizeof(*units),
			    1 + (unsigned)(random >> 32) % LISTED);

	if (count < 0)
		return errno != ENOTCONN && errno != EPIPE && errno != ECONNRESET;
	if (count == 0) {
		*cursor = 0;
		return true;
	}
	if (NC_destroy(cache, units[random % (unsigned)count].id) == 0)
		++*done;
	/* It may have been evicted before. */
	return true;
}

int main(int argc, char **argv)
{
	const struct NC_attach_options options =
		NC_ATTACH_OPTIONS_INIT(.flags = NC_ATTACH_OPERATOR);
	struct sigaction ending = {.sa_handler = on_end};
	unsigned long long done = 0;
	uint64_t random;
	size_t cursor = 0;
	NC_cache *cache;
	double rate;

	if (argc != 4 || (rate = strtod(argv[2], NULL)) <= 0)
		errx(2, "usage: destroyer SOCKET PER-SECOND SEED");
	random = strtoull(argv[3], NULL, 10);
	sigaction(SIGTERM, &ending, NULL);
	cache = NC_cache_attach(argv[1], &options);
	if (!cache)
		err(1, "%s", argv[1]);
	while (!over) {
		struct timespec pause = {.tv_nsec = (long)(1e9 / rate)};

		if (!destroy_one(cache, &cursor, content_next(&random), &done))
			break;
		nanosleep(&pause, NULL);
	}
	printf("destroyer: destroyed=%llu\n", done);
	NC_cache_close(cache);
	return 0;
}
