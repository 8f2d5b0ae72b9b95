/* SPDX-License-Identifier: MIT */
/*
 * transaction-file.h - what a responder sends of a file, in the memory that the transaction has for
 * it.
 */
#ifndef SWEET_TRANSACTION_FILE_H
#define SWEET_TRANSACTION_FILE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/transaction.h"
#include "http/conditional.h"
#include "http/multipart.h"
#include "http/range.h"

struct file_cache;
struct file_cache_entry;

/* Private to file-response.c, valid only while that responds. */
struct file_response {
	struct conditions conditions;
	struct file_cache *cache;
	struct file_cache_entry *entry;
	const char *type; /* Content-Type */
	size_t own_lines; /* bytes of the caller's header lines */
	struct range_set ranges;
	unsigned part;		    /* the range that is being sent */
	bool parts;		    /* with texts of multipart/byteranges between the ranges */
	struct multipart multipart; /* with parts */
};

static_assert(sizeof(struct file_response) <= TRANSACTION_FILE_RESPONSE, "it has room");

static inline struct file_response *transaction_file(const struct transaction *transaction)
{
	return (struct file_response *)(void *)(uintptr_t)transaction->file_response;
}

#endif
