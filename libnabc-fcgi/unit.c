/* SPDX-License-Identifier: MIT */
/*
 * unit.c - see unit.h.
 *
 * The memory behind the inserted bytes stays with a unit until it is sent.  So a small page leaves
 * as a copy, and the large unit in which it was written is used again.
 */
#include <errno.h>
#include <nabc.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

static _Atomic(struct fcgi_unit *) spare;

static void free_unit(struct fcgi_unit *unit)
{
	int error = errno;

	(void)NC_free(&unit->handle);
	free(unit);
	errno = error;
}

static struct fcgi_unit *allocate(size_t size)
{
	struct fcgi_unit *unit = calloc(1, sizeof(*unit));

	if (!unit)
		return NULL;
	unit->size = (size + FCGI_FRAGMENT - 1) & ~(FCGI_FRAGMENT - 1);
	if (NC_unit_alloc(NULL, &unit->handle, unit->size, FCGI_FRAGMENT, NC_KIND_AUTO,
			  NC_UNIT_UNSUMMED) < 0) {
		int error = errno;

		free(unit);
		errno = error;
		return NULL;
	}
	unit->base = NC_fragment(&unit->handle, 0, NULL);
	if (!unit->base) {
		free_unit(unit);
		return NULL;
	}
	return unit;
}

struct fcgi_unit *fcgi_unit_take(size_t size)
{
	struct fcgi_unit *unit = atomic_exchange(&spare, NULL);

	if (unit && unit->size >= size)
		return unit;
	if (unit)
		free_unit(unit);
	return allocate(size);
}

void fcgi_unit_put(struct fcgi_unit *unit)
{
	struct fcgi_unit *before = unit ? atomic_exchange(&spare, unit) : NULL;

	if (before)
		free_unit(before);
}

unsigned char *fcgi_unit_window(struct fcgi_unit *unit, size_t at)
{
	size_t length;
	unsigned char *fragment = NC_fragment(&unit->handle, at / FCGI_FRAGMENT, &length);

	return fragment ? fragment + length : NULL;
}

int fcgi_unit_write(struct fcgi_unit *unit, const void *data, size_t length, size_t at)
{
	return NC_write(&unit->handle, data, length, at) < 0 ? -1 : 0;
}

size_t fcgi_unit_insert(struct fcgi_unit *unit, size_t length)
{
	size_t id;

	if (NC_unit_insert(&unit->handle, length) < 0)
		return 0;
	id = NC_cache_id(&unit->handle);
	free_unit(unit);
	return id;
}

size_t fcgi_unit_insert_copy(const void *data, size_t length)
{
	NC_handle handle;
	size_t id = 0;
	int error;

	memset(&handle, 0, sizeof(handle));
	if (NC_unit_alloc(NULL, &handle, length, 0, NC_KIND_AUTO, NC_UNIT_UNSUMMED) < 0)
		return 0;
	if (NC_write(&handle, data, length, 0) >= 0 && NC_insert(&handle) == 0)
		id = NC_cache_id(&handle);
	error = errno;
	(void)NC_free(&handle);
	errno = error;
	return id;
}
