/* SPDX-License-Identifier: MIT */
/*
 * dav-find.c - PROPFIND (RFC 4918, section 9.1): the properties of a file, or of a folder and its
 * members.  Not of all that is below: such a request gets 403, which the RFC permits.
 */
#include <errno.h>
#include <glib.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "config/configuration.h"
#include "dav/dav-body.h"
#include "dav/dav-call.h"
#include "dav/dav-live.h"
#include "dav/dav-multistatus.h"
#include "dav/dav-place.h"
#include "dav/dav-properties.h"
#include "dav/dav-request.h"
#include "event/thread-pool.h"
#include "files/read-directory.h"
#include "http/autoindex-render.h"

#define MEMBERS_MAX 10000u	  /* of a folder */
#define TEXT_MAX ((gsize)8 << 20) /* bytes of a response */

/* The properties of a resource that have been found, and those that are missing. */
struct found {
	const struct dav_body *body;
	const struct dav_resource *resource;
	GString *there, *missing;
};

static void see_dead(const char *space, const char *local, const char *xml, void *context)
{
	struct found *found = context;

	if (found->body->find == DAV_FIND_NAMES)
		dav_write_name(found->there, space, local);
	else
		g_string_append(found->there, xml);
}

static void find_named(struct found *found, const struct dav_property *property)
{
	bool is_live = strcmp(property->space, "DAV:") == 0 && dav_live_knows(property->local);
	char *xml = NULL;

	if (is_live && dav_live_write(found->there, found->resource, property->local))
		return;
	if (!is_live && found->resource->fd >= 0)
		xml = dav_property_get(found->resource->fd, property->space, property->local);
	if (xml)
		g_string_append(found->there, xml);
	else
		dav_write_name(found->missing, property->space, property->local);
	g_free(xml);
}

static void write_resource(GString *text, const struct dav_body *body,
			   const struct dav_resource *resource)
{
	struct found found = {body, resource, g_string_new(NULL), g_string_new(NULL)};
	struct dav_propstat stats[] = {{200, found.there}, {404, found.missing}};

	if (body->find != DAV_FIND_SOME) {
		dav_live_write_all(found.there, resource, body->find == DAV_FIND_NAMES);
		if (resource->fd >= 0)
			dav_properties_each(resource->fd, see_dead, &found);
	} else {
		for (guint i = 0; i < body->properties->len; i++)
			find_named(&found, body->properties->pdata[i]);
	}
	dav_multistatus_properties(text, resource->path, stats, G_N_ELEMENTS(stats));
	g_string_free(found.there, TRUE);
	g_string_free(found.missing, TRUE);
}

/* Whether a property is asked for that only the file itself has. */
static bool wants_dead(const struct dav_body *body)
{
	for (guint i = 0; i < body->properties->len; i++) {
		const struct dav_property *property = body->properties->pdata[i];

		if (strcmp(property->space, "DAV:") != 0 || !dav_live_knows(property->local))
			return true;
	}
	return body->find != DAV_FIND_SOME;
}

/* Adds what is at that path; returns 0 or -errno. */
static int add(struct dav_call *call, GString *text, const struct dav_body *body, const char *path,
	       const char *file, bool *is_folder)
{
	struct dav_resource resource = {.dav = call->dav, .fd = -1};
	int error = dav_resource_open(&resource, call->at.open, path, file, wants_dead(body));

	if (error)
		return error;
	*is_folder = resource.folder;
	write_resource(text, body, &resource);
	dav_resource_close(&resource);
	return 0;
}

/* Members that are removed meanwhile are left out. */
static int add_members(struct dav_call *call, GString *text, const struct dav_body *body)
{
	GString *path = g_string_new(call->at.path), *file = g_string_new(call->at.file);
	gsize path_length, file_length;
	struct directory directory;
	bool folder;
	int error;

	g_string_append_c(path, '/');
	if (file->len)
		g_string_append_c(file, '/');
	path_length = path->len;
	file_length = file->len;
	error = directory_read(dav_place_reads(&call->at), file->str, call->at.scope->hidden,
			       MEMBERS_MAX, &call->job, &directory);
	if (!error && directory.more)
		error = -E2BIG;
	for (unsigned i = 0; !error && i < directory.count; i++) {
		g_string_truncate(path, path_length);
		g_string_truncate(file, file_length);
		g_string_append(path, directory.entries[i].name);
		g_string_append(file, directory.entries[i].name);
		(void)add(call, text, body, path->str, file->str, &folder);
		if (text->len > TEXT_MAX)
			error = -E2BIG;
		if (job_cancelled(&call->job))
			error = -ECANCELED;
	}
	directory_clear(&directory);
	g_string_free(path, TRUE);
	g_string_free(file, TRUE);
	return error;
}

static void find(struct dav_call *call, const struct dav_body *body)
{
	GString *text = dav_multistatus_begin();
	bool folder = false;
	int error = add(call, text, body, call->at.path, call->at.file, &folder);

	if (!error && folder && call->request.depth == DAV_DEPTH_1)
		error = add_members(call, text, body);
	if (error) {
		g_string_free(text, TRUE);
		dav_fail_with(call, error, "list");
		if (error == -E2BIG)
			call->reason = "a folder with too many members";
		return;
	}
	dav_multistatus_end(text);
	call->text = text;
	call->status = 207;
}

void dav_propfind(struct dav_call *call)
{
	struct dav_body body = {.find = DAV_FIND_ALL};
	struct dav_state state;
	int status = 0;

	if (!dav_look(call, &call->at, &state) || !dav_check_conditions(call, &state))
		return;
	if (call->body)
		status = dav_body_propfind(call->body, call->body_length, &body);
	else
		body.properties = g_ptr_array_new();
	if (status)
		dav_fail(call, status, "XML that is no propfind");
	else if (state.exists && state.folder && call->request.depth == DAV_DEPTH_INFINITY)
		dav_violate(call, 403, "propfind-finite-depth", NULL);
	else
		find(call, &body);
	dav_body_clear(&body);
}
