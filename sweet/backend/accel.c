/* SPDX-License-Identifier: MIT */
/*
 * accel.c - see accel.h.
 *
 * The answers are not cached as those of the program: a file has its own cache, and what is at an
 * internal path is cached by its own fields.
 */
#include <glib.h>
#include <stdbool.h>
#include <string.h>

#include "backend/accel.h"
#include "backend/backend-call.h"
#include "backend/pool.h"
#include "base/slice.h"
#include "config/configuration.h"
#include "config/pool-config.h"
#include "core/site.h"
#include "core/transaction.h"
#include "http/fields.h"
#include "http/request.h"
#include "http/response.h"
#include "program/cgihead.h"

/* Those that describe the program's body: they are others for the body that is sent. */
static const field_set of_body = FIELD_BIT(FIELD_ACCEPT_RANGES) | FIELD_BIT(FIELD_CONTENT_DIGEST) |
				 FIELD_BIT(FIELD_CONTENT_ENCODING) | FIELD_BIT(FIELD_CONTENT_MD5) |
				 FIELD_BIT(FIELD_CONTENT_RANGE) | FIELD_BIT(FIELD_DIGEST) |
				 FIELD_BIT(FIELD_ETAG) | FIELD_BIT(FIELD_LAST_MODIFIED) |
				 FIELD_BIT(FIELD_REPR_DIGEST);

/*
 * Remembers the program's lines for the response that is sent.  Those of a program that led to this
 * one replace them, as they do where this one responds itself.
 */
static bool save_lines(struct backend_call *call, const struct cgihead *head)
{
	struct transaction *transaction = call->transaction;
	const char *earlier =
		transaction->response.accel_lines ? transaction->response.accel_lines : "";
	struct response_facts facts;
	long length = call_take_lines(call, head->lines, &facts);
	struct fields fields;
	char *saved = NULL;

	if (length < 0)
		return false;
	fields_init(&fields);
	fields_read(&fields, (struct slice){transaction_lines(transaction), (size_t)length});
	fields_merge(&fields, (struct slice){earlier, strlen(earlier)});
	fields_remove(&fields, of_body);
	if (!fields.failed)
		saved = g_malloc(fields_size(&fields) + 1);
	if (saved)
		*fields_write(&fields, saved) = '\0';
	fields_free(&fields);
	transaction_drop_room(transaction);
	if (!saved)
		return false;
	g_free(transaction->response.accel_lines);
	transaction->response.accel_lines = saved;
	return true;
}

/* Returns the folder of the pool that has the file, and its path there; NULL: none has. */
static const struct scope *find_folder(const struct backend_call *call, const char *file,
				       const char **path)
{
	const struct config_ref *ref = call->transaction->config_ref;
	const struct config *config = ref->config;
	const struct host *host = &config->hosts[0];
	const struct scope *found = NULL;
	size_t longest = 0;

	for (unsigned i = config->first_folder; i < host->scope_count; i++) {
		const struct scope *scope = &host->scopes[i];
		const char *folder = site_scope(ref, scope)->folder;
		size_t length;

		if (strcmp(scope->accel_pool, call->pool->settings->name) != 0)
			continue;
		length = strlen(folder);
		if (strncmp(file, folder, length) == 0 && file[length] == '/' &&
		    (!found || length > longest)) {
			found = scope;
			longest = length;
			*path = file + length;
		}
	}
	return found;
}

static enum accel send_file(struct backend_call *call, const struct cgihead *head,
			    const char **fault)
{
	char *file = g_strndup(head->sendfile.at, head->sendfile.length);
	const struct scope *folder;
	enum accel result = ACCEL_REFUSED;
	const char *path;

	/* Opening refuses ".." and links; this is for the message. */
	folder = find_folder(call, file, &path);
	if (!folder || strlen(path) > REQUEST_TARGET_MAX) {
		*fault = "names a file by X-Sendfile that is in no folder of accel";
	} else if (!save_lines(call, head)) {
		*fault = "malformed header lines, or no memory for them";
	} else {
		call_send_file(call, folder, path);
		result = ACCEL_TAKEN;
	}
	g_free(file);
	return result;
}

enum accel accel_take(struct backend_call *call, const struct cgihead *head, const char **fault)
{
	const struct pool_config *settings = call->pool->settings;

	if (!settings->accel || !settings->accel[0] ||
	    (!head->accel.length && !head->sendfile.length))
		return ACCEL_NONE;
	if (head->sendfile.length)
		return send_file(call, head, fault);
	if (!pool_config_leads(settings)) {
		*fault = "has an X-Accel-Redirect, but accel of its pool does not name internal";
		return ACCEL_REFUSED;
	}
	if (!save_lines(call, head)) {
		*fault = "malformed header lines, or no memory for them";
		return ACCEL_REFUSED;
	}
	call->transaction->route.accel = true;
	call_redirect(call, head->accel);
	return ACCEL_TAKEN;
}
