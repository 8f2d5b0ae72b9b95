/* SPDX-License-Identifier: MIT */
/*
 * stream.h - a stdio stream over the bytes of a unit that is being filled.
 */
#ifndef NC_STREAM_H
#define NC_STREAM_H

#include <stdio.h>

#include <nabc.h>

/* Returns a new stream for the handle's thread, which must close it; NULL and *error on failure. */
FILE *nc_stream_open(NC_handle *handle, const char *mode, int *error);

#endif
