/* SPDX-License-Identifier: MIT */
/*
 * client-load.h - runs all simulated clients: from the first connection to the last
 * response, or to the end of the time.  One thread.
 */
#ifndef CLIENT_LOAD_H
#define CLIENT_LOAD_H

#include "client-connection.h"

struct workload;

/*
 * Runs the load; ends when its time is over, whatever the server does.  Returns 0, or
 * -errno for errors on this side: ENOMEM, EMFILE. *results must be zeros.
 */
int load_run(const struct settings *settings, struct workload *workload, struct results *results);

#endif
