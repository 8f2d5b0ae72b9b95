/* SPDX-License-Identifier: MIT */
/*
 * route.h - which responder answers a request.
 */
#ifndef SWEET_ROUTE_H
#define SWEET_ROUTE_H

#include "core/transaction.h"

/* Hands the transaction, whose request is set, to its responder. */
enum respond route(struct transaction *transaction);

#endif
