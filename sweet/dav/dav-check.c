/* SPDX-License-Identifier: MIT */
/*
 * dav-check.c - what all methods of WebDAV check before they change anything: conditions and locks.
 */
#include <errno.h>
#include <glib.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/slice.h"
#include "config/configuration.h"
#include "core/site.h"
#include "core/transaction.h"
#include "dav/dav-call.h"
#include "dav/dav-if.h"
#include "dav/dav-locks.h"
#include "dav/dav-multistatus.h"
#include "dav/dav-place.h"
#include "dav/dav-request.h"
#include "files/docroot.h"
#include "files/file-cache.h"
#include "files/filehead.h"
#include "http/conditional.h"
#include "log/log.h"

void dav_fail(struct dav_call *call, int status, const char *reason)
{
	call->status = status;
	call->reason = reason;
}

void dav_fail_with(struct dav_call *call, int error, const char *what)
{
	int status = dav_status(error);

	if (status >= 500)
		log_error("cannot %s %s: %s", what, call->transaction->path, strerror(-error));
	dav_fail(call, status, status == 403 ? docroot_denied(error) : NULL);
}

void dav_violate(struct dav_call *call, int status, const char *condition, const char *path)
{
	dav_fail(call, status, condition);
	call->text = dav_error_text(condition, path);
}

struct dav_claim dav_claim_of(const struct dav_call *call)
{
	return (struct dav_claim){.user = call->transaction->remote_user,
				  .tokens = call->request.tokens,
				  .count = call->request.token_count};
}

/* Returns 0, also if nothing is there, or -errno. */
static int look(const struct dav_place *place, struct dav_state *state)
{
	int error = dav_place_look(place, &state->folder, &state->version);

	state->exists = !error;
	if (!error && !state->folder)
		filehead_write(&state->head, &state->version,
			       file_cache_etag(place->open->file_cache), "", time(NULL));
	return error == -ENOENT || error == -ENOTDIR ? 0 : error;
}

bool dav_look(struct dav_call *call, const struct dav_place *place, struct dav_state *state)
{
	int error = look(place, state);

	if (error)
		dav_fail_with(call, error, "look up");
	return !error;
}

/* --- conditions ----------------------------------------------------------------------- */

/* RFC 9110, section 13.2.2, for methods that write. */
static bool keeps_conditions(const struct conditions *conditions, const struct dav_state *state)
{
	struct representation file = {.etag = SLICE("")};

	if (!conditions->any)
		return true;
	if (!state->exists)
		return !(conditions->present & 1u << CONDITION_MATCH);
	/* Its own, also if GET sends an earlier one: a file of the future may have changed since. */
	file.modified = state->version.modified.tv_sec;
	if (!state->folder)
		file.etag = filehead_etag(&state->head);
	switch (conditions_evaluate(conditions, true, &file, time(NULL))) {
	case CONDITION_FAILED:
	case CONDITION_NOT_MODIFIED:
		return false;
	default:
		return true;
	}
}

/* Returns the place of a list's tag; its scope is NULL if it is not ours. */
static const struct dav_place *place_of(const struct dav_call *call, struct slice resource)
{
	for (unsigned i = 0; resource.at && i < call->request.condition.list_count; i++)
		if (call->request.condition.lists[i].resource.at == resource.at)
			return &call->tagged[i];
	return &call->at;
}

static bool holds(struct slice resource, const struct dav_if_condition *condition, void *context)
{
	const struct dav_call *call = context;
	const struct dav_place *place = place_of(call, resource);
	struct dav_state state;

	if (!place->scope)
		return false;
	if (!condition->is_etag)
		return dav_locks_has(call->dav->locks, place->key, condition->text,
				     clock_boottime_ns());
	return look(place, &state) == 0 && state.exists && !state.folder &&
	       slice_equals(filehead_etag(&state.head), condition->text);
}

bool dav_check_conditions(struct dav_call *call, const struct dav_state *state)
{
	if (!keeps_conditions(&call->request.conditions, state)) {
		dav_fail(call, 412, NULL);
		return false;
	}
	if (call->request.has_if && !dav_if_evaluate(&call->request.condition, holds, call)) {
		dav_fail(call, 412, "no list of If holds");
		return false;
	}
	return true;
}

/* --- locks ------------------------------------------------------------------------------ */

bool dav_begin_change(struct dav_call *call, const struct dav_place *place, bool deep, bool members)
{
	struct dav_change *changes = &call->changes[call->change_count];
	struct dav_claim claim = dav_claim_of(call);
	unsigned count = 0;
	char *other;

	changes[count++] = (struct dav_change){.path = place->key, .deep = deep};
	if (members)
		changes[count++] = (struct dav_change){.path = place->parent_key};
	if (dav_locks_begin(call->dav->locks, changes, count, &claim, clock_boottime_ns(), &other) <
	    0) {
		dav_violate(call, 423, "lock-token-submitted", other);
		g_free(other);
		return false;
	}
	call->change_count += count;
	return true;
}

void dav_end_changes(struct dav_call *call)
{
	if (call->change_count)
		dav_locks_end(call->dav->locks, call->changes, call->change_count);
	call->change_count = 0;
}
