/* SPDX-License-Identifier: MIT */
/*
 * grant.c - the owner's book of grants and exports; see grant.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/fragment.h"
#include "base/id.h"
#include "cache/grant.h"

struct leave {
	struct leave *next;
	struct nc_grantee to;
	bool counted; /* its pidfd, as the maker's */
};

/* Who made a unit, as it was when it attached; zeroes: the owner. */
struct origin {
	pid_t pid, session;
	uint64_t since;
};

struct record {
	struct nc_hash_entry entry; /* must be first; key: the id */
	struct nc_subject *maker;   /* NULL: the owner, or gone */
	struct origin origin;	    /* of the maker, gone or not */
	struct nc_segment copy;	    /* fd -1: the unit is sealed itself */
	size_t size, fraglen;
	size_t charged;	   /* bytes, to the maker or, of copies, to the owner */
	bool counted;	   /* its descriptor, as a member's */
	bool owners_copy;  /* the same, among the copies of the owner */
	uint64_t orphaned; /* the how manieth; 0: it is none */
	struct leave *leaves;
	unsigned leave_count;
	struct nc_export *exports;
};

/* A slot of a subject's revocation map; record NULL once the unit stands no more. */
struct nc_export {
	struct record *record;
	struct nc_subject *to;
	uint32_t slot;
	struct nc_export *next, **link; /* of the record */
};

void nc_grants_init(struct nc_grants *grants, size_t quota)
{
	*grants = (struct nc_grants){.quota = quota, .copies_max = UINT_MAX};
	pthread_mutex_init(&grants->lock, NULL);
	nc_hash_table_init(&grants->records);
}

static struct record *find_locked(const struct nc_grants *grants, size_t id)
{
	return (struct record *)nc_hash_table_find(&grants->records, id);
}

/* Of the owner's descriptors, those that members may have. */
static rlim_t descriptors_most(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) < 0 ? 0 : limit.rlim_cur / 2;
}

static int one_more(const struct nc_grants *grants, const struct nc_subject *maker)
{
	rlim_t most = descriptors_most();

	if (maker->descriptors >= most / 4)
		return -EDQUOT;
	return grants->descriptors >= most ? -EMFILE : 0;
}

static void count_one(struct nc_grants *grants, struct nc_subject *maker, bool *counted)
{
	*counted = true;
	grants->descriptors++;
	maker->descriptors++;
}

/* maker: NULL if it has gone. */
static void discount(struct nc_grants *grants, struct nc_subject *maker, bool counted)
{
	if (!counted)
		return;
	grants->descriptors--;
	if (maker)
		maker->descriptors--;
}

static void revoke_export(struct nc_export *export, uint64_t reason)
{
	nc_revocation_map_revoke(&export->to->revocations, export->slot, reason);
	*export->link = export->next;
	if (export->next)
		export->next->link = export->link;
	export->record = NULL;
}

static void forget_leave(struct nc_grants *grants, struct record *record, struct leave **link)
{
	struct leave *leave = *link;

	*link = leave->next;
	record->leave_count--;
	discount(grants, record->maker, leave->counted);
	if (leave->to.pidfd >= 0)
		close(leave->to.pidfd);
	free(leave);
}

static void drop_locked(struct nc_grants *grants, struct record *record)
{
	while (record->exports)
		revoke_export(record->exports, NC_REVOCATION_DESTROYED);
	while (record->leaves)
		forget_leave(grants, record, &record->leaves);
	discount(grants, record->maker, record->counted);
	if (record->copy.fd >= 0)
		nc_segment_close(&record->copy);
	if (record->maker)
		record->maker->sealed -= record->charged;
	else
		grants->copied -= record->charged;
	grants->copies -= record->owners_copy;
	nc_hash_table_leave(&grants->records, &record->entry);
	atomic_fetch_sub_explicit(&grants->count, 1, memory_order_relaxed);
	free(record);
}

/* A copy that nobody has any use for goes; its unit stands. */
static void tidy_locked(struct nc_grants *grants, struct record *record)
{
	if (!record->leaves && !record->exports && record->copy.fd >= 0)
		drop_locked(grants, record);
}

void nc_grants_fini(struct nc_grants *grants)
{
	struct nc_hash_entry *entry;

	while ((entry = nc_hash_table_next(&grants->records, NULL)))
		drop_locked(grants, (struct record *)entry);
	nc_hash_table_fini(&grants->records);
	pthread_mutex_destroy(&grants->lock);
}

