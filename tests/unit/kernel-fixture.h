/* SPDX-License-Identifier: MIT */
/*
 * kernel-fixture.h - shared by the tests of units in the kernel module: a cache
 * with its transmitter on the model of the module.
 */
#ifndef KERNEL_FIXTURE_H
#define KERNEL_FIXTURE_H

#include <nabc-worker.h>
#include <nabc.h>
#include <stddef.h>

#include "base/id.h"
#include "cache/index.h"
#include "cache/inspect.h"
#include "os/device.h"
#include "send/route.h"
#include "send/transmit.h"
#include "store/pool.h"
#include "store/unit.h"

#include "suite.h"
#include "transmit-fixture.h"

#include "device-model.h"

static inline void open_with_module_and(size_t size, unsigned flags)
{
	open_cache(size, NC_CACHE_NO_URING | flags);
	ck_assert_int_eq(nc_index_use_device(&cache, &model_system), 0);
	transmit.routes.sums = cache.device.sums;
}

static inline void open_with_module(size_t size)
{
	open_with_module_and(size, 0);
}

static inline struct nc_unit *unit_at(size_t id)
{
	return nc_units_at(&cache.own.units, nc_id_slot(id));
}

static inline enum NC_kind kind_of(size_t id)
{
	struct NC_stat stat;

	ck_assert_int_eq(nc_inspect_unit(&cache, id, &stat), 0);
	return stat.kind;
}

/* All counters. */
static inline struct NC_cache_stat counters(void)
{
	struct NC_cache_stat stat;

	nc_inspect_counters(&cache, &stat);
	nc_transmit_stat(&transmit, &stat);
	return stat;
}

#endif
