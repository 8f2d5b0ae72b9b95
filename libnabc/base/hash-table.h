/* SPDX-License-Identifier: MIT */
/*
 * hash-table.h - a hash table by 64-bit key; entries are embedded in what they
 * find, so entering never fails.  Pure; the caller locks.
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
	struct nc_hash_entry **buckets; /* NULL: the one below */
	struct nc_hash_entry *only;
	size_t mask;
	size_t count;
};

void nc_hash_table_init(struct nc_hash_table *table);

/* The entries stay whose they are. */
void nc_hash_table_fini(struct nc_hash_table *table);

/* The key must not be there yet. */
void nc_hash_table_enter(struct nc_hash_table *table, struct nc_hash_entry *entry, uint64_t key);
struct nc_hash_entry *nc_hash_table_find(const struct nc_hash_table *table, uint64_t key);

/* Takes the entry out, which must be there. */
void nc_hash_table_leave(struct nc_hash_table *table, struct nc_hash_entry *entry);

/*
 * Walks all entries: NULL begins, NULL ends.  Nothing may be entered
 * meanwhile; the entry that was returned last may leave only once its
 * successor has been asked for.
 */
struct nc_hash_entry *nc_hash_table_next(const struct nc_hash_table *table,
					 const struct nc_hash_entry *entry);

#endif
