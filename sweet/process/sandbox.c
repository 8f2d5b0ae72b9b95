/* SPDX-License-Identifier: MIT */
/*
 * sandbox.c - see sandbox.h.
 */
#include <fcntl.h>
#include <glib.h>
#include <nabc.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/address.h"
#include "base/user-open.h"
#include "config/configuration.h"
#include "log/log.h"
#include "process/endpoint.h"
#include "process/endpoints.h"
#include "process/privileges.h"
#include "process/sandbox.h"
#include "process/readonly.h"

/* Gives the new user a file that the server opens again later.  Follows no symbolic link. */
static void give_file(const struct privileges *privileges, const char *path)
{
	const int flags = O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	int fd = path && strchr(path, '/') ? user_open(path, flags, 0) : -1;

	if (fd < 0)
		return;
	privileges_give(privileges, fd);
	close(fd);
}

static void add_folder(GPtrArray *folders, const char *file)
{
	if (file)
		g_ptr_array_add(folders, g_path_get_dirname(file));
}

/* Folders, not files: logs are renamed and created again, sockets are removed. */
static GPtrArray *writable(const struct config *config, const struct endpoints *endpoints,
			   const char *spool_folder)
{
	GPtrArray *folders = g_ptr_array_new_with_free_func(g_free);

	add_folder(folders, config->pid_file);
	add_folder(folders, config->cache_socket);
	for (unsigned i = 0; i < config->log_count; i++)
		if (strcmp(config->logs[i].file, "off") != 0 &&
		    strcmp(config->logs[i].file, "-") != 0)
			add_folder(folders, config->logs[i].file);
	if (strchr(config->error_log, '/'))
		add_folder(folders, config->error_log);
	for (unsigned i = 0; i < endpoints->all->len; i++) {
		const struct endpoint *endpoint = endpoints->all->pdata[i];

		if (endpoint->has_file)
			add_folder(folders, address_path(&endpoint->wanted));
	}
	if (spool_folder)
		g_ptr_array_add(folders, g_strdup(spool_folder));
	g_ptr_array_add(folders, NULL);
	return folders;
}

static void enter_readonly(const struct config *config, const struct endpoints *endpoints,
			   const char *spool_folder)
{
	GPtrArray *folders = writable(config, endpoints, spool_folder);
	char how[256];

	if (readonly_enter((const char *const *)folders->pdata, how, sizeof(how)))
		log_notice("the file system is read-only, by %s", how);
	else
		log_warning("the file system cannot be made read-only: %s", how);
	g_ptr_array_free(folders, TRUE);
}

bool sandbox_enter(const struct config *config, const struct privileges *privileges,
		   const struct endpoints *endpoints, const char *spool_folder, char **why)
{
	int error;

	if (privileges->user) {
		for (unsigned i = 0; i < config->log_count; i++)
			give_file(privileges, config->logs[i].file);
		give_file(privileges, config->error_log);
	}
	if (config->read_only)
		enter_readonly(config, endpoints, spool_folder);
	error = privileges_trim();
	if (error)
		log_warning("cannot drop capabilities: %s", strerror(-error));
	if (!privileges_drop(privileges, why))
		return false;
	if (geteuid() == 0)
		log_info("running as root: user=NAME is safer");
	if (privileges->group)
		log_notice("running as user %u, group %u", (unsigned)geteuid(),
			   (unsigned)getegid());
	error = privileges_seal();
	if (error)
		log_warning("programs may gain more privileges than the server has: %s",
			    strerror(-error));
	return true;
}
