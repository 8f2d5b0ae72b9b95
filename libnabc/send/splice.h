/* SPDX-License-Identifier: MIT */
/* splice.h - the method that passes page references from a segment to a socket. */
#ifndef NC_SPLICE_H
#define NC_SPLICE_H

#include "send/method.h"
#include "send/route.h"

#define NC_SPLICE_MIN NC_ROUTE_CLASS_MIN /* bytes from which it may pay */

extern const struct nc_method nc_splice_method;

#endif
