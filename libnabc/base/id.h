/* SPDX-License-Identifier: MIT */
/*
 * id.h - the parts of a cache id, and what makes the ids of each cache its own.
 *
 * member (14 bits) | slot (22 bits) | generation (28 bits).  The generation of a
 * slot grows with each unit and never wraps: a slot that has used all generations
 * is retired, so an id is never given to a second unit (invariant 4).  Generations
 * are never 0, so no id is 0.  Also builds in the kernel module.
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

/*
 * The epoch of a cache: random parts of all its ids, so that an id of one cache names
 * nothing in another one, be that a child's after fork() or the one of an owner that
 * started again.  Numbers of members and slots of the owner are permuted, and generations
 * begin anywhere in their first quarter: three quarters or more are left to each slot.  The
 * owner's number stays 0.  Members get number and first generation with their welcome, so
 * only the owner needs to know the epoch.  The highest bit of numbers is left alone: the first
 * 8191 members have ids below 2^63, which no program takes for a negative number.
 * All zeros: numbers and slots as they are.
 */
#define NC_ID_FIRST_BITS (NC_ID_GENERATION_BITS - 2)

struct nc_id_epoch {
	unsigned members;
	unsigned slots;
	unsigned generation; /* the first one of every slot */
};

static inline struct nc_id_epoch nc_id_epoch(unsigned long long random)
{
	return (struct nc_id_epoch){
		.members = (unsigned)random & (NC_ID_MEMBERS_MAX / 2 - 1),
		.slots = (unsigned)(random >> NC_ID_MEMBER_BITS) & (NC_ID_SLOTS_MAX - 1),
		.generation = 1 + ((unsigned)(random >> (NC_ID_MEMBER_BITS + NC_ID_SLOT_BITS)) &
				   ((1u << NC_ID_FIRST_BITS) - 1)),
	};
}

/* The number of a member in ids, given its place in the owner's table, or the reverse. */
static inline unsigned nc_id_number(const struct nc_id_epoch *epoch, unsigned number)
{
	return number == 0 || number == epoch->members ? number : number ^ epoch->members;
}

#endif
