/* SPDX-License-Identifier: MIT */
/*
 * status-page.h - the status as a page for people: status.html, which the build compiles in.
 */
#ifndef SWEET_STATUS_PAGE_H
#define SWEET_STATUS_PAGE_H

#include <glib.h>
#include <stddef.h>

/* The text of status.html; the build generates status-html.c. */
extern const unsigned char status_html[];
extern const size_t status_html_length;

GString *status_page(void);

/*
 * Adds the Content-Security-Policy field that permits only the page's own style and script, by
 * their hashes, and requests to its own server.
 */
void status_page_policy(GString *head);

#endif
