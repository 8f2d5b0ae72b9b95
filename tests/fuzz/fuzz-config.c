/* SPDX-License-Identifier: MIT */
/*
 * fuzz-config.c - the configuration file (sweet/config/config-*.c): the result is a
 * configuration, or readable lines with the errors.
 */
#include <nabc.h>
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "config/config-read.h"
#include "config/configuration.h"

#include "fuzz.h"

static void check_messages(const GPtrArray *errors)
{
	for (unsigned i = 0; i < errors->len; i++) {
		const char *text = errors->pdata[i];

		MUST(*text && g_utf8_validate(text, -1, NULL));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[64], *argv[] = {(char *)"sweet", (char *)"--config", path, NULL};
	GPtrArray *errors = g_ptr_array_new_with_free_func(g_free);
	struct config_request request = {.version = false};
	int fd = memfd_create("config", MFD_CLOEXEC);
	struct config *config;

	MUST(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	config = config_read(3, argv, &request, errors);
	MUST(!config == (errors->len > 0));
	MUST(!request.version && !request.check);
	check_messages(errors);
	if (config)
		config_release(config);
	g_ptr_array_free(errors, TRUE);
	close(fd);
	return 0;
}
