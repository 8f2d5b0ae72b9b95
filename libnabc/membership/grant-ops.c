/* SPDX-License-Identifier: MIT */
/*
 * grant-ops.c - grants: recorded in the owner; in a member, by calls to the owner;
 * see grant-ops.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <nabc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/fragment.h"
#include "base/id.h"
#include "base/versioned.h"
#include "cache/grant.h"
#include "cache/index.h"
#include "cache/inspect.h"
#include "membership/grant-ops.h"
#include "os/descriptor.h"
#include "os/identity.h"
#include "os/segment.h"
#include "store/pool.h"
#include "store/store.h"
#include "store/unit.h"
#include "wire/rpc-client.h"
#include "wire/wire.h"

static int pinned(int pidfd, struct nc_grantee *grantee)
{
	grantee->pidfd = pidfd;
	return pidfd < 0 ? pidfd : 0;
}

int nc_grant_ops_grantee(enum NC_principal principal, unsigned who, bool pin,
			 struct nc_grantee *grantee)
{
	int pid;

	*grantee = (struct nc_grantee){.principal = principal, .who = who, .pidfd = -1};
	switch (principal) {
	case NC_USER:
	case NC_GROUP:
		return who == (unsigned)-1 ? -EINVAL : 0;
	case NC_PROCESS:
		return pin ? pinned(nc_identity_open((pid_t)who), grantee) : 0;
	case NC_PROCESS_FD:
		pid = nc_identity_pid((int)who);
		if (pid < 0)
			return pid;
		grantee->principal = NC_PROCESS;
		grantee->who = (unsigned)pid;
		if (!pin)
			return 0;
		return pinned(nc_descriptor_copy((int)who), grantee);
	case NC_PEER:
		break;
	}
	return -EINVAL;
}

int nc_grant_ops_identify(enum NC_principal principal, unsigned who, struct nc_identity *identity)
{
	struct nc_grantee process;
	int error;

	if (principal == NC_PEER)
		return nc_identity_of_listener((int)who, identity);
	if (principal != NC_PROCESS && principal != NC_PROCESS_FD)
		return -EINVAL;
	error = nc_grant_ops_grantee(principal, who, true, &process);
	if (error)
		return error;
	error = nc_identity_of_process((pid_t)process.who, process.pidfd, identity);
	close(process.pidfd);
	return error;
}

/* Copies only the unit's bytes: the gaps between them may belong to other units. */
static int copy_bytes(char *to, const struct nc_unit *unit)
{
	const struct nc_layout *layout = &unit->layout;
	size_t done = 0;

	if (!nc_unit_present(unit))
		return nc_unit_read(unit, 0, to, layout->size);
	while (done < layout->size) {
		size_t run, at = nc_layout_at(layout, done, &run);

		memcpy(to + at, nc_unit_base(unit) + at, run);
		done += run;
	}
	return 0;
}

ssize_t nc_grant_ops_read(const struct nc_unit *unit, void *data, size_t length, size_t offset)
{
	size_t size = unit->layout.size;
	int error;

	if (offset > size)
		return -ERANGE;
	if (length > size - offset)
		length = size - offset;
	error = nc_unit_read(unit, offset, data, length);
	return error ? error : (ssize_t)length;
}

/* pin: locks the copy; may be NULL. */
static int frozen_copy(const struct nc_unit *unit, struct nc_pin *pin, struct nc_segment *copy)
{
	int error = nc_segment_create(copy, unit->layout.extent, false, false);

	if (error)
		return error;
	error = copy_bytes(copy->base, unit);
	if (!error)
		error = nc_segment_freeze(copy);
	if (error)
		nc_segment_close(copy);
	else
		nc_segment_pin(copy, pin, true);
	return error;
}

/* --- the owner's end -------------------------------------------------------- */

