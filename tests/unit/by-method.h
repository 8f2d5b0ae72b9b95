/* SPDX-License-Identifier: MIT */
/*
 * by-method.h - reads the counters of a route or cache for a method in a variable.
 */
#ifndef BY_METHOD_H
#define BY_METHOD_H

#include <nabc.h>

#define BY_METHOD(of, method)                                                                      \
	((method) == NC_METHOD_COPY	  ? (of).by_copy                                           \
	 : (method) == NC_METHOD_SPLICE	  ? (of).by_splice                                         \
	 : (method) == NC_METHOD_ZEROCOPY ? (of).by_zerocopy                                       \
					  : (of).by_kernel)

#endif
