/* SPDX-License-Identifier: MIT */
/*
 * pending-tags.c - see pending-tags.h.  Entries of ended requests serve the next ones, so that a
 * request allocates nothing unless more are pending than ever before.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/hash-table.h"
#include "wire/pending-tags.h"

struct nc_pending_tag {
	struct nc_hash_entry entry; /* first: the table's entry is the tag's */
	uint64_t number;
	struct nc_pending_tag *next; /* spare */
};

void nc_pending_tags_fini(struct nc_pending_tags *tags)
{
	struct nc_hash_entry *entry = nc_hash_table_next(&tags->table, NULL), *next;

	for (; entry; entry = next) {
		next = nc_hash_table_next(&tags->table, entry);
		free(entry);
	}
	while (tags->spare) {
		struct nc_pending_tag *spare = tags->spare;

		tags->spare = spare->next;
		free(spare);
	}
	nc_hash_table_fini(&tags->table);
}

int nc_pending_tags_add(struct nc_pending_tags *tags, uint64_t tag, uint64_t number)
{
	struct nc_pending_tag *pending = tags->spare;

	if (nc_hash_table_find(&tags->table, tag))
		return -EEXIST;
	if (pending)
		tags->spare = pending->next;
	else
		pending = malloc(sizeof(*pending));
	if (!pending)
		return -ENOMEM;
	pending->number = number;
	nc_hash_table_enter(&tags->table, &pending->entry, tag);
	return 0;
}

static void drop(struct nc_pending_tags *tags, struct nc_pending_tag *pending)
{
	nc_hash_table_leave(&tags->table, &pending->entry);
	pending->next = tags->spare;
	tags->spare = pending;
}

void nc_pending_tags_remove(struct nc_pending_tags *tags, uint64_t tag)
{
	struct nc_hash_entry *entry = nc_hash_table_find(&tags->table, tag);

	if (entry)
		drop(tags, (struct nc_pending_tag *)entry);
}

void nc_pending_tags_withdraw(struct nc_pending_tags *tags, uint64_t first, uint64_t last)
{
	struct nc_hash_entry *entry = nc_hash_table_next(&tags->table, NULL), *next;

	for (; entry; entry = next) {
		struct nc_pending_tag *pending = (struct nc_pending_tag *)entry;

		next = nc_hash_table_next(&tags->table, entry);
		if (pending->number >= first && pending->number <= last)
			drop(tags, pending);
	}
}
