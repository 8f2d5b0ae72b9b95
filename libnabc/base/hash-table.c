/* SPDX-License-Identifier: MIT */
/*
 * hash-table.c - chained hashing; the table doubles when it is full.  If there is
 * no memory to grow, chains only become longer.
 */
#include <stdlib.h>

#include "base/hash-table.h"

#define BUCKETS_MIN 16u

/* Ids differ in few bits, and other processes may choose keys: all bits must count. */
static size_t bucket_of(const struct nc_hash_table *table, uint64_t key)
{
	key ^= key >> 32;
	key *= UINT64_C(0x9e3779b97f4a7c15);
	return (size_t)(key >> 32) & table->mask;
}

static struct nc_hash_entry **chain(const struct nc_hash_table *table, size_t bucket)
{
	return table->buckets ? &table->buckets[bucket] : (struct nc_hash_entry **)&table->only;
}

void nc_hash_table_init(struct nc_hash_table *table)
{
	*table = (struct nc_hash_table){0};
}

void nc_hash_table_fini(struct nc_hash_table *table)
{
	free(table->buckets);
	*table = (struct nc_hash_table){0};
}

static void put(struct nc_hash_table *table, struct nc_hash_entry *entry)
{
	struct nc_hash_entry **link = chain(table, bucket_of(table, entry->key));

	entry->next = *link;
	*link = entry;
}

static void grow(struct nc_hash_table *table)
{
	size_t count = table->buckets ? 2 * (table->mask + 1) : BUCKETS_MIN;
	struct nc_hash_table old = *table;
	struct nc_hash_entry **buckets = calloc(count, sizeof(struct nc_hash_entry *));

	if (!buckets)
		return;
	table->buckets = buckets;
	table->mask = count - 1;
	table->only = NULL;
	for (size_t i = 0; i <= old.mask; i++) {
		struct nc_hash_entry *entry = *chain(&old, i);

		while (entry) {
			struct nc_hash_entry *next = entry->next;

			put(table, entry);
			entry = next;
		}
	}
	free(old.buckets);
}

void nc_hash_table_enter(struct nc_hash_table *table, struct nc_hash_entry *entry, uint64_t key)
{
	if (table->count > table->mask)
		grow(table);
	entry->key = key;
	put(table, entry);
	table->count++;
}

struct nc_hash_entry *nc_hash_table_find(const struct nc_hash_table *table, uint64_t key)
{
	struct nc_hash_entry *entry = *chain(table, bucket_of(table, key));

	while (entry && entry->key != key)
		entry = entry->next;
	return entry;
}

void nc_hash_table_leave(struct nc_hash_table *table, struct nc_hash_entry *entry)
{
	struct nc_hash_entry **link = chain(table, bucket_of(table, entry->key));

	while (*link != entry)
		link = &(*link)->next;
	*link = entry->next;
	table->count--;
}

struct nc_hash_entry *nc_hash_table_next(const struct nc_hash_table *table,
					 const struct nc_hash_entry *entry)
{
	size_t bucket = 0;

	if (entry) {
		if (entry->next)
			return entry->next;
		bucket = bucket_of(table, entry->key) + 1;
	}
	for (; bucket <= table->mask; bucket++)
		if (*chain(table, bucket))
			return *chain(table, bucket);
	return NULL;
}
