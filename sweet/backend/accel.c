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
#include "backend/gateway.h"
#include "base/slice.h"
#include "config/configuration.h"
#include "config/pool-config.h"
#include "core/site.h"
#include "core/transaction.h"
#include "http/header-lines.h"
#include "http/request.h"
#include "http/response.h"
#include "program/cgihead.h"

/*
 * Remembers the program's lines for the response that is sent.  Those of a program that led to this
 * one replace them, as they do where this one responds itself.
 */
static bool save_lines(struct backend_call *call, const struct cgihead *head)
{
	struct transaction *transaction = call->transaction;
	const char *earlier = transaction->accel_lines ? transaction->accel_lines : "";
	struct slice before = {earlier, strlen(earlier)}, lines;
	struct response_facts facts;
	long length = call_take_lines(call, head->lines, &facts);
	char *saved;

	if (length < 0)
		return false;
	lines = (struct slice){transaction_lines(transaction), (size_t)length};
	saved = g_malloc(lines.length + before.length + 1);
	lines = (struct slice){saved, header_merge(lines, before, saved)};
	saved[header_without_body(lines, saved)] = '\0';
	g_free(transaction->accel_lines);
	transaction->accel_lines = saved;
	transaction_drop_room(transaction);
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
	call->transaction->accel = true;
	call_redirect(call, head->accel);
	return ACCEL_TAKEN;
}
