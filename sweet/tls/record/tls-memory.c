/* SPDX-License-Identifier: MIT */
/*
 * tls-memory.c - see tls-memory.h.  The buffers of records are taken for each record, or for those that are
 * sent together, and given back, so that a connection that waits has none.
 *
 * They are too long for the lists of small blocks that malloc() has for each thread; and the kernel
 * gets them back from the end of the heap, and clears them again.  Each thread therefore keeps the
 * few that were used last, which are still in the processor's cache, too.  Everything else comes
 * from malloc().
 */
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>

#include "tls/record/tls-memory.h"

#define KEPT_MAX 4u
/* Kept buffers have it: memory without it is none of them, and malloc() need not be asked. */
#define ALIGNMENT 1024u

/* A buffer has the room of its class, which is for lengths above `least`. */
static const struct buffer_class {
	size_t least, room;
	unsigned kept_max;
} classes[] = {
	/* A record with its header, padding and code, and what OpenSSL adds to align it; of a
	 * connection: one to read, one to write. */
	{16u << 10, 18u << 10, KEPT_MAX},
	/* What tls-output.c has for records that are sent together. */
	{64u << 10, 66u << 10, 1},
};
#define CLASSES (sizeof(classes) / sizeof(classes[0]))

struct kept {
	void *buffers[CLASSES][KEPT_MAX];
	unsigned count[CLASSES];
	bool ends_with_thread;
};

static _Thread_local struct kept kept;
static pthread_key_t key;

static void tls_memory_free_kept(void *of_thread)
{
	struct kept *these = of_thread;

	for (unsigned i = 0; i < CLASSES; i++)
		while (these->count[i])
			free(these->buffers[i][--these->count[i]]);
	/* Another key's destructor may give back one more. */
	these->ends_with_thread = false;
}

/* Returns CLASSES for a length that no class has. */
static unsigned class_of(size_t length)
{
	unsigned i;

	for (i = 0; i < CLASSES; i++)
		if (length > classes[i].least && length <= classes[i].room)
			break;
	return i;
}

/* The same for memory, whose room malloc() may have rounded up. */
static unsigned class_of_memory(void *memory)
{
	unsigned i = CLASSES;
	size_t room;

	if ((uintptr_t)memory % ALIGNMENT == 0) {
		room = malloc_usable_size(memory);
		for (i = 0; i < CLASSES; i++)
			if (room >= classes[i].room && room <= classes[i].room + 64)
				break;
	}
	return i;
}

static bool keep(void *buffer, unsigned class)
{
	if (!kept.ends_with_thread)
		kept.ends_with_thread = pthread_setspecific(key, &kept) == 0;
	if (!kept.ends_with_thread || kept.count[class] == classes[class].kept_max)
		return false;
	kept.buffers[class][kept.count[class]++] = buffer;
	return true;
}

/* For a length of 0, OpenSSL expects NULL. */
static void *tls_memory_take(size_t length, const char *file, int line)
{
	unsigned class = class_of(length);

	(void)file;
	(void)line;
	if (class == CLASSES)
		return length ? malloc(length) : NULL;
	return kept.count[class] ? kept.buffers[class][--kept.count[class]]
				 : aligned_alloc(ALIGNMENT, classes[class].room);
}

static void tls_memory_give_back(void *memory, const char *file, int line)
{
	unsigned class;

	(void)file;
	(void)line;
	if (!memory)
		return;
	class = class_of_memory(memory);
	if (class == CLASSES || !keep(memory, class))
		free(memory);
}

/* A buffer of a class is exchanged for another one, which may have been kept. */
static void *tls_memory_change(void *memory, size_t length, const char *file, int line)
{
	void *changed;
	size_t room;

	if (!memory)
		return tls_memory_take(length, file, line);
	if (length == 0) {
		tls_memory_give_back(memory, file, line);
		return NULL;
	}
	if (class_of(length) == CLASSES && class_of_memory(memory) == CLASSES)
		return realloc(memory, length);
	room = malloc_usable_size(memory);
	changed = tls_memory_take(length, file, line);
	if (changed) {
		memcpy(changed, memory, length < room ? length : room);
		tls_memory_give_back(memory, file, line);
	}
	return changed;
}

void tls_memory_init(void)
{
	/* Refused once memory has been taken: then malloc() does everything. */
	if (pthread_key_create(&key, tls_memory_free_kept) == 0)
		(void)CRYPTO_set_mem_functions(tls_memory_take, tls_memory_change,
					       tls_memory_give_back);
}
