/* SPDX-License-Identifier: MIT */
/*
 * registered-internal.h - what the two files of registered buffers share: registered.c
 * (blocks of segments) and registered-slots.c (the table).  All functions are called under
 * the table's lock.
 */
#ifndef NC_REGISTERED_INTERNAL_H
#define NC_REGISTERED_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/segment.h"

struct nc_registered;

struct nc_registered_slot {
	uint64_t address; /* at registration */
	size_t length;
	struct nc_registered_segment *of; /* NULL: free, or uncleared */
	unsigned block;
	unsigned users; /* submissions being made */
	unsigned free;	/* next free slot + 1 */
	bool uncleared; /* still registered, but of no segment */
	uint64_t used;	/* time of the last use, ns */
};

struct nc_registered_block {
	unsigned slot; /* + 1; 0: not registered */
	uint64_t sent; /* bytes sent from it without registration */
};

/* A segment that was sent from, for one table. */
struct nc_registered_segment {
	struct nc_segment_watch watch; /* first */
	struct nc_registered *table;
	bool refused; /* the kernel does not register this memory */
	unsigned count;
	struct nc_registered_block blocks[];
};

/* Whether the calling thread may tell the kernel what to register. */
bool nc_registered_is_owner(const struct nc_registered *table);

/* Creates the table if there is none.  Returns 0, or -errno. */
int nc_registered_open_slots(struct nc_registered *table);

/* Registers memory under a slot's number; a base of NULL clears it.  Returns 0, or -errno. */
int nc_registered_update(const struct nc_registered *table, unsigned slot, void *base,
			 size_t length);

/* Enters a block that was registered under the number of the first free slot. */
void nc_registered_enter(struct nc_registered *table, const struct nc_registered_slot *slot);

/* Clears a slot, at once or when the owner does it. */
void nc_registered_clear_slot(struct nc_registered *table, struct nc_registered_slot *slot);

/* Tries again to clear what could not be. */
void nc_registered_clear_rest(struct nc_registered *table);

/*
 * Clears the slot whose last use is longest ago.  One that was used a moment ago is not
 * cleared: if more blocks are sent from than may be registered, each send would register
 * one.  Returns false if there is none.
 */
bool nc_registered_clear_oldest(struct nc_registered *table, uint64_t now);

/* Whether that number of bytes more may be registered. */
bool nc_registered_fits(struct nc_registered *table, size_t length);

/* Begins a new period when all sends of the one before the present one have ended. */
void nc_registered_turn(struct nc_registered *table);

/* Drops a reference and the lock; the last one frees the table. */
void nc_registered_unreference(struct nc_registered *table);

#endif
