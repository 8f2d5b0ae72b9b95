/* SPDX-License-Identifier: MIT */
/*
 * date.h - the dates of HTTP (RFC 9110, section 5.6.7), without locale or locks.
 */
#ifndef SWEET_DATE_H
#define SWEET_DATE_H

#include <stdbool.h>
#include <time.h>

#include "base/slice.h"

#define DATE_LENGTH 29 /* "Sun, 06 Nov 1994 08:49:37 GMT" */

/* Writes exactly DATE_LENGTH bytes, no NUL; years 1 to 9999, others clamped. */
void date_format(time_t when, char *out);

/*
 * Reads any of the three forms that a client may send: IMF-fixdate, that of
 * RFC 850, and asctime()'s.  Strict: nothing before, between or behind, the day
 * exists and has that name.  now decides which century the two digits of an
 * RFC 850 year mean: none that lies more than 50 years ahead.
 */
bool date_parse(struct slice text, time_t now, time_t *when);

#endif
