/* SPDX-License-Identifier: MIT */
/*
 * route.h - leads a request through the phases until it has a response.
 */
#ifndef SWEET_ROUTE_H
#define SWEET_ROUTE_H

#include "core/transaction.h"

/* Runs the phases (phase.h) on the transaction, whose request is set. */
enum respond route(struct transaction *transaction);

/* Of transactions whose requests route() leads. */
extern const struct transaction_router route_router;

#endif