/* Ensures that a record exists for a held unit. */
static int record(struct nc_index *index, const struct nc_view *view)
{
	const struct nc_layout *layout = &view->unit->layout;
	bool sealed = view->unit->store->kind == NC_KIND_SEALED, made;
	struct nc_segment copy;
	int error = 0;

	if (nc_grants_known(&index->grants, view->id, NULL, &made))
		return 0;
	if (!sealed)
		error = frozen_copy(view->unit, index->own.pin, &copy);
	if (error)
		return error;
	/* Mark it first: a thread that unlinks the unit from now on drops the record. */
	if (!view->remote)
		atomic_store(&view->unit->granted, true);
	error = nc_grants_enter(&index->grants, view->id, NULL, sealed ? NULL : &copy, layout->size,
				layout->fraglen);
	if (error && !sealed)
		nc_segment_close(&copy);
	return error == -EEXIST ? 0 : error;
}

/* The unit may have been destroyed during recording, before there was a record to drop. */
static int still_there(struct nc_index *index, const struct nc_view *view)
{
	/*
	 * Sequentially consistent, like `granted` and the mark of the record that were set before,
	 * and like nc_unit_unlink(): this sees the unit unlinked, or that thread sees the record.
	 */
	if (view->remote || nc_word_state(atomic_load(&view->unit->word)) == NC_UNIT_LIVE)
		return 0;
	nc_grants_drop(&index->grants, view->id);
	return -ENOENT;
}

static int record_and_give(struct nc_index *index, const struct nc_view *view,
			   const struct nc_grantee *grantee)
{
	int error = record(index, view);

	if (!error)
		error = nc_grants_add(&index->grants, view->id, grantee);
	return error;
}

static int owner_grant(struct nc_index *index, size_t id, struct nc_grantee *grantee)
{
	struct nc_view view;
	int error = nc_index_hold(index, id, false, &view);

	if (!error) {
		/* The owner itself needs no grant. */
		if (grantee->principal != NC_PROCESS || (pid_t)grantee->who != getpid()) {
			error = record_and_give(index, &view, grantee);
			if (!error) {
				grantee->pidfd = -1;
				error = still_there(index, &view);
			}
		}
		(void)nc_index_release(index, id);
	}
	if (grantee->pidfd >= 0)
		close(grantee->pidfd);
	return error;
}

int nc_grant_ops_access(struct nc_index *index, size_t id, const struct nc_identity *who)
{
	struct nc_view view;
	bool may;
	int error;

	if (!index->owner)
		return -EPERM;
	error = nc_index_hold(index, id, false, &view);
	if (error)
		return error;
	may = nc_grants_admits(&index->grants, id, who, nc_identity_started(who));
	(void)nc_index_release(index, id);
	return may ? 0 : -EACCES;
}

int nc_grant_ops_export(struct nc_index *index, size_t id, struct nc_subject *to,
			struct nc_export_info *info)
{
	struct nc_view view;
	bool made, known = nc_grants_known(&index->grants, id, to, &made);
	int error;

	/* A process without a grant must not learn which units exist. */
	if (!known && !to->operates)
		return -EACCES;
	error = nc_index_hold(index, id, false, &view);
	/* A member's unit may have ended without a notification. */
	if (error == -ENOENT)
		nc_grants_drop(&index->grants, id);
	if (error)
		return to->operates ? error : -EACCES;
	error = known ? 0 : record(index, &view);
	if (!error)
		error = nc_grants_export(&index->grants, id, to,
					 view.unit->store->kind == NC_KIND_SEALED
						 ? view.unit->store->segment.fd
						 : -1,
					 info);
	if (!error && still_there(index, &view)) {
		close(info->fd);
		error = -ENOENT;
	}
	(void)nc_index_release(index, id);
	return error;
}

/* --- a member's end ----------------------------------------------------------- */

static int call_about(struct nc_index *index, struct nc_wire_call *call,
		      const struct nc_grantee *grantee, const struct nc_segment *copy)
{
	struct nc_rpc_client_load load = {0};
	struct nc_wire_reply reply;
	int fds[2];

	call->principal = (uint32_t)grantee->principal;
	call->who = grantee->who;
	if (grantee->pidfd >= 0)
		fds[load.fd_count++] = grantee->pidfd;
	if (copy)
		fds[load.fd_count++] = copy->fd;
	load.fds = fds;
	return nc_rpc_client_call(&index->rpc, call, &load, &reply);
}

