/* SPDX-License-Identifier: MIT */
/*
 * pending-tags.h - the tags of a channel's pending requests, so that a server cannot submit two
 * with one tag, whose responses it could not tell apart.  No I/O; they belong to the channel's thread.
 */
#ifndef NC_PENDING_TAGS_H
#define NC_PENDING_TAGS_H

#include <stdint.h>

#include "base/hash-table.h"

struct nc_pending_tag;

/* Zeros: none. */
struct nc_pending_tags {
	struct nc_hash_table table;
	struct nc_pending_tag *spare; /* for the next ones */
};

void nc_pending_tags_fini(struct nc_pending_tags *tags);

/* number: of the request in the channel.  Returns 0, -EEXIST or -ENOMEM. */
int nc_pending_tags_add(struct nc_pending_tags *tags, uint64_t tag, uint64_t number);

/* Does nothing if the tag is not there. */
void nc_pending_tags_remove(struct nc_pending_tags *tags, uint64_t tag);

/* Removes requests first to last, which the server has withdrawn. */
void nc_pending_tags_withdraw(struct nc_pending_tags *tags, uint64_t first, uint64_t last);

#endif
