/* SPDX-License-Identifier: MIT */
/*
 * pool-config.c - see pool-config.h.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <glib.h>

#include "base/address.h"
#include "base/balancer.h"
#include "config/pool-config.h"

#define PRELOAD "LD_PRELOAD="
/* Where it is installed. */
#define FCGI_LIBRARY PKGLIBDIR "/libnabc-fcgi.so"

const char *const pool_protocols[] = {[POOL_WORKER] = "worker",
				      [POOL_FASTCGI] = "fastcgi",
				      [POOL_CGI] = "cgi",
				      [POOL_HTTP] = "http",
				      NULL};

struct pool_config *pool_config_new(const char *name, const char *place, const char *label)
{
	struct pool_config *pool = g_new0(struct pool_config, 1);

	atomic_init(&pool->references, 1);
	pool->name = g_strdup(name);
	pool->place = g_strdup(place);
	pool->label = label ? g_strdup(label) : g_strdup_printf("pool \"%s\"", name);
	return pool;
}

static void free_pool(struct pool_config *pool)
{
	g_free(pool->name);
	g_free(pool->place);
	g_free(pool->label);
	g_free(pool->command);
	g_strfreev(pool->argv);
	g_free(pool->folder);
	g_strfreev(pool->upstream);
	g_free(pool->script_suffix);
	g_free(pool->suffix);
	g_strfreev(pool->hosts);
	g_free(pool->user);
	g_free(pool->group);
	g_free(pool->directory);
	g_strfreev(pool->environment);
	g_free(pool->preload);
	variables_free(&pool->variables);
	g_strfreev(pool->methods);
	g_strfreev(pool->accel);
	g_strfreev(pool->upgrade);
	g_free(pool);
}

/* Only its count changes after it has been read. */
static struct pool_config *counted(const struct pool_config *pool)
{
	return (struct pool_config *)(uintptr_t)pool;
}

const struct pool_config *pool_config_ref(const struct pool_config *pool)
{
	atomic_fetch_add_explicit(&counted(pool)->references, 1, memory_order_relaxed);
	return pool;
}

void pool_config_unref(const struct pool_config *pool)
{
	if (pool &&
	    atomic_fetch_sub_explicit(&counted(pool)->references, 1, memory_order_acq_rel) == 1)
		free_pool(counted(pool));
}

const char *pool_config_withholds(const struct pool_config *pool, const struct variables *variables)
{
	static const char *const names[] = {
		"PATH_INFO=", "PATH_TRANSLATED=", "SCRIPT_FILENAME=", "SCRIPT_NAME="};

	if (pool->protocol != POOL_CGI || !pool->folder || !variables->list)
		return NULL;
	for (char **entry = variables->list; *entry; entry++)
		for (unsigned i = 0; i < G_N_ELEMENTS(names); i++)
			if (g_str_has_prefix(*entry, names[i]))
				return *entry;
	return NULL;
}

bool pool_config_takes(const struct pool_config *pool, struct slice method)
{
	for (char **name = pool->methods; name && *name; name++)
		if (strcmp(*name, "any") == 0 ||
		    slice_equals((struct slice){*name, strlen(*name)}, method))
			return true;
	return false;
}

bool pool_config_has_names(const struct pool_config *pool)
{
	struct host_port name;

	for (char **text = pool->upstream; text && *text; text++)
		if (address_parse_name(*text, &name))
			return true;
	return false;
}

bool pool_config_leads(const struct pool_config *pool)
{
	return pool->accel && g_strv_contains((const char *const *)pool->accel, "internal");
}

bool pool_config_is_other(const struct pool_config *pool)
{
	return pool->user || pool->group || pool->directory || pool->memory_limit || pool->seccomp;
}

#define RESPONSE_HEADER_MOST ((size_t)1 << 20)

static const char *missing_http(const struct pool_config *pool)
{
	if (pool->command || pool->folder)
		return "is of HTTP servers, which have neither command nor folder: start the "
		       "program apart from this server, and set upstream to its address";
	if (!pool->upstream || !pool->upstream[0])
		return "needs an upstream";
	if (pool->variables.list && pool->variables.list[0])
		return "has a variable, which HTTP servers do not get";
	if (pool->trust_cache_ids)
		return "has trust-cache-ids, but responses of HTTP servers cannot name units";
	return NULL;
}