static int grant_own(struct nc_index *index, struct nc_wire_call *call,
		     const struct nc_grantee *grantee, const struct nc_view *view)
{
	struct nc_segment copy;
	int error = frozen_copy(view->unit, NULL, &copy);

	if (error)
		return error;
	atomic_store(&view->unit->granted, true);
	call->size = view->unit->layout.size;
	call->fraglen = view->unit->layout.fraglen;
	error = call_about(index, call, grantee, &copy);
	nc_segment_close(&copy);
	/*
	 * Another thread may have destroyed it, and notified the owner before there was a grant
	 * to end.
	 */
	if (!error && nc_word_state(atomic_load(&view->unit->word)) != NC_UNIT_LIVE) {
		(void)nc_index_call_to_destroy(index, view->id);
		error = -ENOENT;
	}
	return error;
}

static int member_grant(struct nc_index *index, size_t id, const struct nc_grantee *grantee)
{
	struct nc_wire_call call = {.op = NC_WIRE_GRANT, .id = id};
	struct nc_view view;
	int error;

	if (nc_id_member(id) != index->own.number) {
		error = call_about(index, &call, grantee, NULL);
	} else {
		error = nc_index_hold(index, id, false, &view);
		if (!error) {
			/* The owner can read it without a grant. */
			if (grantee->principal != NC_PROCESS ||
			    (pid_t)grantee->who != index->rpc.owner)
				error = grant_own(index, &call, grantee, &view);
			(void)nc_index_release(index, id);
		}
	}
	if (grantee->pidfd >= 0)
		close(grantee->pidfd);
	return error;
}

/* --- both ------------------------------------------------------------------------ */

int nc_grant_ops_grant(struct nc_index *index, size_t id, struct nc_grantee *grantee)
{
	return index->owner ? owner_grant(index, id, grantee) : member_grant(index, id, grantee);
}

int nc_grant_ops_revoke(struct nc_index *index, size_t id, const struct nc_grantee *grantee)
{
	struct nc_wire_call call = {.op = NC_WIRE_REVOKE, .id = id};

	return index->owner ? nc_grants_revoke(&index->grants, id, grantee)
			    : call_about(index, &call, grantee, NULL);
}

/* --- to whom a unit is granted --------------------------------------------------- */

#define GRANTS_STEP 256u

/* Some grants, as a member receives them or as the owner finds them itself. */
struct page {
	struct NC_grant_info grants[GRANTS_STEP];
	uint64_t cursor; /* where to continue; 0: at the beginning, or at the end */
	unsigned total;
};

/* Their number, at most count, or -errno. */
static int look_up_grants(struct nc_index *index, size_t id, struct page *page, unsigned count)
{
	struct nc_view view;
	unsigned found;
	int error = nc_index_hold(index, id, false, &view);

	/* A unit of a member may end without a notification. */
	if (error == -ENOENT)
		nc_grants_drop(&index->grants, id);
	if (error)
		return error;
	found = nc_grants_describe(&index->grants, id, &page->cursor, page->grants, count,
				   &page->total);
	(void)nc_index_release(index, id);
	return (int)found;
}

int nc_grant_ops_reply(struct nc_index *index, const struct nc_wire_call *call,
		       struct nc_wire_reply *reply, void *room)
{
	struct page page = {.cursor = call->size};
	size_t stride = call->fraglen;
	unsigned most = GRANTS_STEP;
	int found;

	if (!nc_wire_is_size(stride) || call->length)
		return -EPROTO;
	if (most > NC_WIRE_BEHIND_MAX / stride)
		most = (unsigned)(NC_WIRE_BEHIND_MAX / stride);
	if (call->who < most)
		most = call->who;
	found = look_up_grants(index, call->id, &page, most);
	if (found < 0)
		return found;
	nc_versioned_write_all(room, stride, page.grants, sizeof(page.grants[0]), (size_t)found);
	reply->size = page.cursor;
	reply->fraglen = page.total;
	reply->length = (uint32_t)((size_t)found * stride);
	return 0;
}

