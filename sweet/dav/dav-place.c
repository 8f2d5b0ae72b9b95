/* SPDX-License-Identifier: MIT */
/*
 * dav-place.c - see dav-place.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/path-prefix.h"
#include "base/slice.h"
#include "base/symlinks.h"
#include "config/configuration.h"
#include "config/path-rules.h"
#include "core/file-path.h"
#include "core/server.h"
#include "core/site.h"
#include "core/transaction.h"
#include "dav/dav-place.h"
#include "files/docroot-open.h"
#include "files/file-cache.h"
#include "http/request.h"
#include "http/uri.h"
#include "rules/path-pattern.h"

/* Makes what depends on path and scope. */
static void make_names(struct dav_place *place)
{
	const char *slash;

	place->file = file_path_of(place->scope, place->path);
	while (*place->file == '/')
		place->file++;
	place->key = *place->file ? g_strdup_printf("%s/%s", place->open->folder, place->file)
				  : g_strdup(place->open->folder);
	slash = strrchr(place->file, '/');
	place->name = slash ? slash + 1 : place->file;
	place->parent =
		slash ? g_strndup(place->file, (gsize)(slash - place->file)) : g_strdup(".");
	place->parent_key = slash ? g_strdup_printf("%s/%s", place->open->folder, place->parent)
				  : g_strdup(place->open->folder);
}

int dav_place_set(struct dav_place *place, const struct config_ref *ref, const struct scope *scope,
		  const char *path, bool change)
{
	size_t length = strlen(path);

	dav_place_clear(place);
	place->scope = scope;
	place->open = site_scope(ref, scope);
	place->slash = length && path[length - 1] == '/';
	place->path = g_strdup(path);
	while (length && place->path[length - 1] == '/')
		place->path[--length] = '\0';
	/* The prefix of an alias without its slash: nothing is left of it. */
	if (scope->alias && length < scope->alias_skip)
		return 403;
	make_names(place);
	if (file_path_is_hidden(scope, path))
		return 403;
	if (change && (!*place->name || length <= scope->prefix_length))
		return 403;
	return 0;
}

void dav_place_clear(struct dav_place *place)
{
	g_free(place->path);
	g_free(place->key);
	g_free(place->parent);
	g_free(place->parent_key);
	*place = (struct dav_place){.scope = NULL};
}

bool dav_place_lies_in(const struct dav_place *place, const struct dav_place *other)
{
	return path_lies_in(place->key, other->key);
}

/* --- what the client may do there -------------------------------------------------------- */

static bool same_lists(char **one, char **other)
{
	const char *none[] = {NULL};

	return g_strv_equal(one ? (const char *const *)one : none,
			    other ? (const char *const *)other : none);
}

/* Whether a client with the rights of the one has those of the other. */
static bool same_rights(const struct config_ref *ref, const struct scope *one,
			const struct scope *other)
{
	return one == other ||
	       (one->webdav && other->webdav &&
		site_scope(ref, one)->auth == site_scope(ref, other)->auth &&
		one->internal == other->internal && same_lists(one->allow, other->allow) &&
		same_lists(one->deny, other->deny));
}

/* Whether their paths also lead to the same files in the same way. */
static bool same_files(const struct config_ref *ref, const struct scope *one,
		       const struct scope *other)
{
	return strcmp(site_scope(ref, one)->folder, site_scope(ref, other)->folder) == 0 &&
	       !one->alias == !other->alias &&
	       (!one->alias || one->alias_skip == other->alias_skip) &&
	       one->symlinks == other->symlinks && one->hidden == other->hidden;
}

bool dav_place_is_uniform(const struct dav_place *place, const struct transaction *transaction)
{
	const struct config *config = transaction->config_ref->config;
	const struct host *host = transaction->host;
	const char *outer = host_scope(host, *place->path ? place->path : "/")->prefix;
	unsigned count = host == &config->hosts[0] ? config->first_folder : host->scope_count;

	for (unsigned i = 0; i < count; i++) {
		const struct scope *scope = &host->scopes[i];
		bool applies = path_lies_in(scope->prefix, place->path) ||
			       (scope->rule && strcmp(scope->prefix, outer) == 0);

		if (applies && !(same_rights(transaction->config_ref, scope, place->scope) &&
				 same_files(transaction->config_ref, scope, place->scope)))
			return false;
	}
	for (unsigned i = 0; i < config->mount_count; i++)
		if (path_lies_in(config->mounts[i].prefix, place->path))
			return false;
	return true;
}

