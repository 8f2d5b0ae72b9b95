/* SPDX-License-Identifier: MIT */
/*
 * dav-patch.c - PROPPATCH (RFC 4918, section 9.2): sets and removes properties, all or none.
 */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "dav/dav-body.h"
#include "dav/dav-call.h"
#include "dav/dav-live.h"
#include "dav/dav-multistatus.h"
#include "dav/dav-place.h"
#include "dav/dav-properties.h"
#include "files/docroot-open.h"

static const struct dav_property *property_at(const struct dav_body *body, guint number)
{
	return body->properties->pdata[number];
}

static int apply(int fd, const struct dav_property *property)
{
	return property->remove
		       ? dav_property_remove(fd, property->space, property->local)
		       : dav_property_set(fd, property->space, property->local, property->xml);
}

/* Sets what was there before. */
static void undo(int fd, const struct dav_body *body, char *const *before, guint count)
{
	while (count--) {
		const struct dav_property *property = property_at(body, count);

		if (before[count])
			(void)dav_property_set(fd, property->space, property->local, before[count]);
		else
			(void)dav_property_remove(fd, property->space, property->local);
	}
}

/* Returns the number of properties that were changed, all or none; *error of the failed one. */
static guint apply_all(int fd, const struct dav_body *body, guint *failed, int *error)
{
	guint count = body->properties->len, done = 0;
	char **before = g_new0(char *, count + 1);

	*error = 0;
	while (done < count && !*error) {
		const struct dav_property *property = property_at(body, done);

		before[done] = dav_property_get(fd, property->space, property->local);
		*error = apply(fd, property);
		done += !*error;
	}
	*failed = done;
	if (*error)
		undo(fd, body, before, done);
	for (guint i = 0; i < count; i++)
		g_free(before[i]);
	g_free(before);
	return *error ? 0 : done;
}

static bool is_protected(const struct dav_property *property)
{
	return strcmp(property->space, "DAV:") == 0 && dav_live_knows(property->local);
}

/* The statuses of a response, and the properties that have them. */
enum { DONE, REFUSED, NO_ROOM, DEPENDENT, STATUSES };

static void report(struct dav_call *call, const struct dav_body *body, guint failed, int error,
		   bool folder)
{
	struct dav_propstat stats[STATUSES] = {[DONE] = {200, NULL},
					       [REFUSED] = {403, NULL},
					       [NO_ROOM] = {507, NULL},
					       [DEPENDENT] = {424, NULL}};
	GString *names[STATUSES];
	char *path = g_strconcat(call->at.path, folder ? "/" : "", NULL);

	for (unsigned i = 0; i < STATUSES; i++)
		stats[i].properties = names[i] = g_string_new(NULL);
	for (guint i = 0; i < body->properties->len; i++) {
		const struct dav_property *property = property_at(body, i);
		unsigned status = !error		     ? DONE
				  : is_protected(property)   ? REFUSED
				  : i != failed		     ? DEPENDENT
				  : dav_status(error) == 507 ? NO_ROOM
							     : REFUSED;

		dav_write_name(names[status], property->space, property->local);
	}
	call->text = dav_multistatus_begin();
	dav_multistatus_properties(call->text, path, stats, STATUSES);
	dav_multistatus_end(call->text);
	call->status = 207;
	for (unsigned i = 0; i < STATUSES; i++)
		g_string_free(names[i], TRUE);
	g_free(path);
}

static void patch(struct dav_call *call, const struct dav_body *body, bool folder)
{
	const char *file = *call->at.file ? call->at.file : ".";
	guint failed = body->properties->len;
	int error = 0;
	int fd = docroot_openat(dav_place_writes(&call->at), file,
				O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0) {
		dav_fail_with(call, -errno, "open");
		return;
	}
	for (guint i = 0; i < body->properties->len; i++)
		if (is_protected(property_at(body, i)))
			error = -EPERM;
	if (!error)
		(void)apply_all(fd, body, &failed, &error);
	close(fd);
	report(call, body, failed, error, folder);
}

void dav_proppatch(struct dav_call *call)
{
	struct dav_body body = {.properties = NULL};
	struct dav_state state;
	int status;

	if (!dav_look(call, &call->at, &state) || !dav_check_conditions(call, &state))
		return;
	status = call->body ? dav_body_proppatch(call->body, call->body_length, &body) : 400;
	if (status)
		dav_fail(call, status, "XML that is no propertyupdate");
	else if (!state.exists)
		dav_fail(call, 404, NULL);
	else if (dav_begin_change(call, &call->at, false, false))
		patch(call, &body, state.folder);
	dav_end_changes(call);
	dav_body_clear(&body);
}
