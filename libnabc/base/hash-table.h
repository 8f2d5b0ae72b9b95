/* SPDX-License-Identifier: MIT */
/*
 * hash-table.h - a hash table with 64-bit keys; entries are embedded in the
 * structures to find, so entering never fails.  No I/O; the caller locks.
 */
#ifndef NC_HASH_TABLE_H
#define NC_HASH_TABLE_H

#include <stddef.h>
#include <stdint.h>

struct nc_hash_entry {
	uint64_t key;
	struct nc_hash_entry *next;
};

struct nc_hash_table {
	struct nc_hash_entry **buckets; /* NULL: only one chain, `only` */
	struct nc_hash_entry *only;
	size_t mask;
	size_t count;
};

void nc_hash_table_init(struct nc_hash_table *table);

/* The caller still owns the entries. */
void nc_hash_table_fini(struct nc_hash_table *table);

/* The key must not exist yet. */
void nc_hash_table_enter(struct nc_hash_table *table, struct nc_hash_entry *entry, uint64_t key);
struct nc_hash_entry *nc_hash_table_find(const struct nc_hash_table *table, uint64_t key);

/* Removes an entry, which must be in the table. */
void nc_hash_table_leave(struct nc_hash_table *table, struct nc_hash_entry *entry);

/*
 * Iterates over all entries: starts with NULL and returns NULL at the end.  No
 * entry may be added meanwhile; an entry may be removed only after its successor
 * was returned.
 */
struct nc_hash_entry *nc_hash_table_next(const struct nc_hash_table *table,
					 const struct nc_hash_entry *entry);

#endif
