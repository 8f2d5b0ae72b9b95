/* SPDX-License-Identifier: MIT */
/*
 * site.c - see site.h.  A directory has one file cache, even if several scopes and sites name it; each
 * of them holds a reference.
 */
#include <errno.h>
#include <glib.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "auth/htpasswd.h"
#include "base/symlinks.h"
#include "config/configuration.h"
#include "config/pool-config.h"
#include "core/auth.h"
#include "core/site.h"
#include "core/site-tls.h"
#include "event/client-limit.h"
#include "files/docroot.h"
#include "files/file-cache.h"
#include "http/etag.h"
#include "http/mime.h"

static const char *folder_of(const struct scope *scope)
{
	return scope->alias ? scope->alias : scope->root;
}

/* Returns the file cache with the same options that is open for one of the first scopes. */
static struct file_cache *find(const struct site *site, unsigned scopes,
			       const struct file_cache_options *options)
{
	for (unsigned i = 0; i < scopes; i++) {
		struct file_cache *content = site->scopes[i].file_cache;

		if (content && file_cache_serves(content, options))
			return content;
	}
	return NULL;
}

/* Reports the error once, even if many paths inherit the setting from their host. */
static void complain(GPtrArray *errors, const char *place, const char *what, const char *why)
{
	char *text =
		g_strdup_printf("%s%s%s: %s", place ? place : "", place ? ": " : "", what, why);

	if (g_ptr_array_find_with_equal_func(errors, text, g_str_equal, NULL))
		g_free(text);
	else
		g_ptr_array_add(errors, text);
}

/* What mime_open() has made for the scopes of a configuration. */
struct known_mime {
	struct mime_options options; /* of the first scope that wants it */
	struct mime *mime;
};

static bool same_options(const struct mime_options *one, const struct mime_options *other)
{
	const char *none[] = {NULL};

	return g_strcmp0(one->charset, other->charset) == 0 &&
	       g_strcmp0(one->otherwise, other->otherwise) == 0 &&
	       g_strv_equal(one->lines ? (const char *const *)one->lines : none,
			    other->lines ? (const char *const *)other->lines : none);
}

/* Few scopes want other types than their host: they are made once. */
static struct mime *find_mime(GArray *known, const struct config *config, const struct scope *scope)
{
	struct known_mime made = {.options = {.path = config->mime_types,
					      .lines = scope->types,
					      .charset = scope->charset,
					      .otherwise = scope->default_type}};

	for (guint i = 0; i < known->len; i++) {
		const struct known_mime *old = &g_array_index(known, struct known_mime, i);

		if (same_options(&old->options, &made.options))
			return old->mime;
	}
	made.mime = mime_open(&made.options);
	g_array_append_val(known, made);
	return made.mime;
}

static void forget_mimes(GArray *known)
{
	for (guint i = 0; i < known->len; i++)
		mime_close(g_array_index(known, struct known_mime, i).mime);
	g_array_free(known, TRUE);
}

static void open_files(struct site *site, const struct scope *scope, const struct site *previous,
		       struct file_cache_options options, GPtrArray *errors)
{
	struct site_scope *open = &site->scopes[scope->number];
	const char *folder = folder_of(scope);
	struct file_cache *known;

	/* Its key is invalid, which a check has reported. */
	if (!folder)
		return;
	/* For programs, which may run in another directory. */
	open->folder = g_canonicalize_filename(folder, NULL);
	options.folder = open->folder;
	options.etag = (enum etag_kind)scope->etag;
	options.root = (struct docroot){docroot_open(folder), (enum symlinks)scope->symlinks};
	if (options.root.fd < 0) {
		char *what = g_strdup_printf("cannot serve the %s \"%s\"",
					     scope->alias ? "alias" : "root", folder);

		complain(errors, scope->root_place, what, strerror(-options.root.fd));
		g_free(what);
		return;
	}
	known = find(site, scope->number, &options);
	if (!known && previous)
		known = find(previous, previous->config->scope_count, &options);
	if (known)
		close(options.root.fd);
	open->file_cache = known ? file_cache_ref(known) : file_cache_open(&options);
}

/* Returns the first scope with the same password file. */
static const struct scope *find_auth(const struct config *config, const char *file)
{
	for (unsigned i = 0; i < config->host_count; i++)
		for (unsigned k = 0; k < config->hosts[i].scope_count; k++) {
			const struct scope *scope = &config->hosts[i].scopes[k];

			if (scope->auth_realm && g_strcmp0(scope->auth_file, file) == 0)
				return scope;
		}
	return NULL;
}

/* A reload reads the file again, to report invalid lines. */
static void open_auth(struct site *site, const struct scope *scope,
		      struct authenticator *authenticator, GPtrArray *errors)
{
	struct site_scope *open = &site->scopes[scope->number];
	struct htpasswd *users = NULL;
	const struct scope *first;
	char *why = NULL;

	if (!scope->auth_realm || !scope->auth_file)
		return;
	first = find_auth(site->config, scope->auth_file);
	/* Errors of the file were reported for the first scope. */
	if (first != scope) {
		struct auth *known = site->scopes[first->number].auth;

		open->auth = known ? auth_hold(known) : NULL;
	} else if (authenticator) {
		open->auth = auth_open(authenticator, scope->auth_file, &why);
	} else {
		users = htpasswd_read(scope->auth_file, &why);
	}
	htpasswd_release(users);
	if (why)
		complain(errors, scope->auth_place, "auth-file", why);
	g_free(why);
}

