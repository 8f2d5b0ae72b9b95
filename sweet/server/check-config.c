/* SPDX-License-Identifier: MIT */
/*
 * check-config.c - see check-config.h.  Reports what a start would report, and also mistakes that
 * do not prevent a start, such as a missing file of media types.  Values that are invalid have been
 * reported, and are missing.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <glib.h>

#include "config/configuration.h"
#include "files/spool.h"
#include "log/span-send.h"
#include "server/check-config.h"
#include "process/privileges.h"

struct checker {
	const struct config *config;
	GPtrArray *errors;
};

/* Puts the position of the key in the file, or NULL, before the text, which is freed. */
static void complain_at(struct checker *checker, const char *place, char *text)
{
	g_ptr_array_add(checker->errors,
			g_strdup_printf("%s%s%s", place ? place : "", place ? ": " : "", text));
	g_free(text);
}

static void complain(struct checker *checker, const char *key, char *text)
{
	complain_at(checker, config_place(checker->config, key), text);
}

/* Checks a file that the server will create or append to; place: of the key. */
static void check_output_at(struct checker *checker, const char *place, const char *key,
			    const char *path)
{
	char *folder;

	if (!path)
		return;
	folder = g_path_get_dirname(path);
	if (g_file_test(path, G_FILE_TEST_IS_DIR))
		complain_at(
			checker, place,
			g_strdup_printf("%s \"%s\": is a folder, but must be a file", key, path));
	else if (!g_file_test(folder, G_FILE_TEST_IS_DIR))
		complain_at(checker, place,
			    g_strdup_printf("%s \"%s\": there is no folder \"%s\" to make it in",
					    key, path, folder));
	g_free(folder);
}

static void check_output(struct checker *checker, const char *key, const char *path)
{
	check_output_at(checker, config_place(checker->config, key), key, path);
}

static void check_log(struct checker *checker, const char *place, const char *key, const char *path)
{
	static const char *const words[] = {"-", "off", "syslog", "journal", NULL};

	if (path && !g_strv_contains(words, path))
		check_output_at(checker, place, key, path);
}

static void check_types(struct checker *checker)
{
	const char *path = checker->config->mime_types;

	/* The default file may be missing: a list is built in. */
	if (path && config_place(checker->config, "mime-types") && access(path, R_OK) < 0)
		complain(checker, "mime-types",
			 g_strdup_printf("mime-types \"%s\": cannot be read: %s", path,
					 g_strerror(errno)));
}

/* As the server may read it: the library that uses it does, later. */
static void check_ca(struct checker *checker)
{
	const char *path = checker->config->collector_ca;

	if (path && access(path, R_OK) < 0)
		complain(checker, "trace-ca",
			 g_strdup_printf("trace-ca \"%s\": cannot be read: %s", path,
					 g_strerror(errno)));
}

static void check_user(struct checker *checker)
{
	struct privileges privileges = {0};
	char *why = NULL;

	if (!privileges_find(&privileges, checker->config->user, checker->config->group, &why))
		complain(checker, g_str_has_prefix(why, "group") ? "group" : "user", why);
	privileges_clear(&privileges);
}

/* Checks as a start would; without a configured directory the server starts in any case. */
static void check_spool(struct checker *checker)
{
	const struct config *config = checker->config;
	struct spools_options options = {.folder = config->spool_directory,
					 .most = config->spool_size,
					 .memory = config->spool_memory,
					 .user = (uid_t)-1,
					 .group = (gid_t)-1};
	struct privileges privileges = {0};
	struct spools *spools;
	char *why = NULL;

	if (!config->spool_directory || !config->spool_size)
		return;
	/* Mistakes in these were reported before. */
	if (privileges_find(&privileges, config->user, config->group, &why) && geteuid() == 0) {
		options.user = privileges.user ? privileges.uid : options.user;
		options.group = privileges.group ? privileges.gid : options.group;
	}
	g_clear_pointer(&why, g_free);
	privileges_clear(&privileges);
	spools = spools_open(&options, &why);
	if (!spools)
		complain(checker, "spool-directory", g_strdup_printf("spool-directory %s", why));
	g_free(why);
	spools_close(spools);
}

void check_config(const struct config *config, GPtrArray *errors)
{
	struct checker checker = {config, errors};

	check_user(&checker);
	check_types(&checker);
	check_ca(&checker);
	for (unsigned i = 0; i < config->log_count; i++)
		check_log(&checker, config->logs[i].place,
			  strcmp(config->logs[i].kind, "slow") == 0 ? "slow-log" : "access-log",
			  config->logs[i].file);
	check_log(&checker, config_place(config, "error-log"), "error-log", config->error_log);
	check_output(&checker, "pid-file", config->pid_file);
	check_output(&checker, "cache-socket", config->cache_socket);
	check_spool(&checker);
}