/* Returns what is wrong for the protocol; NULL: nothing. */
static const char *missing(const struct pool_config *pool)
{
	bool has_upstream = pool->upstream && pool->upstream[0];

	if (pool_config_is_other(pool) && has_upstream)
		return "has user, group, directory, memory-limit or seccomp, which are for "
		       "programs that the server starts";
	/* An operator who sets a variable here expects that the application gets it. */
	if (pool->environment && pool->environment[0] && has_upstream)
		return "has environment, which is for programs that the server starts: set it "
		       "where the application at upstream is started";
	if (pool->suffix && pool->protocol != POOL_FASTCGI)
		return "has a suffix, which is for scripts of FastCGI applications";
	if (pool->hosts && pool->hosts[0] && !pool->suffix)
		return "has hosts, which says whose files its suffix is about, but no suffix";
	if (pool->preload && pool->protocol != POOL_WORKER)
		return "has preload, which makes programs workers: set protocol=worker";
	if (pool->preload && strcmp(pool->preload, "fcgi") != 0 &&
	    !g_path_is_absolute(pool->preload))
		return "has a preload that is neither fcgi nor the path of a library";
	if (pool->accel && pool->accel[0] && pool->protocol == POOL_WORKER)
		return "has accel, which is for other programs than workers";
	if (pool->upgrade && pool->upgrade[0] &&
	    (pool->protocol == POOL_WORKER ? !!pool->preload : pool->protocol != POOL_HTTP))
		return "has upgrade, which is for HTTP servers, and workers without preload";
	if (pool_config_withholds(pool, &pool->variables))
		return "has a variable SCRIPT_NAME, SCRIPT_FILENAME, PATH_INFO or "
		       "PATH_TRANSLATED, which the server sets for the programs of a folder";
	if (pool->symlinks && (pool->protocol != POOL_CGI || pool->command))
		return "has symlinks, which is for the folder of CGI programs";
	if (pool->trust_cache_ids && !has_upstream)
		return "has trust-cache-ids, which is for applications at upstream";
	/* Its lines are copied while the event loop waits. */
	if (pool->max_response_header > RESPONSE_HEADER_MOST)
		return "has a max-response-header above 1M";
	switch (pool->protocol) {
	case POOL_HTTP:
		return missing_http(pool);
	case POOL_WORKER:
		return !pool->command ? "needs a command"
		       : pool->folder || has_upstream
			       ? "is of workers, which have neither folder nor upstream"
		       : pool->memory_limit && pool->memory_limit <= pool->memory
			       ? "has a memory-limit that is not above memory, which is a part of "
				 "it"
			       : NULL;
	case POOL_CGI:
		return has_upstream ? "is of CGI programs, which have no upstream"
		       : !pool->folder == !pool->command
			       ? "needs either a folder of programs or the command of one"
			       : NULL;
	default:
		return pool->folder			 ? "is of FastCGI, which has no folder"
		       : !pool->command == !has_upstream ? "needs either upstream or command"
							 : NULL;
	}
}

/* Nothing is looked up: names may become known later. */
static bool check_upstream(const struct pool_config *pool, char **why)
{
	unsigned count = 0;

	for (; pool->upstream && pool->upstream[count]; count++) {
		const char *text = pool->upstream[count];
		struct listen_address address;
		struct host_port name;
		const char *wrong = NULL;

		if (address_parse(text, &address))
			wrong = address.tls ? "servers get requests without TLS" : NULL;
		else if (!address_parse_name(text, &name))
			wrong = "must be ADDRESS:PORT, [ADDRESS]:PORT, NAME:PORT or unix:PATH";
		if (wrong) {
			*why = g_strdup_printf("%s: upstream \"%s\": %s", pool->label, text, wrong);
			return false;
		}
	}
	if (count <= BALANCER_MAX)
		return true;
	*why = g_strdup_printf("%s: upstream has %u addresses: at most %u are possible",
			       pool->label, count, BALANCER_MAX);
	return false;
}

/* Returns the index of a variable in the environment, or that of its end. */
static unsigned find_variable(char *const *environment, const char *name)
{
	unsigned i = 0;

	while (environment && environment[i] && !g_str_has_prefix(environment[i], name))
		i++;
	return i;
}

/* Adds the library before those that the operator, or the server's environment, preloads. */
static void add_preload(struct pool_config *pool)
{
	unsigned at = find_variable(pool->environment, PRELOAD), count = 0;
	const char *others = getenv("LD_PRELOAD");
	char *entry;

	if (strcmp(pool->preload, "fcgi") == 0) {
		g_free(pool->preload);
		pool->preload = g_strdup(FCGI_LIBRARY);
	}
	while (pool->environment && pool->environment[count])
		count++;
	if (at < count)
		others = pool->environment[at] + strlen(PRELOAD);
	entry = g_strconcat(PRELOAD, pool->preload, others && *others ? ":" : NULL, others, NULL);
	if (at < count) {
		g_free(pool->environment[at]);
	} else {
		pool->environment = g_renew(char *, pool->environment, count + 2);
		pool->environment[count + 1] = NULL;
	}
	pool->environment[at] = entry;
}

