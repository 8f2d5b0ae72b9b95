/* SPDX-License-Identifier: MIT */
/*
 * splice.h - the method that moves page references from a segment to a socket.
 */
#ifndef NC_SPLICE_H
#define NC_SPLICE_H

#include "send/method.h"

#define NC_SPLICE_MIN NC_ROUTE_CLASS_MIN /* bytes that make it cheaper than a copy */

extern const struct nc_method nc_splice_method;

#endif
