/* SPDX-License-Identifier: MIT */
/*
 * status.h - what the server says of itself, below "/.sweet/":
 *
 *   status         status.html for who accepts HTML, else status.json
 *   status.html    a page that asks for the next again and again
 *   status.json    all figures
 *   metrics        the same for Prometheus
 *   ready          whether to send requests here; for everybody
 */
#ifndef SWEET_STATUS_H
#define SWEET_STATUS_H

#include "core/transaction.h"

/*
 * Whether the path is one of these and the client may see it; to all others
 * it is a path as any.
 */
bool status_answers(const struct transaction *transaction);

/* When it does. */
enum respond status_respond(struct transaction *transaction);

#endif
