/* SPDX-License-Identifier: MIT */
/*
 * client-load.h - all simulated clients at work: from the first connection to
 * the last answer, or to the end of the time.  One thread.
 */
#ifndef CLIENT_LOAD_H
#define CLIENT_LOAD_H

#include "client-connection.h"

/*
 * Runs the load; ends when its time is over, whatever the server does.  0, or
 * -errno for what is wrong on this side: ENOMEM, EMFILE.  *results is to be zeros.
 */
int load_run(const struct settings *settings, struct workload *workload, struct results *results);

#endif
