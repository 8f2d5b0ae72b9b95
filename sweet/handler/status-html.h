/* SPDX-License-Identifier: MIT */
/*
 * status-html.h - the bytes of status.html; the build makes status-html.c.
 */
#ifndef SWEET_STATUS_HTML_H
#define SWEET_STATUS_HTML_H

#include <stddef.h>

extern const unsigned char status_html[];
extern const size_t status_html_length;

#endif
