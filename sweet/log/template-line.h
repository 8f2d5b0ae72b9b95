/* SPDX-License-Identifier: MIT */
/*
 * template-line.h - a request's line in the access log by a template of the operator.
 */
#ifndef SWEET_TEMPLATE_LINE_H
#define SWEET_TEMPLATE_LINE_H

#include <stddef.h>
#include <stdint.h>

struct access_clock;
struct access_line;
struct log_format;

/* Maximum bytes of a line; the values of a longer one are cut. */
#define TEMPLATE_LINE_MAX 32768

/* Returns the maximum length of the line in bytes. */
size_t template_line_most(const struct log_format *format, const struct access_line *line);

/* Writes the line and its newline; returns the end. now_ns gives the milliseconds. */
char *template_line_write(char *to, const struct log_format *format, const struct access_line *line,
			  const struct access_clock *clock, uint64_t now_ns);

#endif
