/* SPDX-License-Identifier: MIT */
/*
 * status-page.h - the status as a page for people.  It is status.html, which
 * the build makes a constant of.
 */
#ifndef SWEET_STATUS_PAGE_H
#define SWEET_STATUS_PAGE_H

#include <glib.h>

/* The bytes of status.html, in status-html.c, which the build makes. */
extern const unsigned char status_html[];
extern const size_t status_html_length;

GString *status_page(void);

/*
 * Adds the field that lets the page do what it does and nothing else: its own
 * style and script by their hashes, and questions to its own server.
 */
void status_page_policy(GString *head);

#endif
