/* SPDX-License-Identifier: MIT */
/*
 * fuzz-spawner.c - requests of the server to its spawner, which still has the
 * privileges that the server has dropped (sweet/spawn/spawner-program.c): for any
 * request, it only starts programs of the operator, or files in the operator's folder,
 * with no variable that could make them run other code.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "spawn/spawner-program.h"
#include "spawn/spawner-wire.h"

#include "fuzz.h"

static char folder[] = "/tmp/fuzz-spawner-XXXXXX";
static char *const base[] = {(char *)"PATH=/bin", (char *)"HTTP_OWN=operator", NULL};
static char *const arguments[] = {(char *)"true", (char *)"--", NULL};
static const struct spawner_program programs[] = {
	{.path = "/bin/true", .argv = arguments, .variables = base},
	{.folder = folder, .variables = base},
	{.folder = folder, .directory = "/elsewhere"},
};

static const char *const made[] = {"a", "sub/a", "sub/b.cgi", ".hidden"};

static void remove_folder(void)
{
	char path[128];

	for (unsigned i = 0; i < sizeof(made) / sizeof(made[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, made[i]);
		unlink(path);
	}
	snprintf(path, sizeof(path), "%s/sub", folder);
	rmdir(path);
	rmdir(folder);
}

static void make_folder(void)
{
	char path[128];

	MUST(mkdtemp(folder));
	atexit(remove_folder);
	snprintf(path, sizeof(path), "%s/sub", folder);
	MUST(mkdir(path, 0755) == 0);
	for (unsigned i = 0; i < sizeof(made) / sizeof(made[0]); i++) {
		int fd;

		snprintf(path, sizeof(path), "%s/%s", folder, made[i]);
		fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0755);
		MUST(fd >= 0);
		close(fd);
	}
}

static void check_path(const struct spawner_launch *launch)
{
	size_t length = strlen(folder);

	if (launch->program->path) {
		MUST(launch->path == launch->program->path && launch->argv == arguments);
		return;
	}
	MUST(strncmp(launch->path, folder, length) == 0 && launch->path[length] == '/');
	for (unsigned i = 0; i < 3; i++)
		if (strcmp(launch->path + length + 1, made[i]) == 0)
			return;
	MUST(!"it is one of the files");
}

static void check_variables(const struct spawner_launch *launch)
{
	char *const *variables = launch->variables;
	unsigned count = 0;

	for (; variables[count]; count++) {
		MUST(count < SPAWNER_VARIABLES_MAX + 4 && strchr(variables[count], '='));
		/* Variables of the loader or a shell; and those that the operator has set stay. */
		MUST(strncmp(variables[count], "LD_", 3) != 0);
		MUST(strncmp(variables[count], "PATH=", 5) != 0 || variables[count] == base[0]);
		MUST(strncmp(variables[count], "HTTP_OWN=", 9) != 0 ||
		     variables[count] == base[1] || !launch->program->variables);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct spawner_launch launch;
	struct spawner_request request = {.kind = 0};
	char *message = exact_copy(data, size);

	if (!strcmp(folder + strlen(folder) - 6, "XXXXXX"))
		make_folder();
	if (size >= sizeof(request))
		memcpy(&request, data, sizeof(request));
	if (spawner_launch_read(&launch, programs, sizeof(programs) / sizeof(programs[0]), message,
				size, (unsigned)__builtin_popcount(request.fds)) == 0) {
		MUST(request.kind == SPAWNER_START && request.program < 3);
		check_path(&launch);
		check_variables(&launch);
	}
	free(message);
	return 0;
}
