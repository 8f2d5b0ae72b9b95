/* SPDX-License-Identifier: MIT */
/*
 * route.h - leads a request through the phases until it has a response.
 */
#ifndef SWEET_ROUTE_H
#define SWEET_ROUTE_H

#include "base/slice.h"
#include "core/transaction.h"

struct scope;

/* Runs the phases (phase.h) on the transaction, whose request is set. */
enum respond route(struct transaction *transaction);

/* Of struct transaction_owner, for owners whose requests route() leads. */
void route_again(struct transaction *transaction, struct slice head, struct slice target);
void route_send_file(struct transaction *transaction, struct slice head, const struct scope *files,
		     const char *path);
enum respond route_proceed(struct transaction *transaction);

#endif
