/* SPDX-License-Identifier: MIT */
/*
 * board.c - the owner's end of a board; see board.h.
 */
#include <assert.h>
#include <errno.h>
#include <stddef.h>

#include "base/fragment.h"
#include "base/id.h"
#include "store/board.h"
#include "wire/wire.h"

static_assert(NC_BOARD_REVOKED % (NC_ID_GENERATION_MAX + UINT64_C(1)) == 0, "is no id");
static_assert(NC_BOARD_SIZE % NC_PAGE == 0, "whole pages");
static_assert(NC_BOARD_SIZE == NC_WIRE_BOARD_SIZE, "ABI of the board");

int nc_board_open(struct nc_board *board)
{
	int error;

	*board = (struct nc_board){0};
	error = nc_segment_create(&board->segment, NC_BOARD_SIZE, false, false);
	if (!error) {
		/* The owner has its mapping; nobody gets another that can write. */
		error = nc_segment_seal(&board->segment);
		if (error)
			nc_segment_close(&board->segment);
	}
	return error;
}

void nc_board_close(struct nc_board *board)
{
	if (board->segment.base)
		nc_segment_close(&board->segment);
}

int nc_board_post(struct nc_board *board, uint64_t id)
{
	for (uint32_t i = 0; i < NC_BOARD_SLOTS / 64; i++) {
		uint32_t word = (board->hint + i) % (NC_BOARD_SLOTS / 64);
		uint32_t slot;

		if (board->used[word] == UINT64_MAX)
			continue;
		slot = word * 64 + (uint32_t)__builtin_ctzll(~board->used[word]);
		board->used[word] |= UINT64_C(1) << slot % 64;
		board->hint = word;
		atomic_store_explicit(nc_board_slot(&board->segment, slot), id,
				      memory_order_release);
		return (int)slot;
	}
	return -ENOSPC;
}

void nc_board_strike(struct nc_board *board, uint32_t slot, uint64_t reason)
{
	atomic_store_explicit(nc_board_slot(&board->segment, slot), reason, memory_order_release);
}

void nc_board_free(struct nc_board *board, uint32_t slot)
{
	nc_board_strike(board, slot, NC_BOARD_DESTROYED);
	board->used[slot / 64] &= ~(UINT64_C(1) << slot % 64);
}
