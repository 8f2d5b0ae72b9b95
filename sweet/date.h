/* SPDX-License-Identifier: MIT */
/*
 * date.h - IMF-fixdate (RFC 9110, section 5.6.7), without locale or locks.
 */
#ifndef SWEET_DATE_H
#define SWEET_DATE_H

#include <time.h>

#define DATE_LENGTH 29 /* "Sun, 06 Nov 1994 08:49:37 GMT" */

/* Writes exactly DATE_LENGTH bytes, no NUL; years 1 to 9999, others clamped. */
void date_format(time_t when, char *out);

#endif