bool pool_config_finish(struct pool_config *pool, char **why)
{
	const char *wrong = missing(pool);
	GError *error = NULL;

	if (wrong) {
		*why = g_strdup_printf("%s %s", pool->label, wrong);
		return false;
	}
	if (pool->suffix) {
		g_free(pool->script_suffix);
		pool->script_suffix = g_strdup(pool->suffix);
	}
	if (pool->command && !g_shell_parse_argv(pool->command, NULL, &pool->argv, &error)) {
		*why = g_strdup_printf("%s: command: %s", pool->label, error->message);
		g_error_free(error);
		return false;
	}
	for (unsigned i = 0; pool->environment && pool->environment[i]; i++)
		if (!strchr(pool->environment[i], '=') || pool->environment[i][0] == '=') {
			*why = g_strdup_printf("%s: environment \"%s\": must be NAME=VALUE",
					       pool->label, pool->environment[i]);
			return false;
		}
	if (pool->preload)
		add_preload(pool);
	return check_upstream(pool, why);
}

bool pool_config_check(const struct pool_config *pool, char **why)
{
	if (pool->argv) {
		char *program = g_find_program_in_path(pool->argv[0]);

		g_free(program);
		if (!program) {
			*why = g_strdup_printf("%s: no program \"%s\" that can be run", pool->label,
					       pool->argv[0]);
			return false;
		}
	}
	if (pool->preload && access(pool->preload, R_OK) != 0) {
		*why = g_strdup_printf("%s: preload: \"%s\" cannot be read: %s", pool->label,
				       pool->preload, g_strerror(errno));
		return false;
	}
	if (pool->folder && !g_file_test(pool->folder, G_FILE_TEST_IS_DIR)) {
		*why = g_strdup_printf("%s: folder \"%s\": is not a folder", pool->label,
				       pool->folder);
		return false;
	}
	if (pool->directory && !g_file_test(pool->directory, G_FILE_TEST_IS_DIR)) {
		*why = g_strdup_printf("%s: directory \"%s\": is not a folder", pool->label,
				       pool->directory);
		return false;
	}
	return true;
}

static bool same_lists(char **one, char **other)
{
	if (!one || !other)
		return (!one || !*one) && (!other || !*other);
	return g_strv_equal((const char *const *)one, (const char *const *)other);
}

bool pool_config_same_program(const struct pool_config *one, const struct pool_config *other)
{
	return one->protocol == other->protocol && g_strcmp0(one->command, other->command) == 0 &&
	       g_strcmp0(one->folder, other->folder) == 0 && one->symlinks == other->symlinks &&
	       g_strcmp0(one->user, other->user) == 0 && g_strcmp0(one->group, other->group) == 0 &&
	       g_strcmp0(one->directory, other->directory) == 0 &&
	       same_lists(one->environment, other->environment) &&
	       g_strcmp0(one->preload, other->preload) == 0 &&
	       one->memory_limit == other->memory_limit && one->seccomp == other->seccomp;
}

bool pool_config_same(const struct pool_config *one, const struct pool_config *other)
{
	return strcmp(one->name, other->name) == 0 && pool_config_same_program(one, other) &&
	       same_lists(one->upstream, other->upstream) &&
	       g_strcmp0(one->script_suffix, other->script_suffix) == 0 &&
	       g_strcmp0(one->suffix, other->suffix) == 0 &&
	       same_lists(one->variables.list, other->variables.list) &&
	       same_lists(one->methods, other->methods) && same_lists(one->accel, other->accel) &&
	       same_lists(one->upgrade, other->upgrade) && one->upgrade_ms == other->upgrade_ms &&
	       one->tunnels == other->tunnels &&
	       one->tunnels_per_client == other->tunnels_per_client &&
	       one->pass_authorization == other->pass_authorization &&
	       one->processes == other->processes && one->in_flight == other->in_flight &&
	       one->keep_ms == other->keep_ms && one->resolve_ms == other->resolve_ms &&
	       one->trust_cache_ids == other->trust_cache_ids && one->memory == other->memory &&
	       one->max_requests == other->max_requests && one->queue == other->queue &&
	       one->queue_ms == other->queue_ms && one->answer_ms == other->answer_ms &&
	       one->request_buffering == other->request_buffering &&
	       one->response_buffering == other->response_buffering &&
	       one->max_response_header == other->max_response_header &&
	       one->stream_ahead == other->stream_ahead && one->slow_ms == other->slow_ms;
}