void nc_grants_join(struct nc_grants *grants, struct nc_subject *subject)
{
	pthread_mutex_lock(&grants->lock);
	subject->next = grants->subjects;
	grants->subjects = subject;
	pthread_mutex_unlock(&grants->lock);
}

static void return_all_locked(struct nc_grants *grants, struct nc_subject *subject)
{
	for (uint32_t slot = 0; subject->exports && slot < NC_REVOCATION_MAP_SLOTS; slot++) {
		struct nc_export *export = subject->exports[slot];
		struct record *record = export ? export->record : NULL;

		if (record) {
			revoke_export(export, NC_REVOCATION_DESTROYED);
			tidy_locked(grants, record);
		}
		free(export);
	}
	free(subject->exports);
	subject->exports = NULL;
	nc_revocation_map_close(&subject->revocations);
}

void nc_grants_lose_map(struct nc_grants *grants, struct nc_subject *subject)
{
	pthread_mutex_lock(&grants->lock);
	return_all_locked(grants, subject);
	pthread_mutex_unlock(&grants->lock);
}

/* One unit after another, so that orphan() may call back. */
static bool next_orphan(struct nc_grants *grants, struct nc_subject *maker, size_t *id)
{
	struct nc_hash_entry *entry = NULL;
	bool found = false;

	pthread_mutex_lock(&grants->lock);
	/* What it has left, not what it had: others may be dropping that meanwhile. */
	while (!found && maker->sealed && (entry = nc_hash_table_next(&grants->records, entry))) {
		struct record *record = (struct record *)entry;

		if (record->maker != maker)
			continue;
		/* It is the cache's own memory; copies have gone with their segment. */
		maker->sealed -= record->charged;
		record->maker = NULL;
		record->charged = 0;
		record->orphaned = ++grants->orphaned;
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
	return_all_locked(grants, subject);
	pthread_mutex_unlock(&grants->lock);
	/* Copies of units in its own segment go with that. */
	if (subject->number)
		nc_grants_drop_member(grants, subject->number);
	while (next_orphan(grants, subject, &id))
		orphan(context, id);
	nc_identity_close(&subject->who);
}

static int room_locked(const struct nc_grants *grants, const struct nc_subject *maker, size_t size)
{
	if (size > maker->quota || maker->sealed > maker->quota - size)
		return -EDQUOT;
	return one_more(grants, maker);
}

int nc_grants_room(struct nc_grants *grants, const struct nc_subject *maker, size_t size)
{
	int error;

	pthread_mutex_lock(&grants->lock);
	error = room_locked(grants, maker, size);
	pthread_mutex_unlock(&grants->lock);
	return error;
}

bool nc_grants_orphan(struct nc_grants *grants, size_t *id)
{
	struct nc_hash_entry *entry = NULL;
	uint64_t first = 0;

	pthread_mutex_lock(&grants->lock);
	while ((entry = nc_hash_table_next(&grants->records, entry))) {
		const struct record *record = (const struct record *)entry;

		if (record->orphaned && (!first || record->orphaned < first)) {
			first = record->orphaned;
			*id = entry->key;
		}
	}
	pthread_mutex_unlock(&grants->lock);
	return first;
}

static struct origin origin_of(const struct nc_subject *maker)
{
	return (struct origin){
		.pid = maker->who.pid, .session = maker->who.session, .since = maker->who.since};
}

int nc_grants_enter(struct nc_grants *grants, size_t id, struct nc_subject *maker,
		    const struct nc_segment *copy, size_t size, size_t fraglen)
{
	size_t bytes = copy ? copy->size : (size + NC_PAGE - 1) / NC_PAGE * NC_PAGE;
	struct record *record = calloc(1, sizeof(*record));
	int error = 0;

	if (!record)
		return -ENOMEM;
	pthread_mutex_lock(&grants->lock);
	if (find_locked(grants, id))
		error = -EEXIST;
	else if (maker)
		error = room_locked(grants, maker, bytes);
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
		count_one(grants, maker, &record->counted);
	} else {
		grants->copied += record->charged;
		record->owners_copy = copy != NULL;
		grants->copies += record->owners_copy;
	}
	nc_hash_table_enter(&grants->records, &record->entry, id);
	atomic_fetch_add_explicit(&grants->count, 1, memory_order_relaxed);
	pthread_mutex_unlock(&grants->lock);
	return 0;
}