/* The counts are those of the name, and so they stay at a reload. */
static void open_rate(struct site *site, const struct scope *scope, GPtrArray *errors)
{
	struct site_scope *open = &site->scopes[scope->number];

	if (!scope->rate_name)
		return;
	open->rate = rate_new(scope->rate_name, scope->request_rate, scope->request_burst + 1);
	if (!open->rate)
		complain(errors, NULL, "request-rate", "no memory");
}

static void close_all(struct site *site)
{
	const struct config *config = site->config;

	site_tls_close(site);
	for (unsigned i = 0; i < config->pool_count; i++)
		if (site->pools[i])
			site->release_pool(site->pools[i]);
	for (unsigned i = 0; i < config->scope_count; i++) {
		file_cache_close(site->scopes[i].file_cache);
		auth_release(site->scopes[i].auth);
		rate_free(site->scopes[i].rate);
		g_free(site->scopes[i].folder);
	}
}

struct site *site_new(const struct config *config)
{
	struct site *site = g_new0(struct site, 1);

	atomic_init(&site->references, 1);
	site->config = config;
	site->scopes = g_new0(struct site_scope, config->scope_count);
	site->hosts = g_new0(struct site_host, config->host_count);
	site->reported = g_new0(_Atomic bool, config->rule_count);
	site->pools = g_new0(struct gateway_pool *, config->pool_count);
	return site;
}

struct site *site_hold(struct site *site)
{
	atomic_fetch_add_explicit(&site->references, 1, memory_order_relaxed);
	return site;
}

void site_release(struct site *site)
{
	if (!site || atomic_fetch_sub_explicit(&site->references, 1, memory_order_acq_rel) != 1)
		return;
	close_all(site);
	g_free(site->scopes);
	g_free(site->hosts);
	g_free(site->reported);
	g_free(site->pools);
	config_release(site->config);
	g_free(site);
}

bool site_open_tls(struct site *site, const struct site_options *options, GPtrArray *errors)
{
	unsigned before = errors->len;

	site_tls_open(site, options, errors);
	return errors->len == before;
}

bool site_open(struct site *site, const struct site *previous, const struct site_options *options,
	       GPtrArray *errors)
{
	const struct config *config = site->config;
	struct file_cache_options content = {.thread_pool = options->thread_pool,
					     .compressor = options->compressor,
					     .max_unit = options->max_unit,
					     .revalidate_ns =
						     (uint64_t)config->revalidate_ms * 1000000u,
					     .pages = (enum page_cache)config->page_cache,
					     .try_now = true,
					     .no_paths = !config->path_cache,
					     .no_heads = !config->header_cache,
					     .no_contents = !config->content_cache};
	unsigned before = errors->len;
	GArray *known;

	(void)site_open_tls(site, options, errors);
	site->number = previous ? previous->number + 1 : 1;
	site->opened_ms = (uint64_t)g_get_real_time() / 1000;
	known = g_array_new(FALSE, FALSE, sizeof(struct known_mime));
	for (unsigned i = 0; i < config->host_count; i++)
		for (unsigned k = 0; k < config->hosts[i].scope_count; k++) {
			const struct scope *scope = &config->hosts[i].scopes[k];

			content.mime = find_mime(known, config, scope);
			open_files(site, scope, previous, content, errors);
			open_auth(site, scope, options->authenticator, errors);
			open_rate(site, scope, errors);
		}
	forget_mimes(known);
	for (unsigned i = 0; i < config->pool_count; i++) {
		char *why = NULL;

		if (!pool_config_check(config->pools[i], &why))
			g_ptr_array_add(
				errors,
				config->pools[i]->place
					? g_strdup_printf("%s: %s", config->pools[i]->place, why)
					: g_strdup(why));
		g_free(why);
	}
	return errors->len == before;
}

void site_check(const struct config *config, GPtrArray *errors)
{
	struct site *site = site_new(config_hold(config));

	(void)site_open(site, NULL, &(struct site_options){0}, errors);
	site_release(site);
}

/* Whether an earlier scope has the same file cache. */
static bool is_counted(const struct site *site, unsigned scope)
{
	for (unsigned i = 0; i < scope; i++)
		if (site->scopes[i].file_cache == site->scopes[scope].file_cache)
			return true;
	return false;
}

void site_stat(const struct site *site, struct file_cache_stat *sum)
{
	for (unsigned i = 0; i < site->config->scope_count; i++)
		if (!is_counted(site, i))
			file_cache_stat(site->scopes[i].file_cache, sum);
}

struct config_ref *config_ref_open(struct site *site)
{
	struct config_ref *ref = g_new0(struct config_ref, 1);

	ref->site = site;
	ref->config = site->config;
	ref->users = 1;
	return ref;
}

void config_ref_free(struct config_ref *ref)
{
	site_release(ref->site);
	g_free(ref);
}

struct gateway_pool *site_pool(const struct config_ref *ref, const struct pool_config *pool)
{
	return ref->site->pools[pool->number];
}
