/* SPDX-License-Identifier: MIT */
/*
 * trailers.h - trailer fields of a response (RFC 9110, section 6.5).
 */
#ifndef SWEET_TRAILERS_H
#define SWEET_TRAILERS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

/*
 * Copies a program's trailer fields to out: those that response_filter_headers() copies, without
 * fields that must be known before the body, or decide how the response is used.  coded: the body is
 * sent in another coding, so digests of it are left out, too.  Returns the bytes, or -1: a line is
 * malformed, or out is too small.
 */
long trailers_filter(struct slice lines, bool coded, char *out, size_t out_size);

#endif
