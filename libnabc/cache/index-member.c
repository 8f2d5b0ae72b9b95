/* SPDX-License-Identifier: MIT */
/*
 * index-member.c - admits and detaches members; see index.h.
 *
 * Member numbers are assigned round robin, so that a number is reused as late as
 * possible.
 */
#include <errno.h>

#include "base/id.h"
#include "cache/index.h"

#define BYTES_A_SLOT ((size_t)16 << 10)
#define SLOTS_MIN 64u
#define SLOTS_MAX 16384u

uint32_t nc_index_member_slots(size_t size)
{
	size_t slots = size / BYTES_A_SLOT;

	if (slots < SLOTS_MIN)
		return SLOTS_MIN;
	return slots < SLOTS_MAX ? (uint32_t)slots : SLOTS_MAX;
}

static struct nc_remote_member *vacant_locked(struct nc_index *index)
{
	struct nc_remote_member *remote;

	if (index->numbers < NC_ID_MEMBERS_MAX) {
		remote = nc_remote_member_create(index->numbers);
		if (remote)
			atomic_store_explicit(&index->remotes[index->numbers++], remote,
					      memory_order_release);
		return remote;
	}
	for (unsigned number = 1; number < index->numbers; number++) {
		remote = atomic_load_explicit(&index->remotes[number], memory_order_relaxed);
		if (nc_remote_member_vacant(remote))
			return remote;
	}
	return NULL;
}

int nc_index_admit(struct nc_index *index, size_t size, struct nc_remote_member **remote,
		   size_t *first)
{
	int error = -EUSERS;

	pthread_mutex_lock(&index->lock);
	*remote = vacant_locked(index);
	if (*remote)
		error = nc_remote_member_admit(*remote, size, nc_index_member_slots(size), first);
	else if (index->numbers < NC_ID_MEMBERS_MAX)
		error = -ENOMEM;
	pthread_mutex_unlock(&index->lock);
	return error;
}

void nc_index_detach(struct nc_index *index, struct nc_remote_member *remote)
{
	pthread_mutex_lock(&index->lock);
	nc_remote_member_detach(remote);
	pthread_mutex_unlock(&index->lock);
}

void nc_index_enrol(struct nc_index *index, int more)
{
	pthread_mutex_lock(&index->lock);
	index->members += (unsigned)more;
	pthread_mutex_unlock(&index->lock);
}