/* --- URLs in fields ------------------------------------------------------------------------ */

/* Returns true if it names the host of the request. */
static bool is_host(const struct transaction *transaction, struct slice name)
{
	const struct host *host = transaction->host;
	struct slice bare = uri_without_port(name);

	if (slice_same(name, transaction->request->host) ||
	    slice_same(bare, uri_without_port(transaction->request->host)))
		return true;
	for (char **own = host->names; own && *own; own++)
		if (slice_is(bare, *own))
			return true;
	return false;
}

/* Takes "http://HOST" from the front of an absolute URL. */
static int take_host(const struct transaction *transaction, struct slice *url)
{
	static const struct slice schemes[] = {SLICE_OF("http://"), SLICE_OF("https://")};

	for (unsigned i = 0; i < G_N_ELEMENTS(schemes); i++) {
		struct slice host = *url;
		const char *slash;

		if (url->length < schemes[i].length ||
		    strncasecmp(url->at, schemes[i].at, schemes[i].length) != 0)
			continue;
		host.at += schemes[i].length;
		host.length -= schemes[i].length;
		slash = memchr(host.at, '/', host.length);
		url->length = slash ? host.length - (size_t)(slash - host.at) : 0;
		url->at = slash ? slash : "";
		if (slash)
			host.length = (size_t)(slash - host.at);
		return is_host(transaction, host) ? 0 : 502;
	}
	return url->length && url->at[0] == '/' ? 0 : 400;
}

int dav_place_find(struct dav_place *place, struct transaction *transaction, struct slice url,
		   bool change)
{
	const struct config *config = transaction->config_ref->config;
	struct path_captures captures;
	const struct path_rule *rule;
	const struct scope *scope;
	char path[REQUEST_TARGET_MAX + 1];
	int status = take_host(transaction, &url);

	if (status)
		return status;
	if (!url.length)
		url = SLICE("/");
	if (memchr(url.at, '?', url.length) || memchr(url.at, '#', url.length) ||
	    uri_decode_path(url, (enum uri_slash)transaction->host->escaped_slash, path,
			    sizeof(path)) < 0)
		return 400;
	scope = path_rules_find(transaction->config_ref->site->number, transaction->host, path,
				&transaction->thread->paths, &captures, &rule);
	if (!scope || config_mount(config, path) || scope->pool || scope->rewrite ||
	    scope->rewrite_text || scope->redirect_status ||
	    !same_rights(transaction->config_ref, scope, transaction->scope))
		return 403;
	return dav_place_set(place, transaction->config_ref, scope, path, change);
}

/* --- files ------------------------------------------------------------------------------- */

struct docroot dav_place_reads(const struct dav_place *place)
{
	return file_cache_root(place->open->file_cache);
}

struct docroot dav_place_writes(const struct dav_place *place)
{
	return (struct docroot){dav_place_reads(place).fd, SYMLINKS_DENY};
}

int dav_place_open_parent(const struct dav_place *place)
{
	int fd = docroot_openat(dav_place_writes(place), place->parent,
				O_PATH | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int dav_place_look(const struct dav_place *place, bool *folder, struct file_version *version)
{
	return docroot_look(dav_place_reads(place), place->file, folder, version);
}

int dav_status(int error)
{
	switch (-error) {
	case ENOENT:
	case ENOTDIR:
		return 404;
	case EACCES:
	case EPERM:
	case ELOOP:
	case EXDEV:
	case EROFS:
	case ENOTSUP:
	case ENAMETOOLONG:
	case EILSEQ:
	case EINVAL:
		return 403;
	case EEXIST:
	case EISDIR:
		return 405;
	case ENOTEMPTY:
	case EBUSY:
	case ETXTBSY:
		return 409;
	case ENOSPC:
	case EDQUOT:
	case EFBIG:
	case E2BIG:
	case ERANGE:
	case EMLINK:
		return 507;
	case ENOMEM:
	case EMFILE:
	case ENFILE:
	case ECANCELED:
		return 503;
	default:
		return 500;
	}
}