static struct origin find_origin_locked(const struct nc_grants *grants, size_t id,
					const struct record *record)
{
	struct origin origin = record ? record->origin : (struct origin){0};
	unsigned number = nc_id_member(id);

	/* In a segment of its own: it is there, or its units are not. */
	for (const struct nc_subject *at = grants->subjects; at && number; at = at->next)
		if (at->number == number)
			origin = origin_of(at);
	return origin;
}

pid_t nc_grants_session(struct nc_grants *grants, size_t id, uint64_t *since)
{
	struct origin origin;

	pthread_mutex_lock(&grants->lock);
	origin = find_origin_locked(grants, id, find_locked(grants, id));
	pthread_mutex_unlock(&grants->lock);
	*since = origin.session ? origin.since : 0;
	return origin.session;
}

bool nc_grants_known(struct nc_grants *grants, size_t id, const struct nc_subject *subject,
		     bool *made)
{
	struct record *record;

	*made = false;
	if (atomic_load_explicit(&grants->count, memory_order_relaxed) == 0)
		return false;
	pthread_mutex_lock(&grants->lock);
	record = find_locked(grants, id);
	if (record)
		*made = record->maker == subject;
	pthread_mutex_unlock(&grants->lock);
	return record;
}

static bool same(const struct nc_grantee *a, const struct nc_grantee *b)
{
	return a->principal == b->principal && a->who == b->who;
}

/* Those that have ended can never come back. */
static void purge_locked(struct nc_grants *grants, struct record *record)
{
	struct leave **link = &record->leaves;

	while (*link) {
		if (nc_identity_ended((*link)->to.pidfd))
			forget_leave(grants, record, link);
		else
			link = &(*link)->next;
	}
}

static bool has_leave(const struct record *record, const struct nc_grantee *who)
{
	const struct leave *leave = record->leaves;

	while (leave && !same(&leave->to, who))
		leave = leave->next;
	return leave;
}

static int give_locked(struct nc_grants *grants, struct record *record, const struct nc_grantee *to)
{
	bool costs = to->pidfd >= 0 && record->maker;
	struct leave *leave;
	int error;

	purge_locked(grants, record);
	/* Of those that run, a pid names one: it need not be pinned twice. */
	if (has_leave(record, to)) {
		if (to->pidfd >= 0)
			close(to->pidfd);
		return 0;
	}
	if (record->leave_count >= NC_LEAVES_MAX)
		return -ENOSPC;
	error = costs ? one_more(grants, record->maker) : 0;
	if (error)
		return error;
	leave = malloc(sizeof(*leave));
	if (!leave)
		return -ENOMEM;
	*leave = (struct leave){.next = record->leaves, .to = *to};
	if (costs)
		count_one(grants, record->maker, &leave->counted);
	record->leaves = leave;
	record->leave_count++;
	return 0;
}

int nc_grants_give(struct nc_grants *grants, size_t id, const struct nc_grantee *to)
{
	struct record *record;
	int error = -ENOENT;

	pthread_mutex_lock(&grants->lock);
	record = find_locked(grants, id);
	if (record) {
		error = give_locked(grants, record, to);
		/* A copy that was made for this leave alone. */
		if (error)
			tidy_locked(grants, record);
	}
	pthread_mutex_unlock(&grants->lock);
	return error;
}

static bool is_granted(const struct record *record, const struct nc_identity *who)
{
	for (const struct leave *leave = record->leaves; leave; leave = leave->next) {
		const struct nc_grantee *to = &leave->to;

		if ((to->principal == NC_PROCESS &&
		     nc_identity_is(who, (pid_t)to->who, to->pidfd)) ||
		    (to->principal == NC_USER && who->uid == to->who) ||
		    (to->principal == NC_GROUP && nc_identity_in_group(who, to->who)))
			return true;
	}
	return false;
}

static bool allowed(const struct record *record, const struct nc_subject *subject)
{
	return subject->operates || record->maker == subject || is_granted(record, &subject->who);
}

bool nc_grants_admits(struct nc_grants *grants, size_t id, const struct nc_identity *who,
		      uint64_t started)
{
	const struct record *record;
	struct origin origin;
	bool may;

	pthread_mutex_lock(&grants->lock);
	record = find_locked(grants, id);
	origin = find_origin_locked(grants, id, record);
	may = origin.pid && started <= origin.since &&
	      (origin.pid == who->pid || origin.session == who->pid);
	may = may || (record && is_granted(record, who));
	pthread_mutex_unlock(&grants->lock);
	return may;
}

