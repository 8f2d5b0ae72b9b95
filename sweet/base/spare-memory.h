/* SPDX-License-Identifier: MIT */
/*
 * spare-memory.h - memory that one thread takes and gives back at a high rate: what was given back
 * last is taken next, and is still in the processor's caches.
 *
 * malloc() keeps seven pieces of each length for a thread.  It merges the others, and gives the end
 * of the heap back to the kernel, which has to clear the same pages again for the next requests.
 *
 * One thread.  Its memory must be given back to where it was taken.
 */
#ifndef SWEET_SPARE_MEMORY_H
#define SWEET_SPARE_MEMORY_H

#include <stddef.h>

#define SPARE_MEMORY_MOST (256u << 10) /* bytes that are kept */

struct spare_memory;

/* Returns NULL without memory. */
struct spare_memory *spare_memory_new(void);

/* Frees what is kept; nothing is in use any more.  NULL: does nothing. */
void spare_memory_free(struct spare_memory *spare);

/* These are as malloc(), calloc(), realloc() and free(), with their alignment. */
void *spare_memory_take(struct spare_memory *spare, size_t length);
void *spare_memory_take_zeroed(struct spare_memory *spare, size_t count, size_t length);
void *spare_memory_change(struct spare_memory *spare, void *memory, size_t length);
void spare_memory_give_back(struct spare_memory *spare, void *memory);

#endif
