/* SPDX-License-Identifier: MIT */
/*
 * tls-openssl-memory.c - the buffers of records, which OpenSSL takes for each record and gives back,
 * so that a connection that waits has none.
 *
 * They are too long for the lists of small blocks that malloc() has for each thread, and cost some
 * hundred instructions each.  Each thread therefore keeps the few that were used last, which are
 * still in the processor's cache, too.  Everything else comes from malloc().
 */
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include <openssl/crypto.h>

#include "tls/tls-openssl-internal.h"

/* A record of at most 16 KiB with its header, padding and code, and what OpenSSL adds to align it. */
#define BUFFER_LEAST (16u << 10)
#define BUFFER_ROOM (18u << 10)
#define KEPT_MAX 4u /* of a connection: one to read, one to write */

struct kept {
	void *buffers[KEPT_MAX];
	unsigned count;
	bool ends_with_thread;
};

static _Thread_local struct kept kept;
static pthread_key_t key;

static void free_kept(void *of_thread)
{
	struct kept *these = of_thread;

	while (these->count)
		free(these->buffers[--these->count]);
	/* Another key's destructor may give back one more. */
	these->ends_with_thread = false;
}

static bool keep(void *buffer)
{
	if (!kept.ends_with_thread)
		kept.ends_with_thread = pthread_setspecific(key, &kept) == 0;
	if (!kept.ends_with_thread || kept.count == KEPT_MAX)
		return false;
	kept.buffers[kept.count++] = buffer;
	return true;
}

static bool is_buffer(size_t room)
{
	return room > BUFFER_LEAST && room <= BUFFER_ROOM;
}

/* For a length of 0, OpenSSL expects NULL. */
static void *take(size_t length, const char *file, int line)
{
	(void)file;
	(void)line;
	if (!is_buffer(length))
		return length ? malloc(length) : NULL;
	return kept.count ? kept.buffers[--kept.count] : malloc(BUFFER_ROOM);
}

static void give_back(void *memory, const char *file, int line)
{
	size_t room;

	(void)file;
	(void)line;
	if (!memory)
		return;
	/* malloc() may have rounded a length up. */
	room = malloc_usable_size(memory);
	if (room < BUFFER_ROOM || room > BUFFER_ROOM + 64 || !keep(memory))
		free(memory);
}

static void *change(void *memory, size_t length, const char *file, int line)
{
	if (!memory)
		return take(length, file, line);
	if (length == 0) {
		give_back(memory, file, line);
		return NULL;
	}
	return realloc(memory, length);
}

void openssl_memory_init(void)
{
	/* Refused once memory has been taken: then malloc() does everything. */
	if (pthread_key_create(&key, free_kept) == 0)
		(void)CRYPTO_set_mem_functions(take, change, give_back);
}
