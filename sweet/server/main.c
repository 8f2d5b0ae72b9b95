/* SPDX-License-Identifier: MIT */
/*
 * main.c - sweet(8): reads the settings, and serves in this process or in several.
 */
#include <glib.h>
#include <nabc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "config/arch.h"
#include "config/config-read.h"
#include "config/configuration.h"
#include "core/site.h"
#include "log/log.h"
#include "process/supervisor.h"
#include "server/check-config.h"
#include "server/prefork.h"
#include "server/server-main.h"
#include "process/privileges.h"
#include "process/reload-call.h"

int main(int argc, char **argv)
{
	GPtrArray *errors = g_ptr_array_new_with_free_func(g_free);
	struct config_request request = {0};
	struct supervisor supervisor;
	const struct config *config;
	bool good;

	supervisor_open(&supervisor);
	config = config_read(argc, argv, &request, errors);
	if (config && request.check && !request.reload) {
		site_check(config, errors);
		check_config(config, errors);
	}
	good = log_error_list(errors);
	if (good && !request.reload && !request.version)
		log_warning_list(config->warnings);
	if (good && request.reload)
		good = reload_call(request.reload);
	else if (good && request.version)
		printf("sweet (nabc) %s\n", PACKAGE_VERSION);
	else if (good && request.check)
		printf("%s: good\n", config->file ? config->file : "settings");
	if (!good || request.reload || request.version || request.check) {
		g_free(request.reload);
		config_release(config);
		supervisor_close(&supervisor);
		return good ? EXIT_SUCCESS : EXIT_FAILURE;
	}
	privileges_raise_limits();
	good = server_main_open(argc, argv, config, &supervisor);
	if (good)
		good = archs[config->arch].processes ? prefork_run(argc, argv, config, &supervisor)
						     : server_main_run();
	server_main_close();
	supervisor_close(&supervisor);
	return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
