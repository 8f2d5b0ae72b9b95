/* SPDX-License-Identifier: MIT */
/* fault-memory.c - failing allocations, and the number of live ones. */
#include "fault-internal.h"
#include "fault.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* glibc's own functions, for replacements of malloc(). */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *block);

static bool refused(enum fault_kind kind, const void *caller)
{
	uintptr_t from = (uintptr_t)caller;
	int error;

	if (!fault_plan || fault_inside || fault_is_glib(from))
		return false;
	error = fault_met(kind);
	if (error > 0)
		errno = error;
	return error > 0;
}

static void *counted(void *block)
{
	if (block && fault_plan)
		atomic_fetch_add_explicit(&fault_plan->live, 1, memory_order_relaxed);
	return block;
}

void *malloc(size_t size)
{
	if (refused(FAULT_malloc, __builtin_return_address(0)))
		return NULL;
	return counted(__libc_malloc(size));
}

void *calloc(size_t count, size_t size)
{
	if (refused(FAULT_calloc, __builtin_return_address(0)))
		return NULL;
	return counted(__libc_calloc(count, size));
}

static void *resize(void *block, size_t size)
{
	void *new = __libc_realloc(block, size);

	if (!block)
		counted(new);
	else if (fault_plan && size == 0 && !new)
		atomic_fetch_sub_explicit(&fault_plan->live, 1, memory_order_relaxed);
	return new;
}

void *realloc(void *block, size_t size)
{
	if (refused(FAULT_realloc, __builtin_return_address(0)))
		return NULL;
	return resize(block, size);
}

void *reallocarray(void *block, size_t count, size_t size)
{
	size_t bytes;

	if (refused(FAULT_realloc, __builtin_return_address(0)))
		return NULL;
	if (__builtin_mul_overflow(count, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	return resize(block, bytes);
}

void *aligned_alloc(size_t alignment, size_t size)
{
	if (refused(FAULT_aligned_alloc, __builtin_return_address(0)))
		return NULL;
	return counted(__libc_memalign(alignment, size));
}

int posix_memalign(void **block, size_t alignment, size_t size)
{
	void *new;

	if (refused(FAULT_aligned_alloc, __builtin_return_address(0)))
		return ENOMEM;
	new = counted(__libc_memalign(alignment, size));
	if (!new)
		return ENOMEM;
	*block = new;
	return 0;
}

void free(void *block)
{
	if (block && fault_plan)
		atomic_fetch_sub_explicit(&fault_plan->live, 1, memory_order_relaxed);
	__libc_free(block);
}
