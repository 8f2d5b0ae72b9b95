/* SPDX-License-Identifier: MIT */
/*
 * spawn-table.c - see spawn-table.h.
 */
#include <errno.h>
#include <nabc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <glib.h>

#include "base/symlinks.h"
#include "config/configuration.h"
#include "config/pool-config.h"
#include "process/privileges.h"
#include "rules/variable.h"
#include "spawn/spawn-table.h"
#include "process/syscall-filter.h"
#include "spawn/spawner-program.h"
#include "spawn/spawner.h"

struct spawn_table {
	struct spawner *spawner;
	GPtrArray *pools; /* struct pool_config, referenced; the index is the program's number */
	GPtrArray *permitted; /* of each: the variables of requests to it, a list */
};

/* Arguments for spawner_open(), and what they point to. */
struct plan {
	struct spawner_program *programs;
	struct privileges *privileges;
	char ***variables;
	char **paths; /* of a folder or a program */
	GPtrArray *permitted;
	unsigned count;
};

static bool needs_spawner(const struct pool_config *pool)
{
	return pool->protocol == POOL_CGI || (pool->protocol == POOL_FASTCGI && pool->command) ||
	       (pool->protocol == POOL_WORKER && pool_config_is_other(pool));
}

static char **make_variables(const struct pool_config *pool)
{
	char **variables = NULL;
	const char *path = getenv("PATH");

	/* The only variable of the server's environment that programs get. */
	variables = g_environ_setenv(variables, "PATH", path ? path : "/usr/bin:/bin", TRUE);
	for (unsigned i = 0; pool->environment && pool->environment[i]; i++) {
		char **parts = g_strsplit(pool->environment[i], "=", 2);

		variables = g_environ_setenv(variables, parts[0], parts[1], TRUE);
		g_strfreev(parts);
	}
	return variables;
}

/* What a request may set: the variable with its value, or the name if requests make the value. */
static void add_variables(GPtrArray *list, const struct variables *variables)
{
	for (unsigned i = 0; variables->list && variables->list[i]; i++) {
		const char *entry = variables->list[i];
		bool made = variables->values && variables->values[i];
		char *text = made ? g_strndup(entry, strcspn(entry, "=")) : g_strdup(entry);

		if (g_ptr_array_find_with_equal_func(list, text, g_str_equal, NULL))
			g_free(text);
		else
			g_ptr_array_add(list, text);
	}
}

/* Lists the variables that the operator sets for requests to a CGI pool. */
static char **list_variables(const struct config *config, const struct pool_config *pool)
{
	GPtrArray *list = g_ptr_array_new();

	if (pool->protocol == POOL_CGI) {
		add_variables(list, &pool->variables);
		for (unsigned i = 0; i < config->host_count; i++)
			for (unsigned k = 0; k < config->hosts[i].scope_count; k++) {
				const struct scope *scope = &config->hosts[i].scopes[k];

				if (scope_leads(config, &config->hosts[i], scope, pool))
					add_variables(list, &scope->variables);
			}
	}
	g_ptr_array_add(list, NULL);
	return (char **)g_ptr_array_free(list, FALSE);
}

/* Returns the absolute path of a pool's folder or program, or NULL. */
static char *find_path(const struct pool_config *pool)
{
	char *found = pool->command ? g_find_program_in_path(pool->argv[0]) : NULL, *path = NULL;

	if (!pool->command)
		path = g_canonicalize_filename(pool->folder, NULL);
	else if (found)
		path = g_canonicalize_filename(found, NULL);
	g_free(found);
	return path;
}

static bool plan_pool(struct plan *plan, const struct pool_config *pool,
		      const struct privileges *server, char **why)
{
	struct spawner_program *program = &plan->programs[plan->count];
	struct privileges *privileges = &plan->privileges[plan->count];
	char *wrong;

	plan->paths[plan->count] = find_path(pool);
	plan->variables[plan->count] = make_variables(pool);
	*program = (struct spawner_program){.directory = pool->directory,
					    .variables = plan->variables[plan->count],
					    .permitted = plan->permitted->pdata[plan->count],
					    .privileges = server,
					    .memory = pool->memory_limit};
	if (pool->command) {
		program->path = plan->paths[plan->count];
		program->argv = pool->argv;
	} else {
		program->folder = plan->paths[plan->count];
		program->symlinks = (enum symlinks)pool->symlinks;
	}
	plan->count++;
	if (!plan->paths[plan->count - 1]) {
		*why = g_strdup_printf("%s: there is no program \"%s\" that can be run",
				       pool->label, pool->argv[0]);
		return false;
	}
	if (pool->seccomp && !(program->filter = syscall_filter())) {
		*why = g_strdup_printf("%s: seccomp: this system does not support it: %s",
				       pool->label, strerror(errno));
		return false;
	}
	if (!pool->user && !pool->group)
		return true;
	if (!privileges_find(privileges, pool->user, pool->group, &wrong)) {
		*why = g_strdup_printf("%s: %s", pool->label, wrong);
		g_free(wrong);
		return false;
	}
	program->privileges = privileges;
	return true;
}

