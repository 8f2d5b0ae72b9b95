/* SPDX-License-Identifier: MIT */
/*
 * grant-export.c - units exported to members: a descriptor, and a slot in the
 * member's revocation map; see grant.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/hash-table.h"
#include "cache/grant-internal.h"
#include "cache/grant.h"
#include "os/descriptor.h"
#include "os/segment.h"
#include "store/revocation-map.h"

void nc_export_revoke(struct nc_export *export, uint64_t reason)
{
	nc_revocation_map_revoke(&export->to->revocations, export->slot, reason);
	*export->link = export->next;
	if (export->next)
		export->next->link = export->link;
	export->record = NULL;
}

void nc_exports_return_all_locked(struct nc_grants *grants, struct nc_subject *subject)
{
	for (uint32_t slot = 0; subject->exports && slot < NC_REVOCATION_MAP_SLOTS; slot++) {
		struct nc_export *export = subject->exports[slot];
		struct nc_grant_record *record = export ? export->record : NULL;

		if (record) {
			nc_export_revoke(export, NC_REVOCATION_DESTROYED);
			nc_grants_tidy_locked(grants, record);
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
	nc_exports_return_all_locked(grants, subject);
	pthread_mutex_unlock(&grants->lock);
}

static struct nc_export *export_to(struct nc_grant_record *record, const struct nc_subject *to)
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

static int post_locked(struct nc_grant_record *record, struct nc_subject *to, uint32_t *slot)
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
	struct nc_grant_record *record;
	int error = -EACCES, fd;

	pthread_mutex_lock(&grants->lock);
	record = nc_grants_find_locked(grants, id);
	if (record && nc_grants_allowed(record, to)) {
		fd = record->copy.fd >= 0 ? record->copy.fd : own_fd;
		fd = nc_descriptor_copy(fd);
		error = fd < 0 ? fd : post_locked(record, to, &info->slot);
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

bool nc_grants_may(struct nc_grants *grants, size_t id, const struct nc_subject *subject,
		   bool *exported)
{
	struct nc_grant_record *record;
	bool may;

	pthread_mutex_lock(&grants->lock);
	record = nc_grants_find_locked(grants, id);
	may = record && nc_grants_allowed(record, subject);
	*exported = may && export_to(record, subject);
	pthread_mutex_unlock(&grants->lock);
	return may;
}

int nc_grants_return(struct nc_grants *grants, struct nc_subject *from, uint32_t slot)
{
	struct nc_export *export;
	int error = -EINVAL;

	pthread_mutex_lock(&grants->lock);
	export = from->exports && slot < NC_REVOCATION_MAP_SLOTS ? from->exports[slot] : NULL;
	if (export) {
		struct nc_grant_record *record = export->record;

		if (record) {
			nc_export_revoke(export, NC_REVOCATION_DESTROYED);
			nc_grants_tidy_locked(grants, record);
		}
		from->exports[slot] = NULL;
		nc_revocation_map_free(&from->revocations, slot);
		free(export);
		error = 0;
	}
	pthread_mutex_unlock(&grants->lock);
	return error;
}
