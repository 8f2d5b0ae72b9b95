/* SPDX-License-Identifier: MIT */
/*
 * config-read.h - reads the command line and the file into a configuration.
 */
#ifndef SWEET_CONFIG_READ_H
#define SWEET_CONFIG_READ_H

#include "config/configuration.h"

/* What the command line asks for besides settings. */
struct config_request {
	bool version; /* print it and end */
	bool check;   /* only look at the configuration */
	char *reload; /* a server that is to reload: its number or its pid-file; g_free */
};

/*
 * Reads argv (which is left as it is) and the file that --config names.  NULL:
 * errors has a line for the operator for each mistake (g_free).  --help prints
 * and ends.
 */
struct config *config_read(int argc, char **argv, struct config_request *request,
			   GPtrArray *errors);

#endif
