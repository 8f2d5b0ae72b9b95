/* SPDX-License-Identifier: MIT */
/*
 * dav-lock.c - LOCK and UNLOCK (RFC 4918, sections 9.10 and 9.11).
 */
#include <errno.h>
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/slice.h"
#include "core/transaction.h"
#include "dav/dav-body.h"
#include "dav/dav-call.h"
#include "dav/dav-live.h"
#include "dav/dav-locks.h"
#include "dav/dav-place.h"
#include "dav/dav-request.h"
#include "dav/dav-temp.h"

static uint64_t expires_ns(const struct dav_call *call)
{
	return clock_boottime_ns() + (uint64_t)call->request.timeout_s * 1000000000u;
}

/* The response: the locks of the place, with the token of a new one. */
static void respond(struct dav_call *call, int status, const char *token)
{
	if (token) {
		call->lines = g_string_new(NULL);
		g_string_printf(call->lines, "Lock-Token: <%s>\r\n", token);
	}
	call->text = g_string_new("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n"
				  "<D:prop xmlns:D=\"DAV:\">");
	dav_live_write_locks(call->text, call->dav, call->at.key);
	g_string_append(call->text, "</D:prop>\n");
	call->status = status;
}

/* Without a body. */
static void refresh(struct dav_call *call)
{
	struct dav_claim claim = dav_claim_of(call);
	char token[DAV_TOKEN_SIZE];

	if (!call->request.has_if)
		dav_fail(call, 400, "LOCK without a body and without If");
	else if (dav_locks_refresh(call->dav->locks, call->at.key, &claim, expires_ns(call),
				   clock_boottime_ns(), token) < 0)
		dav_violate(call, 412, "lock-token-matches-request-uri", NULL);
	else
		respond(call, 200, NULL);
}

/* A lock of a name that nothing has makes an empty file (section 7.3). */
static void make_file(struct dav_call *call)
{
	int folder = dav_place_open_parent(&call->at);
	struct dav_temp temp = {.fd = -1};
	int error = folder < 0 ? folder : dav_temp_open(&temp, folder);

	if (!error)
		error = dav_temp_commit(&temp, call->at.name, false);
	dav_temp_close(&temp);
	if (folder >= 0)
		close(folder);
	if (error == -ENOENT || error == -ENOTDIR)
		dav_fail(call, 409, "no folder for it");
	else if (error)
		dav_fail_with(call, error, "create");
}

static void add_lock(struct dav_call *call, const struct dav_body *body, bool exists)
{
	const char *user = call->transaction->remote_user;
	struct dav_lock lock = {.path = call->at.key,
				.href = *call->at.path ? call->at.path : "/",
				.user = user,
				.owner = body->owner,
				.deep = call->request.depth == DAV_DEPTH_INFINITY,
				.shared = body->shared,
				.expires_ns = expires_ns(call)};
	char token[DAV_TOKEN_SIZE], *other;
	int error = dav_locks_add(call->dav->locks, &lock, clock_boottime_ns(), token, &other);

	if (error == -EBUSY)
		dav_violate(call, 423, "no-conflicting-lock", other);
	else if (error)
		dav_fail(call, 507, "too many locks");
	g_free(other);
	if (error)
		return;
	/* The lock is first, so that no other client gets one of the new file. */
	if (!exists)
		make_file(call);
	if (call->status)
		(void)dav_locks_remove(call->dav->locks, call->at.key,
				       (struct slice){token, sizeof(token) - 1}, user,
				       clock_boottime_ns());
	else
		respond(call, exists ? 200 : 201, token);
}

static void lock_it(struct dav_call *call, const struct dav_body *body,
		    const struct dav_state *state)
{
	struct dav_claim claim = dav_claim_of(call);
	struct dav_change parent = {.path = call->at.parent_key};
	char *other = NULL;

	if (body->owner && strlen(body->owner) > DAV_LOCK_OWNER_MAX) {
		dav_fail(call, 507, "an owner of a lock that is too long");
	} else if (!state->exists && (call->at.slash || !*call->at.name)) {
		dav_fail(call, 409, "LOCK of a folder that does not exist");
	} else if (!state->exists && dav_locks_begin(call->dav->locks, &parent, 1, &claim,
						     clock_boottime_ns(), &other) < 0) {
		dav_violate(call, 423, "lock-token-submitted", other);
	} else {
		add_lock(call, body, state->exists);
		dav_locks_end(call->dav->locks, &parent, 1);
	}
	g_free(other);
}

void dav_lock(struct dav_call *call)
{
	struct dav_body body;
	struct dav_state state;
	int status;

	if (!dav_look(call, &call->at, &state) || !dav_check_conditions(call, &state))
		return;
	if (!call->body) {
		refresh(call);
		return;
	}
	status = dav_body_lock(call->body, call->body_length, &body);
	if (status) {
		dav_fail(call, status, "XML that is no lockinfo");
		return;
	}
	lock_it(call, &body, &state);
	dav_body_clear(&body);
}

void dav_unlock(struct dav_call *call)
{
	struct dav_state state;
	int error;

	if (!dav_look(call, &call->at, &state) || !dav_check_conditions(call, &state))
		return;
	error = dav_locks_remove(call->dav->locks, call->at.key, call->request.lock_token,
				 call->transaction->remote_user, clock_boottime_ns());
	if (error == -EPERM)
		dav_fail(call, 403, "another user's lock");
	else if (error)
		dav_violate(call, 409, "lock-token-matches-request-uri", NULL);
	else
		call->status = 204;
}