static void plan_clear(struct plan *plan)
{
	for (unsigned i = 0; i < plan->count; i++) {
		g_strfreev(plan->variables[i]);
		g_free(plan->paths[i]);
		privileges_clear(&plan->privileges[i]);
	}
	g_free(plan->variables);
	g_free(plan->paths);
	g_free(plan->privileges);
	g_free(plan->programs);
}

bool spawn_table_open(struct spawn_table **table, const struct config *config, unsigned threads,
		      const struct privileges *server, char **why)
{
	struct plan plan = {.programs = g_new0(struct spawner_program, config->pool_count),
			    .privileges = g_new0(struct privileges, config->pool_count),
			    .variables = g_new0(char **, config->pool_count),
			    .paths = g_new0(char *, config->pool_count)};
	struct spawn_table *made = g_new0(struct spawn_table, 1);
	bool good = true;

	*table = NULL;
	made->pools = g_ptr_array_new_with_free_func((GDestroyNotify)pool_config_unref);
	plan.permitted = made->permitted =
		g_ptr_array_new_with_free_func((GDestroyNotify)g_strfreev);
	for (unsigned i = 0; i < config->pool_count && good; i++) {
		if (!needs_spawner(config->pools[i]))
			continue;
		g_ptr_array_add(made->pools, (void *)(uintptr_t)pool_config_ref(config->pools[i]));
		g_ptr_array_add(made->permitted, list_variables(config, config->pools[i]));
		good = plan_pool(&plan, config->pools[i], server, why);
	}
	if (good && plan.count) {
		made->spawner = spawner_open(plan.programs, plan.count, threads, why);
		good = made->spawner != NULL;
	}
	plan_clear(&plan);
	if (made->spawner)
		*table = made;
	else
		spawn_table_close(made);
	return good;
}

void spawn_table_close(struct spawn_table *table)
{
	if (!table)
		return;
	spawner_close(table->spawner);
	g_ptr_array_free(table->pools, TRUE);
	g_ptr_array_free(table->permitted, TRUE);
	g_free(table);
}

struct spawner_channel *spawn_table_channel(struct spawn_table *table, unsigned thread)
{
	return spawner_channel(table->spawner, thread);
}

void spawn_table_settle(struct spawn_table *table, unsigned ms)
{
	if (table)
		spawner_settle(spawn_table_channel(table, 0), ms);
}

int spawn_table_attach(struct spawn_table *table, unsigned thread, struct loop *loop)
{
	return spawner_attach(spawn_table_channel(table, thread), loop);
}

int spawn_table_find(const struct spawn_table *table, const struct pool_config *pool)
{
	for (unsigned i = 0; table && i < table->pools->len; i++)
		if (pool_config_same_program(table->pools->pdata[i], pool))
			return (int)i;
	return -1;
}

static const char *find_unknown(char *const *known, char **wanted)
{
	for (unsigned i = 0; wanted[i]; i++)
		if (!spawner_variable_is_free(wanted[i], strcspn(wanted[i], "=")) &&
		    !g_strv_contains((const char *const *)known, wanted[i]))
			return wanted[i];
	return NULL;
}

bool spawn_table_knows_variables(const struct spawn_table *table, const struct config *config,
				 char **why)
{
	bool good = true;

	for (unsigned i = 0; i < config->pool_count && good; i++) {
		int number = spawn_table_find(table, config->pools[i]);
		char **wanted;
		const char *unknown;

		if (number < 0 || config->pools[i]->protocol != POOL_CGI)
			continue;
		wanted = list_variables(config, config->pools[i]);
		unknown = find_unknown(table->permitted->pdata[number], wanted);
		if (unknown)
			*why = g_strdup_printf("%s: variable \"%s\": a reload cannot add or change "
					       "it for CGI programs: restart the server",
					       config->pools[i]->label, unknown);
		good = !unknown;
		g_strfreev(wanted);
	}
	return good;
}
