/* SPDX-License-Identifier: MIT */
/*
 * config-read.h - reads the command line and the file into a configuration.
 */
#ifndef SWEET_CONFIG_READ_H
#define SWEET_CONFIG_READ_H

#include <glib.h>
#include <stdbool.h>

/* What the command line requests beside settings. */
struct config_request {
	bool version; /* print the version and exit */
	bool check;   /* only check the configuration */
	char *reload; /* the pid or pid-file of a server that shall reload; g_free */
};

/*
 * Reads argv (without changing it) and the file that --config names.  Returns NULL
 * and adds a line for each mistake to errors (g_free). --help prints and exits.  With request->check,
 * a configuration with mistakes is returned, too, to check it further: invalid values are missing.
 */
struct config *config_read(int argc, char **argv, struct config_request *request,
			   GPtrArray *errors);

#endif
