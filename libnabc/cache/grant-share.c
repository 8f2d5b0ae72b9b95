/* SPDX-License-Identifier: MIT */
/*
 * grant-share.c - how much of the owner's memory the sealed units of members have, and
 * which one is evicted first, so that one member leaves the rest to files and to others; see grant.h.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/hash-table.h"
#include "cache/grant-internal.h"
#include "cache/grant.h"

/* All members and orphans together: this many shares of one. */
#define SHARES 2u

static struct nc_sealed_units *list_of(struct nc_grants *grants,
				       const struct nc_grant_record *record)
{
	return record->maker ? &record->maker->units : &grants->orphans;
}

static void append(struct nc_sealed_units *list, struct nc_grant_record *record)
{
	record->newer = NULL;
	record->older = list->newest;
	*(list->newest ? &list->newest->newer : &list->oldest) = record;
	list->newest = record;
	list->bytes += record->cached;
}

static void take_out(struct nc_sealed_units *list, struct nc_grant_record *record)
{
	*(record->older ? &record->older->newer : &list->oldest) = record->newer;
	*(record->newer ? &record->newer->older : &list->newest) = record->older;
	list->bytes -= record->cached;
}

void nc_sealed_enter_locked(struct nc_grants *grants, struct nc_grant_record *record, size_t bytes)
{
	record->cached = bytes;
	grants->sealed += bytes;
	append(list_of(grants, record), record);
}

void nc_sealed_leave_locked(struct nc_grants *grants, struct nc_grant_record *record)
{
	if (!record->cached)
		return;
	take_out(list_of(grants, record), record);
	grants->sealed -= record->cached;
	record->cached = 0;
}

void nc_sealed_orphan_locked(struct nc_grants *grants, struct nc_grant_record *record)
{
	if (record->cached)
		take_out(list_of(grants, record), record);
	record->maker = NULL;
	if (record->cached)
		append(&grants->orphans, record);
}

bool nc_grants_orphan(struct nc_grants *grants, size_t *id)
{
	const struct nc_grant_record *first;

	pthread_mutex_lock(&grants->lock);
	first = grants->orphans.oldest;
	if (first)
		*id = first->entry.key;
	pthread_mutex_unlock(&grants->lock);
	return first;
}

/* Orphans come first: their makers have no use for them any more. */
static struct nc_sealed_units *largest_locked(struct nc_grants *grants)
{
	struct nc_sealed_units *largest = &grants->orphans;

	if (largest->oldest)
		return largest;
	for (struct nc_subject *at = grants->subjects; at; at = at->next)
		if (at->units.bytes > largest->bytes)
			largest = &at->units;
	return largest;
}

static bool is_over(size_t bytes, size_t more, size_t limit)
{
	return more > limit || bytes > limit - more;
}

bool nc_grants_exceed(struct nc_grants *grants, struct nc_subject *maker, size_t size, size_t *id)
{
	struct nc_sealed_units *list = NULL;
	struct nc_grant_record *oldest = NULL;

	pthread_mutex_lock(&grants->lock);
	if (is_over(maker->units.bytes, size, grants->share))
		list = &maker->units;
	if ((!list || !list->oldest) && is_over(grants->sealed, size, SHARES * grants->share))
		list = largest_locked(grants);
	if (list)
		oldest = list->oldest;
	if (oldest) {
		*id = oldest->entry.key;
		take_out(list, oldest);
		append(list, oldest);
	}
	pthread_mutex_unlock(&grants->lock);
	return oldest;
}
