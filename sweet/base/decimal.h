/* SPDX-License-Identifier: MIT */
/*
 * decimal.h - writes decimal numbers where sprintf() would take longer than the
 * rest of the line.
 */
#ifndef SWEET_DECIMAL_H
#define SWEET_DECIMAL_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define DECIMAL_MAX 20 /* digits of UINT64_MAX */

/* Writes at most DECIMAL_MAX digits, no NUL; returns the end of the digits. */
static inline char *decimal_write(char *to, uint64_t number)
{
	char digits[DECIMAL_MAX], *at = digits + sizeof(digits);
	size_t length;

	do {
		*--at = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	length = (size_t)(digits + sizeof(digits) - at);
	memcpy(to, at, length);
	return to + length;
}

#endif
