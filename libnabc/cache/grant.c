/* SPDX-License-Identifier: MIT */
/* grant.c - the records of units, and to whom each is granted; see grant.h. */
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fragment.h"
#include "base/id.h"
#include "cache/grant-internal.h"
#include "cache/grant.h"
#include "os/segment.h"

#define MARK_BITS 15u
#define MARKS (1u << MARK_BITS)

void nc_grants_init(struct nc_grants *grants, size_t quota)
{
	*grants = (struct nc_grants){.quota = quota, .share = SIZE_MAX / 4, .copies_max = UINT_MAX};
	pthread_mutex_init(&grants->lock, NULL);
	nc_hash_table_init(&grants->records);
	grants->marks = calloc(MARKS, sizeof(*grants->marks));
}

/* Of the records that this id may have. */
static _Atomic uint32_t *mark_of(const struct nc_grants *grants, size_t id)
{
	return &grants->marks[(uint64_t)id * UINT64_C(0x9e3779b97f4a7c15) >> (64 - MARK_BITS)];
}

/* Whether there may be a record; never wrong if there is one. */
static bool may_have_record(struct nc_grants *grants, size_t id)
{
	/* Sequentially consistent with nc_grants_enter(). */
	return grants->marks ? atomic_load_explicit(mark_of(grants, id), memory_order_seq_cst)
			     : atomic_load_explicit(&grants->count, memory_order_seq_cst);
}

struct nc_grant_record *nc_grants_find_locked(const struct nc_grants *grants, size_t id)
{
	return (struct nc_grant_record *)nc_hash_table_find(&grants->records, id);
}

static void remove_grant(struct nc_grants *grants, struct nc_grant_record *record,
			 struct nc_grant_entry **link)
{
	struct nc_grant_entry *grant = *link;

	*link = grant->next;
	record->grant_count--;
	nc_grants_discount(grants, record->maker, grant->counted);
	if (grant->to.pidfd >= 0)
		close(grant->to.pidfd);
	free(grant);
}

static void drop_locked(struct nc_grants *grants, struct nc_grant_record *record)
{
	while (record->exports)
		nc_export_revoke(record->exports, NC_REVOCATION_DESTROYED);
	while (record->grants)
		remove_grant(grants, record, &record->grants);
	nc_grants_discount(grants, record->maker, record->counted);
	if (record->copy.fd >= 0)
		nc_segment_close(&record->copy);
	nc_sealed_leave_locked(grants, record);
	if (record->maker)
		record->maker->sealed -= record->charged;
	else
		grants->copied -= record->charged;
	grants->copies -= record->owners_copy;
	nc_hash_table_leave(&grants->records, &record->entry);
	if (grants->marks)
		atomic_fetch_sub_explicit(mark_of(grants, record->entry.key), 1,
					  memory_order_relaxed);
	atomic_fetch_sub_explicit(&grants->count, 1, memory_order_relaxed);
	free(record);
}

void nc_grants_tidy_locked(struct nc_grants *grants, struct nc_grant_record *record)
{
	if (!record->grants && !record->exports && record->copy.fd >= 0)
		drop_locked(grants, record);
}

void nc_grants_fini(struct nc_grants *grants)
{
	struct nc_hash_entry *entry;

	while ((entry = nc_hash_table_next(&grants->records, NULL)))
		drop_locked(grants, (struct nc_grant_record *)entry);
	nc_hash_table_fini(&grants->records);
	free(grants->marks);
	pthread_mutex_destroy(&grants->lock);
}

static struct nc_origin origin_of(const struct nc_subject *maker)
{
	return (struct nc_origin){
		.pid = maker->who.pid, .session = maker->who.session, .since = maker->who.since};
}

int nc_grants_enter(struct nc_grants *grants, size_t id, struct nc_subject *maker,
		    const struct nc_segment *copy, size_t size, size_t fraglen)
{
	size_t bytes = copy ? copy->size : (size + NC_PAGE - 1) / NC_PAGE * NC_PAGE;
	struct nc_grant_record *record = calloc(1, sizeof(*record));
	int error = 0;

	if (!record)
		return -ENOMEM;
	pthread_mutex_lock(&grants->lock);
	if (nc_grants_find_locked(grants, id))
		error = -EEXIST;
	else if (maker)
		error = nc_grants_room_locked(grants, maker, bytes);
	else if (copy && (bytes > grants->quota || grants->copied > grants->quota - bytes))
		error = -EDQUOT;
	else if (copy && grants->copies >= grants->copies_max)
		error = -EMFILE;
	if (error) {
		pthread_mutex_unlock(&grants->lock);
		free(record);
		return error;
	}
	record->maker = maker;
	record->copy = copy ? *copy : (struct nc_segment){.fd = -1};
	record->size = size;
	record->fraglen = fraglen;
	record->charged = maker || copy ? bytes : 0;
	if (maker) {
		record->origin = origin_of(maker);
		maker->sealed += record->charged;
		nc_grants_count_one(grants, maker, &record->counted);
		if (!copy)
			nc_sealed_enter_locked(grants, record, bytes);
	} else {
		grants->copied += record->charged;
		record->owners_copy = copy != NULL;
		grants->copies += record->owners_copy;
	}
	nc_hash_table_enter(&grants->records, &record->entry, id);
	/* Before the caller looks whether the unit is still there: see nc_grants_drop(). */
	if (grants->marks)
		atomic_fetch_add_explicit(mark_of(grants, id), 1, memory_order_seq_cst);
	atomic_fetch_add_explicit(&grants->count, 1, memory_order_seq_cst);
	pthread_mutex_unlock(&grants->lock);
	return 0;
}

