/* SPDX-License-Identifier: MIT */
/*
 * grant-subject.c - the processes that make, are granted and import units, and
 * their limits; see grant.h.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>

#include "base/hash-table.h"
#include "cache/grant-internal.h"
#include "cache/grant.h"
#include "os/identity.h"

/* Returns how many of the owner's descriptors members may occupy. */
static rlim_t descriptors_most(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) < 0 ? 0 : limit.rlim_cur / 2;
}

int nc_grants_one_more(const struct nc_grants *grants, const struct nc_subject *maker)
{
	rlim_t most = descriptors_most();

	if (maker->descriptors >= most / 4)
		return -EDQUOT;
	return grants->descriptors >= most ? -EMFILE : 0;
}

void nc_grants_count_one(struct nc_grants *grants, struct nc_subject *maker, bool *counted)
{
	*counted = true;
	grants->descriptors++;
	maker->descriptors++;
}

void nc_grants_discount(struct nc_grants *grants, struct nc_subject *maker, bool counted)
{
	if (!counted)
		return;
	grants->descriptors--;
	if (maker)
		maker->descriptors--;
}

void nc_grants_join(struct nc_grants *grants, struct nc_subject *subject)
{
	pthread_mutex_lock(&grants->lock);
	subject->next = grants->subjects;
	grants->subjects = subject;
	pthread_mutex_unlock(&grants->lock);
}

/* Returns one unit at a time, so that orphan() may call this module. */
static bool next_orphan(struct nc_grants *grants, struct nc_subject *maker, size_t *id)
{
	struct nc_hash_entry *entry = NULL;
	bool found = false;

	pthread_mutex_lock(&grants->lock);
	/* `sealed` tells whether units are left: other threads may be dropping some meanwhile. */
	while (!found && maker->sealed && (entry = nc_hash_table_next(&grants->records, entry))) {
		struct nc_grant_record *record = (struct nc_grant_record *)entry;

		if (record->maker != maker)
			continue;
		/*
		 * The unit is the cache's own memory from now on; copies were
		 * dropped with the member's segment.
		 */
		maker->sealed -= record->charged;
		record->charged = 0;
		nc_sealed_orphan_locked(grants, record);
		*id = entry->key;
		found = true;
	}
	pthread_mutex_unlock(&grants->lock);
	return found;
}

void nc_grants_number(struct nc_grants *grants, struct nc_subject *subject, unsigned number)
{
	pthread_mutex_lock(&grants->lock);
	subject->number = number;
	pthread_mutex_unlock(&grants->lock);
}

void nc_grants_identify(struct nc_grants *grants, struct nc_subject *subject,
			const struct nc_identity *who)
{
	pthread_mutex_lock(&grants->lock);
	subject->who = *who;
	pthread_mutex_unlock(&grants->lock);
}

void nc_grants_part(struct nc_grants *grants, struct nc_subject *subject,
		    void (*orphan)(void *context, size_t id), void *context)
{
	struct nc_subject **link = &grants->subjects;
	size_t id;

	pthread_mutex_lock(&grants->lock);
	while (*link != subject)
		link = &(*link)->next;
	*link = subject->next;
	nc_exports_return_all_locked(grants, subject);
	pthread_mutex_unlock(&grants->lock);
	/* Copies of units in its own segment end with that segment. */
	if (subject->number)
		nc_grants_drop_member(grants, subject->number);
	while (next_orphan(grants, subject, &id))
		orphan(context, id);
	nc_identity_close(&subject->who);
}

int nc_grants_room_locked(const struct nc_grants *grants, const struct nc_subject *maker,
			  size_t size)
{
	if (size > maker->quota || maker->sealed > maker->quota - size)
		return -EDQUOT;
	return nc_grants_one_more(grants, maker);
}

int nc_grants_room(struct nc_grants *grants, const struct nc_subject *maker, size_t size)
{
	int error;

	pthread_mutex_lock(&grants->lock);
	error = nc_grants_room_locked(grants, maker, size);
	pthread_mutex_unlock(&grants->lock);
	return error;
}
