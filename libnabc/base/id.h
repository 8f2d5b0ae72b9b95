/* SPDX-License-Identifier: MIT */
/*
 * id.h - the parts of a cache id.
 *
 * member (14 bits) | slot (22 bits) | generation (28 bits).  A slot's
 * generation grows with each unit it names and never wraps: a slot that has
 * spent its generations is retired, so an id means one unit for ever
 * (invariant 4).  Generations begin at 1, so no id is 0.  Pure: also builds
 * in the kernel module.
 */
#ifndef NC_ID_H
#define NC_ID_H

#include <stddef.h>

#define NC_ID_GENERATION_BITS 28
#define NC_ID_SLOT_BITS 22
#define NC_ID_MEMBER_BITS 14

#define NC_ID_GENERATION_MAX ((1u << NC_ID_GENERATION_BITS) - 1)
#define NC_ID_SLOTS_MAX (1u << NC_ID_SLOT_BITS)
#define NC_ID_MEMBERS_MAX (1u << NC_ID_MEMBER_BITS)

static inline size_t nc_id(unsigned member, unsigned slot, unsigned generation)
{
	return ((size_t)member << (NC_ID_SLOT_BITS + NC_ID_GENERATION_BITS)) |
	       ((size_t)slot << NC_ID_GENERATION_BITS) | generation;
}

static inline unsigned nc_id_member(size_t id)
{
	return (unsigned)(id >> (NC_ID_SLOT_BITS + NC_ID_GENERATION_BITS));
}

static inline unsigned nc_id_slot(size_t id)
{
	return (unsigned)(id >> NC_ID_GENERATION_BITS) & (NC_ID_SLOTS_MAX - 1);
}

static inline unsigned nc_id_generation(size_t id)
{
	return (unsigned)id & NC_ID_GENERATION_MAX;
}

#endif
