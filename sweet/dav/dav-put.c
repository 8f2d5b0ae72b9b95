/* SPDX-License-Identifier: MIT */
/*
 * dav-put.c - PUT: the body goes to a file without a name, which replaces the old one when it is
 * complete (RFC 4918, section 9.7).
 *
 * Its data is on the disk before it gets the name: after a crash the name leads to the old file or
 * to the new one, never to a part.  The folder is not synchronised, so a name that is new may be
 * lost by a crash: clients that write many small files would wait for the disk at each.
 */
#include <errno.h>
#include <glib.h>
#include <nabc.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "config/configuration.h"
#include "core/site.h"
#include "core/transaction.h"
#include "dav/dav-call.h"
#include "dav/dav-place.h"
#include "dav/dav-properties.h"
#include "dav/dav-request.h"
#include "dav/dav-temp.h"
#include "files/docroot.h"
#include "files/file-cache.h"
#include "files/filehead.h"
#include "http/conditional.h"
#include "http/etag.h"

struct dav_upload {
	int folder;
	struct dav_temp temp;
};

/* Checks what is there; sets the response and returns false if the client must not write it. */
static bool check(struct dav_call *call, struct dav_state *state)
{
	if (!dav_look(call, &call->at, state) || !dav_check_conditions(call, state))
		return false;
	if (state->exists && state->folder)
		dav_fail(call, 405, "PUT to a folder");
	else if (call->at.slash)
		dav_fail(call, 409, "PUT with a slash at the end");
	return !call->status;
}

static bool begin_change(struct dav_call *call, const struct dav_state *state)
{
	return dav_begin_change(call, &call->at, false, !state->exists);
}

void dav_put_begin(struct dav_call *call)
{
	struct dav_upload *upload;
	struct dav_state state = {.exists = false};
	bool may;
	int error;

	if (!check(call, &state))
		return;
	may = begin_change(call, &state);
	dav_end_changes(call);
	if (!may)
		return;
	upload = g_new0(struct dav_upload, 1);
	call->upload = upload;
	upload->temp.fd = -1;
	upload->folder = dav_place_open_parent(&call->at);
	error = upload->folder < 0 ? upload->folder : dav_temp_open(&upload->temp, upload->folder);
	if (error == -ENOENT || error == -ENOTDIR)
		dav_fail(call, 409, "no folder for it");
	else if (error)
		dav_fail_with(call, error, "create");
}

void dav_put_piece(struct dav_call *call)
{
	const struct transaction *transaction = call->transaction;
	size_t length = (size_t)(transaction->upload.length - call->before), run;
	const char *bytes;

	call->before = transaction->upload.length;
	if (!transaction->upload.unit || !length)
		return;
	bytes = NC_data(&transaction->upload.hold, &run, 0);
	/* The unit of a body is contiguous. */
	if (!bytes || run < length) {
		dav_fail_with(call, -ENOMEM, "write");
		return;
	}
	while (length) {
		ssize_t written = write(call->upload->temp.fd, bytes, length);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0) {
			dav_fail_with(call, -errno, "write");
			return;
		}
		bytes += written;
		length -= (size_t)written;
	}
}

/* Keeps the properties of the file that is replaced. */
static int keep_properties(struct dav_call *call)
{
	struct file_version version;
	int old = docroot_open_file(dav_place_writes(&call->at), call->at.file, &version), error;

	if (old < 0)
		return 0;
	error = dav_properties_copy(old, call->upload->temp.fd);
	close(old);
	return error;
}

static void set_tag(struct dav_call *call)
{
	struct file_version version;
	struct filehead head;

	if (docroot_version(call->upload->temp.fd, &version))
		return;
	filehead_write(&head, &version, file_cache_etag(call->at.open->file_cache), "", time(NULL));
	call->lines = g_string_new("ETag: ");
	g_string_append_len(call->lines, head.text + head.etag_at, ETAG_LENGTH);
	g_string_append(call->lines, "\r\n");
}

static void commit(struct dav_call *call, const struct dav_state *state)
{
	const struct conditions *conditions = &call->request.conditions;
	struct dav_temp *temp = &call->upload->temp;
	/* "If-None-Match: *" holds, also if another client writes at this moment. */
	bool replace = state->exists || !conditions->any ||
		       !(conditions->present & 1u << CONDITION_NONE_MATCH);
	int error = state->exists ? keep_properties(call) : 0;

	if (!error && fdatasync(temp->fd) < 0)
		error = -errno;
	if (!error)
		error = dav_temp_commit(temp, call->at.name, replace);
	if (error == -ENOENT) {
		dav_fail(call, 409, "its folder was removed");
	} else if (error == -EEXIST && !replace) {
		dav_fail(call, 412, NULL);
	} else if (error) {
		dav_fail_with(call, error, "write");
	} else {
		call->status = state->exists ? 204 : 201;
		set_tag(call);
	}
}

void dav_put_end(struct dav_call *call)
{
	struct dav_state state = {.exists = false};

	/* Both may have changed meanwhile. */
	if (check(call, &state) && begin_change(call, &state))
		commit(call, &state);
	dav_end_changes(call);
}

void dav_put_discard(struct dav_call *call)
{
	struct dav_upload *upload = call->upload;

	call->upload = NULL;
	if (!upload)
		return;
	dav_temp_close(&upload->temp);
	if (upload->folder >= 0)
		close(upload->folder);
	g_free(upload);
}
