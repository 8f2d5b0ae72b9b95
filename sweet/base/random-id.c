/* SPDX-License-Identifier: MIT */
/*
 * random-id.c - see random-id.h.
 */
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/random-id.h"
#include "base/siphash.h"

/* Early at boot there may be no random bytes: then the ids are unique, but can be guessed. */
static void make_key(struct random_id *source)
{
	uint64_t other[2] = {clock_monotonic_ns(), (uint64_t)getpid() ^ (uintptr_t)source};

	if (getrandom(source->key, sizeof(source->key), GRND_NONBLOCK) != sizeof(source->key))
		memcpy(source->key, other, sizeof(source->key));
	source->keyed = true;
}

uint64_t random_id_next(struct random_id *source)
{
	if (!source->keyed)
		make_key(source);
	source->count++;
	return siphash(source->key, &source->count, sizeof(source->count));
}

char *random_id_write(char *to, uint64_t number, unsigned digits)
{
	static const char hex[] = "0123456789abcdef";

	while (digits--)
		*to++ = hex[number >> digits * 4 & 15];
	return to;
}
