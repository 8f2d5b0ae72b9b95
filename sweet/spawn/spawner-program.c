/* SPDX-License-Identifier: MIT */
/*
 * spawner-program.c - see spawner-program.h.  Runs in the spawner; reads files'
 * attributes, but starts nothing.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "files/docroot.h"
#include "spawn/spawner-program.h"

/* The three parts of a request, within its message. */
struct parts {
	struct spawner_request request;
	char *mount, *script, *block;
};

static bool read_parts(struct parts *parts, char *message, size_t length, unsigned fds)
{
	struct spawner_request *request = &parts->request;

	if (length < sizeof(*request))
		return false;
	memcpy(request, message, sizeof(*request));
	length -= sizeof(*request);
	/* Check each length first: the sum could overflow. */
	if (request->kind != SPAWNER_START || request->mount_length > SPAWNER_PATH_MAX ||
	    request->script_length > SPAWNER_PATH_MAX ||
	    request->block_length > SPAWNER_BLOCK_MAX ||
	    request->mount_length + request->script_length > SPAWNER_PATH_MAX ||
	    length !=
		    (size_t)request->mount_length + request->script_length + request->block_length)
		return false;
	if (request->fds >> SPAWNER_FDS || (unsigned)__builtin_popcount(request->fds) != fds)
		return false;
	parts->mount = message + sizeof(*request);
	parts->script = parts->mount + request->mount_length;
	parts->block = parts->script + request->script_length;
	return true;
}

/* --- variables ---------------------------------------------------------------------- */

/*
 * Only variables that describe a request.  Others could change what runs:
 * variables of the loader, a shell or an interpreter.
 */
bool spawner_variable_is_free(const char *name, size_t length)
{
	static const char *const whole[] = {"AUTH_TYPE",     "CONTENT_LENGTH",	"CONTENT_TYPE",
					    "DOCUMENT_ROOT", "DOCUMENT_URI",	"GATEWAY_INTERFACE",
					    "HTTPS",	     "PATH_INFO",	"PATH_TRANSLATED",
					    "QUERY_STRING",  "REDIRECT_STATUS", "SCRIPT_FILENAME",
					    "SCRIPT_NAME"};
	static const char *const begins[] = {"HTTP_",	 "NABC_",   "REMOTE_",
					     "REQUEST_", "SERVER_", "SSL_"};

	for (size_t i = 0; i < length; i++)
		if (!(name[i] >= 'A' && name[i] <= 'Z') && !(name[i] >= '0' && name[i] <= '9') &&
		    name[i] != '_')
			return false;
	/* Some programs would take this field of the client for the operator's proxy setting. */
	if (length == strlen("HTTP_PROXY") && memcmp(name, "HTTP_PROXY", length) == 0)
		return false;
	for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++)
		if (length == strlen(whole[i]) && memcmp(name, whole[i], length) == 0)
			return true;
	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
		if (length > strlen(begins[i]) && memcmp(name, begins[i], strlen(begins[i])) == 0)
			return true;
	return false;
}

/* Other variables have a value that the operator has configured, or makes from requests. */
static bool is_permitted(const struct spawner_program *program, const char *entry, size_t name)
{
	for (char *const *at = program->permitted; at && *at; at++)
		if (strcmp(*at, entry) == 0 ||
		    (strncmp(*at, entry, name) == 0 && (*at)[name] == '\0'))
			return true;
	return false;
}

/* Returns true if one of the first count variables has the name at the start of entry. */
static bool is_set(char *const *list, size_t count, const char *entry, size_t name_length)
{
	for (size_t i = 0; i < count; i++)
		if (strncmp(list[i], entry, name_length) == 0 && list[i][name_length] == '=')
			return true;
	return false;
}

static bool print(char *to, size_t size, const char *name, const char *one, size_t one_length,
		  const char *between, const char *other, size_t other_length)
{
	int length = snprintf(to, size, "%s%.*s%s%.*s", name, (int)one_length, one, between,
			      (int)other_length, other);

	return length >= 0 && (size_t)length < size;
}

/* Returns the value of a variable in a block that ends with NUL, or NULL. */
static const char *find_variable(const char *at, size_t length, const char *name)
{
	const char *end = at + length;

	for (; at < end; at += strlen(at) + 1)
		if (strncmp(at, name, strlen(name)) == 0)
			return at + strlen(name);
	return NULL;
}

/* Maps the path after the script to a file's path (RFC 3875, section 4.1.6). */
static bool translate(struct spawner_launch *launch, const char *block, size_t length)
{
	const char *path = launch->path_info + strlen("PATH_INFO=");
	const char *root = find_variable(block, length, "DOCUMENT_ROOT=");

	return root && *path &&
	       print(launch->path_translated, sizeof(launch->path_translated),
		     "PATH_TRANSLATED=", root, strlen(root), "", path, strlen(path));
}

