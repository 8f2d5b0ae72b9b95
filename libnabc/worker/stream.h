/* SPDX-License-Identifier: MIT */
/*
 * stream.h - a stdio stream over the bytes of a unit that is being filled.
 */
#ifndef NC_STREAM_H
#define NC_STREAM_H

#include <stdio.h>

#include <nabc.h>

/* A new stream for the handle's thread, which closes it; NULL and *error. */
FILE *nc_stream_open(NC_handle *handle, const char *mode, int *error);

#endif
