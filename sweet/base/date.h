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

/* Writes exactly DATE_LENGTH bytes, no NUL; clamps to the years 1 to 9999. */
void date_format(time_t when, char *out);

/*
 * Reads any of the three formats that a client may send: IMF-fixdate, RFC 850 and
 * asctime().  Strict: accepts no other characters; the day must exist and have the
 * given name. now decides which century an RFC 850 year of two digits means: the
 * year is at most 50 years ahead of now.
 */
bool date_parse(struct slice text, time_t now, time_t *when);

#endif
