/* SPDX-License-Identifier: MIT */
/*
 * request-escape.h - targets with raw UTF-8, which is not valid in them (RFC 3986) but which some
 * clients send.
 */
#ifndef SWEET_REQUEST_ESCAPE_H
#define SWEET_REQUEST_ESCAPE_H

#include <stddef.h>

#include <glib.h>

/*
 * Returns the head (g_string_free()) with the raw bytes of its target escaped; parse that instead.
 * NULL: the target has none, or is not UTF-8; the head may be anything.
 */
GString *request_escape(const char *head, size_t length);

/* As that, of a head that is a list (request-list.h). */
GString *request_escape_list(const char *list, size_t length);

#endif
