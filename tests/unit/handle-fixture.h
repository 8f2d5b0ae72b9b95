/* SPDX-License-Identifier: MIT */
/*
 * handle-fixture.h - shared by the tests of handle.c: a cache, and the bytes of a
 * unit as every process sees them.
 */
#ifndef HANDLE_FIXTURE_H
#define HANDLE_FIXTURE_H

#include <nabc-worker.h>
#include <nabc.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/fragment.h"
#include "base/id.h"
#include "cache/index.h"
#include "membership/handle.h"
#include "store/store.h"
#include "store/unit.h"

#include "suite.h"

#define PAGE ((size_t)4096)
#define MIB ((size_t)1 << 20)

static struct nc_index cache;

static const size_t fraglens[] = {0, 1448, 64, 1, 100, 8192};

#define FRAGLENS (sizeof(fraglens) / sizeof(fraglens[0]))

static inline void open_cache(void)
{
	struct NC_cache_options options = NC_CACHE_OPTIONS_INIT(.memory = 4 * MIB);

	ck_assert_int_eq(nc_index_init_owner(&cache, &options), 0);
}

static inline void must_alloc_unit(NC_handle *handle, size_t size, size_t fraglen,
				   enum NC_kind kind)
{
	ck_assert_int_eq(nc_handle_alloc(handle, &cache, size, fraglen, kind, 0), 0);
}

/* Returns the bytes of the unit, without gaps. */
static inline void copy_unit(const struct nc_unit *unit, unsigned char *to)
{
	for (size_t at = 0, run; at < unit->layout.size; at += run) {
		size_t where = nc_layout_at(&unit->layout, at, &run);

		memcpy(to + at, nc_unit_base(unit) + where, run);
	}
}

static inline struct nc_unit *unit_of(const NC_handle *handle)
{
	return ((const struct nc_handle *)(const void *)handle)->unit;
}

/* Inserts a unit, returns what every process would see then, and destroys it. */
static inline unsigned char *insert_and_copy(NC_handle *handle)
{
	unsigned char *bytes;
	struct nc_view view;
	size_t id;

	ck_assert_uint_eq(nc_handle_id(handle), 0);
	ck_assert_int_eq(nc_handle_insert(handle, NC_WHOLE), 0);
	id = nc_handle_id(handle);
	ck_assert_uint_ne(id, 0);
	ck_assert_int_eq(nc_index_hold(&cache, id, false, &view), 0);
	bytes = must_alloc(view.unit->layout.size);
	copy_unit(view.unit, bytes);
	ck_assert_int_eq(nc_index_release(&cache, id), 0);
	ck_assert_int_eq(nc_index_destroy(&cache, id), 0);
	ck_assert_int_eq(nc_handle_free(handle), 0);
	return bytes;
}

/* Fills all memory of the kind with other bytes, and frees it. */
static inline void soil(enum NC_kind kind, size_t size)
{
	NC_handle handle[4];

	for (unsigned i = 0; i < 4; i++) {
		must_alloc_unit(&handle[i], size, 0, kind);
		memset(nc_unit_base(unit_of(&handle[i])), 0xdd, unit_of(&handle[i])->layout.extent);
	}
	for (unsigned i = 4; i--;)
		ck_assert_int_eq(nc_handle_free(&handle[i]), 0);
}

#endif
