/* SPDX-License-Identifier: MIT */
/*
 * id.h - the parts of a cache id.
 *
 * member (14 bits) | slot (22 bits) | generation (28 bits).  The generation of a
 * slot grows with each unit and never wraps: a slot that has used all generations
 * is retired, so an id is never given to a second unit (invariant 4).  Generations
 * begin at 1, so no id is 0.  Also builds in the kernel module.
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