static struct nc_origin find_origin_locked(const struct nc_grants *grants, size_t id,
					   const struct nc_grant_record *record)
{
	struct nc_origin origin = record ? record->origin : (struct nc_origin){0};
	unsigned number = nc_id_member(id);

	/* The maker of a unit in a member's segment is attached, or the unit is gone. */
	for (const struct nc_subject *at = grants->subjects; at && number; at = at->next)
		if (at->number == number)
			origin = origin_of(at);
	return origin;
}

pid_t nc_grants_session(struct nc_grants *grants, size_t id, uint64_t *since)
{
	struct nc_origin origin;

	pthread_mutex_lock(&grants->lock);
	origin = find_origin_locked(grants, id, nc_grants_find_locked(grants, id));
	pthread_mutex_unlock(&grants->lock);
	*since = origin.session ? origin.since : 0;
	return origin.session;
}

bool nc_grants_known(struct nc_grants *grants, size_t id, const struct nc_subject *subject,
		     bool *made)
{
	struct nc_grant_record *record;

	*made = false;
	if (!may_have_record(grants, id))
		return false;
	pthread_mutex_lock(&grants->lock);
	record = nc_grants_find_locked(grants, id);
	if (record)
		*made = record->maker == subject;
	pthread_mutex_unlock(&grants->lock);
	return record;
}

static bool same(const struct nc_grantee *a, const struct nc_grantee *b)
{
	return a->principal == b->principal && a->who == b->who;
}

/* A process that has ended never returns. */
static void purge_locked(struct nc_grants *grants, struct nc_grant_record *record)
{
	struct nc_grant_entry **link = &record->grants;

	while (*link) {
		if (nc_identity_ended((*link)->to.pidfd))
			remove_grant(grants, record, link);
		else
			link = &(*link)->next;
	}
}

static bool has_grant(const struct nc_grant_record *record, const struct nc_grantee *who)
{
	const struct nc_grant_entry *grant = record->grants;

	while (grant && !same(&grant->to, who))
		grant = grant->next;
	return grant;
}

static int add_locked(struct nc_grants *grants, struct nc_grant_record *record,
		      const struct nc_grantee *to)
{
	bool costs = to->pidfd >= 0 && record->maker;
	struct nc_grant_entry *grant;
	int error;

	purge_locked(grants, record);
	/* A pid names only one running process: no second pidfd is necessary. */
	if (has_grant(record, to)) {
		if (to->pidfd >= 0)
			close(to->pidfd);
		return 0;
	}
	if (record->grant_count >= NC_GRANTS_MAX)
		return -ENOSPC;
	error = costs ? nc_grants_one_more(grants, record->maker) : 0;
	if (error)
		return error;
	grant = malloc(sizeof(*grant));
	if (!grant)
		return -ENOMEM;
	*grant = (struct nc_grant_entry){
		.next = record->grants, .to = *to, .serial = ++grants->last_serial};
	if (costs)
		nc_grants_count_one(grants, record->maker, &grant->counted);
	record->grants = grant;
	record->grant_count++;
	return 0;
}

int nc_grants_add(struct nc_grants *grants, size_t id, const struct nc_grantee *to)
{
	struct nc_grant_record *record;
	int error = -ENOENT;

	pthread_mutex_lock(&grants->lock);
	record = nc_grants_find_locked(grants, id);
	if (record) {
		error = add_locked(grants, record, to);
		/* Remove a copy that was made only for this grant. */
		if (error)
			nc_grants_tidy_locked(grants, record);
	}
	pthread_mutex_unlock(&grants->lock);
	return error;
}

static bool applies(const struct nc_grantee *to, const struct nc_identity *who)
{
	return (to->principal == NC_PROCESS && nc_identity_is(who, (pid_t)to->who, to->pidfd)) ||
	       (to->principal == NC_USER && who->uid == to->who) ||
	       (to->principal == NC_GROUP && nc_identity_in_group(who, to->who));
}

static bool is_granted(const struct nc_grant_record *record, const struct nc_identity *who)
{
	for (const struct nc_grant_entry *grant = record->grants; grant; grant = grant->next)
		if (applies(&grant->to, who))
			return true;
	return false;
}

bool nc_grants_allowed(const struct nc_grant_record *record, const struct nc_subject *subject)
{
	return subject->operates || record->maker == subject || is_granted(record, &subject->who);
}

