/* SPDX-License-Identifier: MIT */
/*
 * status.h - the status of the server, below "/.sweet/":
 *
 *   status         status.html for clients that accept HTML, else status.json
 *   status.html    a page that updates itself regularly
 *   status.json    all values
 *   metrics        the same for Prometheus
 *   ready          whether to send requests to this server; visible to all clients
 */
#ifndef SWEET_STATUS_H
#define SWEET_STATUS_H

#include <stdbool.h>

#include "core/transaction.h"

/* Whether the path is one of these. */
bool status_has(const char *path);

/*
 * Whether the path is one of these and the client may see it; for other clients it is an ordinary
 * path.
 */
bool status_answers(const struct transaction *transaction);

/* Responds to such a request. */
enum respond status_respond(struct transaction *transaction);

#endif
