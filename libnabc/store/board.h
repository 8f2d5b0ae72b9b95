/* SPDX-License-Identifier: MIT */
/*
 * board.h - where the owner shows a member which of the units that were lent
 * to it still stand.
 *
 * The member looks before each use, so a unit that was revoked or destroyed
 * is refused without a message.  Only the owner can write there.  (A process
 * that bypasses the library keeps what it has already mapped; nobody can take
 * that from it, and it can get nothing new.)
 */
#ifndef NC_BOARD_H
#define NC_BOARD_H

#include <stdatomic.h>
#include <stdint.h>

#include "os/segment.h"

#define NC_BOARD_SLOTS 4096u
#define NC_BOARD_SIZE (NC_BOARD_SLOTS * sizeof(uint64_t))

/*
 * What a slot says; anything else is the id that stands.  Neither is an id:
 * those have a generation in their lowest bits (id.h).
 */
#define NC_BOARD_DESTROYED UINT64_C(0)
#define NC_BOARD_REVOKED (UINT64_C(1) << 63)

struct nc_board {
	struct nc_segment segment; /* base NULL: not opened */
	uint64_t used[NC_BOARD_SLOTS / 64];
	uint32_t hint;
};

static inline _Atomic uint64_t *nc_board_slot(const struct nc_segment *segment, uint32_t slot)
{
	return (_Atomic uint64_t *)(void *)segment->base + slot;
}

/* The owner's end; the caller locks. */
int nc_board_open(struct nc_board *board);
void nc_board_close(struct nc_board *board);

/* A slot that shows the id; -ENOSPC. */
int nc_board_post(struct nc_board *board, uint64_t id);

/* The unit stands no more, for that reason; the slot stays taken. */
void nc_board_strike(struct nc_board *board, uint32_t slot, uint64_t reason);
void nc_board_free(struct nc_board *board, uint32_t slot);

/* The member's end: what a slot shows. */
static inline uint64_t nc_board_read(const struct nc_segment *segment, uint32_t slot)
{
	return atomic_load_explicit(nc_board_slot(segment, slot), memory_order_acquire);
}

#endif
