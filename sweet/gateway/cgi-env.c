/* SPDX-License-Identifier: MIT */
/*
 * cgi-env.c - see cgi-env.h.  Runs on the transaction's thread.
 *
 * FastCGI applications that run scripts (PHP) need the file name of the script.  The server does
 * not check that the file exists: the check could block, and the application has to open the file
 * anyway.
 */
#include <limits.h>
#include <stdbool.h>
#include <string.h>

#include <glib.h>

#include "backend/pool.h"
#include "base/slice.h"
#include "config/configuration.h"
#include "config/pool-config.h"
#include "core/request-value.h"
#include "core/server.h"
#include "core/site.h"
#include "core/transaction.h"
#include "gateway/cgi-env.h"
#include "gateway/gateway.h"
#include "http/request.h"
#include "program/meta.h"
#include "program/upstream-request.h"
#include "rules/variable-expand.h"
#include "rules/variable.h"
#include "tls/tls.h"

#define SCRIPT_MAX (REQUEST_TARGET_MAX + NAME_MAX + 1) /* bytes of a script's file name */

size_t cgi_env_script_length(const char *path, size_t skip, const char *suffix)
{
	size_t length = strlen(suffix);
	const char *at = path + skip;

	while (length && (at = strstr(at, suffix))) {
		at += length;
		if (*at == '\0' || *at == '/')
			return (size_t)(at - path);
	}
	return skip;
}

/* Returns the index script for the directory that path names, or NULL. */
static const char *index_of(const struct scope *scope, const char *path, const char *suffix)
{
	if (!g_str_has_suffix(path, "/"))
		return NULL;
	for (unsigned i = 0; *suffix && scope->index && scope->index[i]; i++)
		if (g_str_has_suffix(scope->index[i], suffix))
			return scope->index[i];
	return NULL;
}

/* Writes first and second, truncated to room bytes. */
static void join(char *out, size_t room, struct slice first, const char *second)
{
	size_t length = strlen(second);

	if (first.length > room - 1)
		first.length = room - 1;
	if (length > room - 1 - first.length)
		length = room - 1 - first.length;
	memcpy(out, first.at, first.length);
	memcpy(out + first.length, second, length);
	out[first.length + length] = '\0';
}

/* Returns how many bytes of path stand for the scope's directory. */
static size_t folder_skip(const struct scope *scope)
{
	return scope->alias ? scope->alias_skip : 0;
}

const char *cgi_env_index(const struct scope *scope, const char *path, size_t skip,
			  const char *suffix)
{
	size_t from = MAX(skip, folder_skip(scope));

	return cgi_env_script_length(path, from, suffix) == from ? index_of(scope, path, suffix)
								 : NULL;
}

/*
 * Writes the script's file name; returns the bytes of path that name it.  If the script lies above
 * the alias's directory it belongs to another scope, whose rules were not applied to the request.
 */
static size_t name_script(const struct scope *scope, const char *path, size_t skip,
			  const char *suffix, char *script)
{
	size_t from = MAX(skip, folder_skip(scope));
	size_t length = cgi_env_script_length(path, from, suffix);
	const char *index = cgi_env_index(scope, path, skip, suffix);

	if (index)
		length = strlen(path);
	else if (length == from)
		length = skip;
	join(script, SCRIPT_MAX, (struct slice){path, length}, index ? index : "");
	return length;
}

/* Without a script, the path that is used instead may end before the scope's directory. */
static const char *below_folder(const struct scope *scope, const char *script)
{
	size_t skip = folder_skip(scope);

	return strlen(script) > skip ? script + skip : "";
}

long cgi_env_write(const struct gateway_pool *pool, const struct transaction *transaction,
		   size_t skip, char *out, size_t out_size)
{
	const struct scope *scope = transaction->scope;
	const struct pool_config *settings = pool->settings;
	char script[SCRIPT_MAX], file[PATH_MAX + SCRIPT_MAX];
	const char *folder = site_scope(transaction->config_ref, scope)->folder;
	const char *path = transaction->path;
	char **of_path = variables_expand(&scope->variables, request_value, transaction);
	char **of_pool = variables_expand(&settings->variables, request_value, transaction);
	/* A program of libfcgi gets what it would get by FastCGI. */
	bool is_fastcgi = settings->protocol == POOL_FASTCGI || settings->preload;
	long length;
	struct meta_context context = {
		.script_name = script,
		.remote_addr = transaction->peer.remote_addr,
		.remote_port = transaction->peer.remote_port,
		.remote_user = transaction->remote_user,
		.server_addr = transaction->peer.server_addr,
		.server_port = transaction->peer.server_port,
		.software = SERVER_SOFTWARE,
		.https = transaction->peer.https,
		.request_id = transaction->trace.id,
		.traceparent = transaction->trace.traceparent,
		.trace_begins = transaction->trace.begins,
		.http2 = transaction->peer.http2,
		.query = transaction_query(transaction),
		.authorization = settings->pass_authorization,
		.variables = {of_path ? of_path : scope->variables.list,
			      of_pool ? of_pool : settings->variables.list},
		.rules = {scope->request_rules, scope->request_rule_count},
	};

	if (transaction->peer.tls)
		context.tls_variables.at = tls_library->variables(transaction->peer.tls,
								  &context.tls_variables.length);
	if (settings->protocol == POOL_WORKER && !transaction->peer.http2)
		context.upgrade = upstream_request_upgrade(transaction->request, settings->upgrade);
	if (settings->protocol != POOL_WORKER || is_fastcgi) {
		context.document_root = folder;
		context.request_scheme = transaction->peer.https ? "https" : "http";
		context.local_addr = transaction->peer.server_addr;
		context.redirect_status = 200;
		context.server_pid = pool->gateway->pid;
	}
	if (is_fastcgi) {
		skip = name_script(scope, path, skip, settings->script_suffix, script);
		join(file, sizeof(file), (struct slice){folder, strlen(folder)},
		     below_folder(scope, script));
		context.script_filename = file;
	} else {
		join(script, sizeof(script), (struct slice){path, skip}, "");
		/* Of programs in a folder the spawner adds it, which finds them. */
		if (settings->protocol == POOL_CGI && settings->argv)
			context.script_filename = settings->argv[0];
	}
	context.path_info = path + skip;
	length = meta_write(transaction->request, &context, out, out_size);
	g_strfreev(of_path);
	g_strfreev(of_pool);
	return length;
}
