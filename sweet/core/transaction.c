/* SPDX-License-Identifier: MIT */
/*
 * transaction.c - see transaction.h: memory for heads that are larger than head_buffer.
 */
#include <stdlib.h>

#include "core/transaction.h"

#define ALIGN 64u /* as the head in output.h */

bool transaction_make_room(struct transaction *transaction, size_t bytes)
{
	size_t out = (bytes + TRANSACTION_AROUND_MAX + ALIGN - 1) / ALIGN * ALIGN;
	size_t all = out + (bytes + ALIGN - 1) / ALIGN * ALIGN;

	transaction_drop_room(transaction);
	transaction->long_out = aligned_alloc(ALIGN, all);
	if (!transaction->long_out)
		return false;
	transaction->long_head = transaction->long_out + out;
	transaction->long_room = bytes;
	return true;
}

void transaction_drop_room(struct transaction *transaction)
{
	free(transaction->long_out);
	transaction->long_out = transaction->long_head = NULL;
	transaction->long_room = 0;
}