/* The same as look_up_grants(), from the owner. */
static int call_for_grants(struct nc_index *index, size_t id, struct page *page, unsigned count)
{
	struct nc_wire_call call = {.op = NC_WIRE_GRANTS,
				    .id = id,
				    .size = page->cursor,
				    .fraglen = sizeof(page->grants[0]),
				    .who = count};
	struct nc_rpc_client_load load = {.room = page->grants,
					  .room_size = count * sizeof(page->grants[0])};
	struct nc_wire_reply reply;
	int error = nc_rpc_client_call(&index->rpc, &call, &load, &reply);

	if (error)
		return error;
	if (reply.length % sizeof(page->grants[0]) || reply.fraglen > INT_MAX)
		return -EPROTO;
	page->cursor = reply.size;
	page->total = (unsigned)reply.fraglen;
	return (int)(reply.length / sizeof(page->grants[0]));
}

int nc_grant_ops_grants(struct nc_index *index, size_t id, void *grants, size_t stride,
			unsigned count)
{
	struct page page = {.cursor = 0};
	unsigned filled = 0;
	int found;

	if (count > INT_MAX)
		count = INT_MAX;
	do {
		unsigned more = count - filled < GRANTS_STEP ? count - filled : GRANTS_STEP;

		found = index->owner ? look_up_grants(index, id, &page, more)
				     : call_for_grants(index, id, &page, more);
		if (found < 0)
			return found;
		if (found)
			nc_versioned_write_all((char *)grants + filled * stride, stride,
					       page.grants, sizeof(page.grants[0]), (size_t)found);
		filled += (unsigned)found;
	} while (found && page.cursor && filled < count);
	/* Fewer than there were a moment ago: nothing that is counted is missing. */
	return (int)(filled < count || filled > page.total ? filled : page.total);
}

/* --- lists ------------------------------------------------------------------------- */

#define LIST_STEP 64u

unsigned nc_grant_ops_list(struct nc_index *index, const struct nc_subject *subject, size_t *cursor,
			   struct NC_stat *units, unsigned count)
{
	size_t ids[LIST_STEP];
	unsigned found, filled = 0;

	/* An empty list means the end, so continue if all units found are gone. */
	do {
		found = nc_grants_list(&index->grants, subject, *cursor, ids,
				       count < LIST_STEP ? count : LIST_STEP);
		for (unsigned i = 0; i < found; i++)
			if (nc_inspect_unit(index, ids[i], &units[filled]) == 0)
				filled++;
		*cursor = found ? ids[found - 1] : 0;
	} while (found && !filled);
	return filled;
}

static int list_remote(struct nc_index *index, size_t *cursor, struct NC_stat *units,
		       unsigned count)
{
	struct nc_wire_call call = {
		.op = NC_WIRE_LIST, .size = *cursor, .fraglen = sizeof(*units), .who = count};
	struct nc_rpc_client_load load = {.room = units, .room_size = count * sizeof(*units)};
	struct nc_wire_reply reply;
	int error = nc_rpc_client_call(&index->rpc, &call, &load, &reply);

	if (error)
		return error;
	/* The owner must use the same size of structure. */
	if (reply.length % sizeof(*units))
		return -EPROTO;
	*cursor = reply.size;
	return (int)(reply.length / sizeof(*units));
}

/*
 * Lists the owner's units first.  Its cursors are ids; an operator's list never has
 * this process's number in them.
 */
int nc_grant_ops_list_all(struct nc_index *index, size_t *cursor, struct NC_stat *units,
			  unsigned count)
{
	bool local = index->owner ||
		     (nc_id_generation(*cursor) == 0 && nc_id_member(*cursor) == index->own.number);
	int filled;

	if (local || index->rpc.socket < 0)
		return (int)nc_inspect_list(index, cursor, units, count);
	filled = list_remote(index, cursor, units, count);
	if (filled >= 0 && *cursor == 0 && index->own.shared)
		*cursor = nc_id(index->own.number, 0, 0);
	return filled;
}