int nc_grants_take(struct nc_grants *grants, size_t id, const struct nc_grantee *from)
{
	struct record *record;
	int error = -ENOENT;

	pthread_mutex_lock(&grants->lock);
	record = find_locked(grants, id);
	if (record) {
		struct leave **link = &record->leaves;
		struct nc_export *export, *next;

		while (*link) {
			if (same(&(*link)->to, from)) {
				forget_leave(grants, record, link);
				error = 0;
			} else {
				link = &(*link)->next;
			}
		}
		for (export = record->exports; export; export = next) {
			next = export->next;
			if (!allowed(record, export->to))
				revoke_export(export, NC_REVOCATION_REVOKED);
		}
		tidy_locked(grants, record);
	}
	pthread_mutex_unlock(&grants->lock);
	return error;
}

static struct nc_export *export_to(struct record *record, const struct nc_subject *to)
{
	struct nc_export *export = record->exports;

	while (export && export->to != to)
		export = export->next;
	return export;
}

static int open_map(struct nc_subject *subject)
{
	if (subject->revocations.segment.base)
		return 0;
	if (!subject->exports)
		subject->exports = calloc(NC_REVOCATION_MAP_SLOTS, sizeof(struct nc_export *));
	return subject->exports ? nc_revocation_map_open(&subject->revocations) : -ENOMEM;
}

static int post_locked(struct record *record, struct nc_subject *to, uint32_t *slot)
{
	struct nc_export *export = export_to(record, to);
	int posted;

	if (export) {
		*slot = export->slot;
		return 0;
	}
	posted = open_map(to);
	if (posted < 0)
		return posted;
	export = calloc(1, sizeof(*export));
	if (!export)
		return -ENOMEM;
	posted = nc_revocation_map_add(&to->revocations, record->entry.key);
	if (posted < 0) {
		free(export);
		return posted;
	}
	*export = (struct nc_export){.record = record,
				     .to = to,
				     .slot = (uint32_t)posted,
				     .next = record->exports,
				     .link = &record->exports};
	if (export->next)
		export->next->link = &export->next;
	record->exports = export;
	to->exports[posted] = export;
	*slot = (uint32_t)posted;
	return 0;
}

int nc_grants_export(struct nc_grants *grants, size_t id, struct nc_subject *to, int own_fd,
		     struct nc_export_info *info)
{
	struct record *record;
	int error = -EACCES, fd;

	pthread_mutex_lock(&grants->lock);
	record = find_locked(grants, id);
	if (record && allowed(record, to)) {
		fd = record->copy.fd >= 0 ? record->copy.fd : own_fd;
		fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		error = fd < 0 ? -errno : post_locked(record, to, &info->slot);
		if (error && fd >= 0)
			close(fd);
		if (!error) {
			info->fd = fd;
			info->size = record->size;
			info->fraglen = record->fraglen;
		}
	}
	pthread_mutex_unlock(&grants->lock);
	return error;
}

int nc_grants_return(struct nc_grants *grants, struct nc_subject *from, uint32_t slot)
{
	struct nc_export *export;
	int error = -EINVAL;

	pthread_mutex_lock(&grants->lock);
	export = from->exports && slot < NC_REVOCATION_MAP_SLOTS ? from->exports[slot] : NULL;
	if (export) {
		struct record *record = export->record;

		if (record) {
			revoke_export(export, NC_REVOCATION_DESTROYED);
			tidy_locked(grants, record);
		}
		from->exports[slot] = NULL;
		nc_revocation_map_free(&from->revocations, slot);
		free(export);
		error = 0;
	}
	pthread_mutex_unlock(&grants->lock);
	return error;
}

void nc_grants_drop(struct nc_grants *grants, size_t id)
{
	struct record *record;

	if (atomic_load_explicit(&grants->count, memory_order_relaxed) == 0)
		return;
	pthread_mutex_lock(&grants->lock);
	record = find_locked(grants, id);
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
			drop_locked(grants, (struct record *)entry);
	}
	pthread_mutex_unlock(&grants->lock);
}

unsigned nc_grants_list(struct nc_grants *grants, const struct nc_subject *subject, size_t cursor,
			size_t *ids, unsigned count)
{
	struct nc_hash_entry *entry = NULL;
	unsigned filled = 0;

	pthread_mutex_lock(&grants->lock);
	while ((entry = nc_hash_table_next(&grants->records, entry))) {
		unsigned at = filled;

		if (entry->key <= cursor || !allowed((struct record *)entry, subject))
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