bool nc_grants_admits(struct nc_grants *grants, size_t id, const struct nc_identity *who,
		      uint64_t started)
{
	const struct nc_grant_record *record;
	struct nc_origin origin;
	bool may;

	pthread_mutex_lock(&grants->lock);
	record = nc_grants_find_locked(grants, id);
	origin = find_origin_locked(grants, id, record);
	may = origin.pid && started <= origin.since &&
	      (origin.pid == who->pid || origin.session == who->pid);
	may = may || (record && is_granted(record, who));
	pthread_mutex_unlock(&grants->lock);
	return may;
}

int nc_grants_revoke(struct nc_grants *grants, size_t id, const struct nc_grantee *from)
{
	struct nc_grant_record *record;
	int error = -ENOENT;

	pthread_mutex_lock(&grants->lock);
	record = nc_grants_find_locked(grants, id);
	if (record) {
		struct nc_grant_entry **link = &record->grants;
		struct nc_export *export, *next;

		while (*link) {
			if (same(&(*link)->to, from)) {
				remove_grant(grants, record, link);
				error = 0;
			} else {
				link = &(*link)->next;
			}
		}
		for (export = record->exports; export; export = next) {
			next = export->next;
			if (!nc_grants_allowed(record, export->to))
				nc_export_revoke(export, NC_REVOCATION_REVOKED);
		}
		nc_grants_tidy_locked(grants, record);
	}
	pthread_mutex_unlock(&grants->lock);
	return error;
}

void nc_grants_drop(struct nc_grants *grants, size_t id)
{
	struct nc_grant_record *record;

	/* The unit is unlinked: who enters a record that is not seen here sees that afterwards. */
	if (!may_have_record(grants, id))
		return;
	pthread_mutex_lock(&grants->lock);
	record = nc_grants_find_locked(grants, id);
	if (record)
		drop_locked(grants, record);
	pthread_mutex_unlock(&grants->lock);
}

void nc_grants_drop_member(struct nc_grants *grants, unsigned number)
{
	struct nc_hash_entry *entry, *next;

	if (atomic_load_explicit(&grants->count, memory_order_relaxed) == 0)
		return;
	pthread_mutex_lock(&grants->lock);
	for (entry = nc_hash_table_next(&grants->records, NULL); entry; entry = next) {
		next = nc_hash_table_next(&grants->records, entry);
		if (nc_id_member(entry->key) == number)
			drop_locked(grants, (struct nc_grant_record *)entry);
	}
	pthread_mutex_unlock(&grants->lock);
}

static_assert(sizeof(struct NC_grant_info) == 3 * sizeof(uint32_t),
	      "what lies between the fields would go to other processes");

static unsigned imports_by(const struct nc_grant_record *record, const struct nc_grantee *to)
{
	unsigned imports = 0;

	for (const struct nc_export *export = record->exports; export; export = export->next)
		imports += applies(to, &export->to->who);
	return imports;
}

static unsigned describe_locked(const struct nc_grant_record *record, uint64_t *cursor,
				struct NC_grant_info *infos, unsigned count)
{
	const struct nc_grant_entry *grant = record->grants;
	unsigned filled = 0;

	while (grant && *cursor && grant->serial >= *cursor)
		grant = grant->next;
	for (; grant && filled < count; grant = grant->next) {
		infos[filled++] = (struct NC_grant_info){.principal = grant->to.principal,
							 .who = grant->to.who,
							 .imports = imports_by(record, &grant->to)};
		*cursor = grant->serial;
	}
	if (!grant)
		*cursor = 0;
	return filled;
}

unsigned nc_grants_describe(struct nc_grants *grants, size_t id, uint64_t *cursor,
			    struct NC_grant_info *infos, unsigned count, unsigned *total)
{
	struct nc_grant_record *record;
	unsigned filled = 0;

	pthread_mutex_lock(&grants->lock);
	record = nc_grants_find_locked(grants, id);
	*total = 0;
	if (record) {
		purge_locked(grants, record);
		*total = record->grant_count;
		filled = describe_locked(record, cursor, infos, count);
		nc_grants_tidy_locked(grants, record);
	} else {
		*cursor = 0;
	}
	pthread_mutex_unlock(&grants->lock);
	return filled;
}

unsigned nc_grants_list(struct nc_grants *grants, const struct nc_subject *subject, size_t cursor,
			size_t *ids, unsigned count)
{
	struct nc_hash_entry *entry = NULL;
	unsigned filled = 0;

	pthread_mutex_lock(&grants->lock);
	while ((entry = nc_hash_table_next(&grants->records, entry))) {
		unsigned at = filled;

		if (entry->key <= cursor ||
		    !nc_grants_allowed((struct nc_grant_record *)entry, subject))
			continue;
		while (at && ids[at - 1] > entry->key)
			at--;
		if (at == count)
			continue;
		if (filled < count)
			filled++;
		memmove(ids + at + 1, ids + at, (filled - 1 - at) * sizeof(*ids));
		ids[at] = entry->key;
	}
	pthread_mutex_unlock(&grants->lock);
	return filled;
}
