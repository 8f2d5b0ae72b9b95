/* SPDX-License-Identifier: MIT */
/*
 * route-seam.h - the functions of route.h beside route(), for programs that respond by a route() of
 * their own, without programs that lead a request elsewhere.
 */
#ifndef ROUTE_SEAM_H
#define ROUTE_SEAM_H

#include <stdlib.h>

#include "base/slice.h"
#include "core/transaction.h"
#include "handler/route.h"

struct scope;

void route_again(struct transaction *transaction, struct slice head, struct slice target)
{
	(void)transaction;
	(void)head;
	(void)target;
	abort();
}

void route_send_file(struct transaction *transaction, struct slice head, const struct scope *files,
		     const char *path)
{
	(void)transaction;
	(void)head;
	(void)files;
	(void)path;
	abort();
}

enum respond route_proceed(struct transaction *transaction)
{
	(void)transaction;
	abort();
}

#endif
