/* SPDX-License-Identifier: MIT */
/*
 * route.h - what the server does to a request until a responder answers it.
 */
#ifndef SWEET_ROUTE_H
#define SWEET_ROUTE_H

#include "core/transaction.h"

/* Runs the phases (phase.h) on the transaction, whose request is set. */
enum respond route(struct transaction *transaction);

#endif
