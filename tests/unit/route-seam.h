/* SPDX-License-Identifier: MIT */
/*
 * route-seam.h - the router of route.h, for programs that respond by a route() of their own, without
 * programs that lead a request elsewhere.
 */
#ifndef ROUTE_SEAM_H
#define ROUTE_SEAM_H

#include "core/transaction.h"
#include "handler/route.h"

const struct transaction_router route_router = {0};

#endif