/* Adds the operator's variables, then those about the script, then the request's. */
static int read_variables(struct spawner_launch *launch, char *at, size_t length)
{
	char *const *base = launch->program->variables, *end = at + length;
	size_t count = 0, first;
	bool left_out = false;

	if (length > 0 && end[-1] != '\0')
		return -EBADMSG;
	while (base && base[count] && count < SPAWNER_VARIABLES_MAX) {
		launch->all[count] = base[count];
		count++;
	}
	if (!launch->program->path) {
		launch->all[count++] = launch->script_name;
		launch->all[count++] = launch->script_filename;
		launch->all[count++] = launch->path_info;
		/* Never the request's value, in which the script is a part of the path. */
		strcpy(launch->path_translated, "PATH_TRANSLATED=");
		launch->all[count++] = launch->path_translated;
		left_out = !translate(launch, at, length);
	}
	first = count;
	while (at < end) {
		const char *equals = strchr(at, '=');
		size_t name_length = equals ? (size_t)(equals - at) : 0;

		if (name_length == 0 || (!spawner_variable_is_free(at, name_length) &&
					 !is_permitted(launch->program, at, name_length)))
			return -EPERM;
		if (!is_set(launch->all, first, at, name_length)) {
			if (count >= SPAWNER_VARIABLES_MAX)
				return -E2BIG;
			launch->all[count++] = at;
		}
		at += strlen(at) + 1;
	}
	if (left_out)
		launch->all[first - 1] = launch->all[--count];
	launch->all[count] = NULL;
	launch->variables = launch->all;
	return 0;
}

/* --- scripts -------------------------------------------------------------------------- */

/*
 * The first file along the path is the script; the rest is its PATH_INFO.  Hidden
 * names and ".." are refused.
 */
static int find_script(struct docroot root, const char *path, size_t length, size_t *script_length)
{
	char so_far[PATH_MAX];
	size_t at = 0;

	for (;;) {
		const char *slash = memchr(path + at, '/', length - at);
		size_t end = slash ? (size_t)(slash - path) : length;
		struct file_version version;
		bool folder;
		int error;

		if (end == at || path[at] == '.')
			return -ENOENT;
		if (end >= sizeof(so_far))
			return -ENAMETOOLONG;
		memcpy(so_far, path, end);
		so_far[end] = '\0';
		error = docroot_look(root, so_far, &folder, &version);
		if (error)
			return error == -ENOTDIR ? -ENOENT : error;
		if (!folder) {
			*script_length = end;
			return 0;
		}
		if (end == length)
			return -EISDIR;
		at = end + 1;
	}
}

static int read_script(struct spawner_launch *launch, const struct parts *parts)
{
	const char *folder = launch->program->folder, *script = parts->script;
	size_t length = parts->request.script_length, own, folder_length = strlen(folder);
	const char *slash;
	struct docroot root = {.symlinks = launch->program->symlinks};
	int error;

	if (memchr(parts->mount, '\0', parts->request.mount_length) || memchr(script, '\0', length))
		return -EBADMSG;
	/* Opened each time: the folder may have been replaced. */
	root.fd = docroot_open(folder);
	if (root.fd < 0)
		return root.fd;
	error = find_script(root, script, length, &own);
	close(root.fd);
	if (error)
		return error;
	if (!print(launch->file, sizeof(launch->file), "", folder, folder_length, "/", script,
		   own) ||
	    !print(launch->script_filename, sizeof(launch->script_filename),
		   "SCRIPT_FILENAME=", folder, folder_length, "/", script, own))
		return -ENAMETOOLONG;
	(void)print(launch->script_name, sizeof(launch->script_name), "SCRIPT_NAME=", parts->mount,
		    parts->request.mount_length, "/", script, own);
	(void)print(launch->path_info, sizeof(launch->path_info), "PATH_INFO=", script + own,
		    length - own, "", "", 0);
	slash = strrchr(launch->file, '/');
	(void)print(launch->folder, sizeof(launch->folder), "", launch->file,
		    (size_t)(slash - launch->file), "", "", 0);
	launch->script_length = own;
	launch->path = launch->own_argv[0] = launch->file;
	launch->own_argv[1] = NULL;
	launch->argv = launch->own_argv;
	launch->directory = launch->folder;
	return 0;
}

int spawner_launch_read(struct spawner_launch *launch, const struct spawner_program *programs,
			unsigned count, char *message, size_t length, unsigned fds)
{
	struct parts parts;
	int error;

	if (!read_parts(&parts, message, length, fds) || parts.request.program >= count)
		return -EBADMSG;
	launch->program = &programs[parts.request.program];
	launch->script_length = 0;
	if (launch->program->path) {
		launch->path = launch->program->path;
		launch->argv = launch->program->argv;
		launch->directory = "/";
		if (parts.request.mount_length || parts.request.script_length)
			return -EBADMSG;
	} else {
		error = read_script(launch, &parts);
		if (error)
			return error;
	}
	if (launch->program->directory)
		launch->directory = launch->program->directory;
	return read_variables(launch, parts.block, parts.request.block_length);
}
