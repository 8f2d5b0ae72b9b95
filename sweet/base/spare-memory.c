/* SPDX-License-Identifier: MIT */
/*
 * spare-memory.c - see spare-memory.h: a list for each class of lengths.
 *
 * Before each block is its room, from which its class follows.  Longer blocks than those of the
 * last class are not kept.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/spare-memory.h"

#ifdef __SANITIZE_ADDRESS__
#define MOST 0 /* so that its use after its end is found */
#else
#define MOST SPARE_MEMORY_MOST
#endif

/* Up to SMALL_MOST bytes a class has multiples of SMALL_STEP, then of LARGE_STEP. */
#define SMALL_STEP 64u
#define SMALL_MOST 1024u
#define LARGE_STEP 1024u
#define LARGE_MOST 8192u
#define SMALL_CLASSES (SMALL_MOST / SMALL_STEP)
#define CLASSES (SMALL_CLASSES + LARGE_MOST / LARGE_STEP - 1)

struct block {
	_Alignas(max_align_t) struct block *next; /* while it is kept */
	size_t room;				  /* bytes that follow */
};

struct spare_memory {
	struct block *kept[CLASSES];
	size_t bytes; /* of those */
};

/* For 1 to LARGE_MOST bytes. */
static unsigned class_of(size_t length)
{
	return length <= SMALL_MOST ? (unsigned)(length - 1) / SMALL_STEP
				    : SMALL_CLASSES - 1 + (unsigned)(length - 1) / LARGE_STEP;
}

static size_t room_of(size_t length)
{
	size_t step = length <= SMALL_MOST ? SMALL_STEP : LARGE_STEP;

	return length <= LARGE_MOST ? (length + step - 1) / step * step : length;
}

static struct block *block_of(void *memory)
{
	return (struct block *)memory - 1;
}

struct spare_memory *spare_memory_new(void)
{
	return calloc(1, sizeof(struct spare_memory));
}

void spare_memory_free(struct spare_memory *spare)
{
	struct block *block;

	for (unsigned i = 0; spare && i < CLASSES; i++) {
		while ((block = spare->kept[i])) {
			spare->kept[i] = block->next;
			free(block);
		}
	}
	free(spare);
}

void *spare_memory_take(struct spare_memory *spare, size_t length)
{
	struct block *block, **kept;

	if (length == 0)
		length = 1;
	if (length <= LARGE_MOST) {
		kept = &spare->kept[class_of(length)];
		block = *kept;
		if (block) {
			*kept = block->next;
			spare->bytes -= block->room;
			return block + 1;
		}
	}
	length = room_of(length);
	if (length > PTRDIFF_MAX - sizeof(*block))
		return NULL;
	block = malloc(sizeof(*block) + length);
	if (!block)
		return NULL;
	block->room = length;
	return block + 1;
}

void *spare_memory_take_zeroed(struct spare_memory *spare, size_t count, size_t length)
{
	size_t bytes;
	void *memory;

	if (__builtin_mul_overflow(count, length, &bytes))
		return NULL;
	memory = spare_memory_take(spare, bytes);
	return memory ? memset(memory, 0, bytes) : NULL;
}

void *spare_memory_change(struct spare_memory *spare, void *memory, size_t length)
{
	size_t room = memory ? block_of(memory)->room : 0;
	void *changed;

	if (memory && length == 0) {
		spare_memory_give_back(spare, memory);
		return NULL;
	}
	if (memory && room == room_of(length))
		return memory;
	changed = spare_memory_take(spare, length);
	if (changed && memory) {
		memcpy(changed, memory, length < room ? length : room);
		spare_memory_give_back(spare, memory);
	}
	return changed;
}

void spare_memory_give_back(struct spare_memory *spare, void *memory)
{
	struct block *block, **kept;

	if (!memory)
		return;
	block = block_of(memory);
	if (block->room > LARGE_MOST || spare->bytes + block->room > MOST) {
		free(block);
		return;
	}
	kept = &spare->kept[class_of(block->room)];
	block->next = *kept;
	*kept = block;
	spare->bytes += block->room;
}
