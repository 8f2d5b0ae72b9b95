/* SPDX-License-Identifier: MIT */
/*
 * site-tls.h - the TLS identities of a configuration's hosts, and their answers to challenges.
 */
#ifndef SWEET_SITE_TLS_H
#define SWEET_SITE_TLS_H

#include <glib.h>

struct site;
struct site_options;

/* Opens them if an address has TLS, with a line in errors (g_free()) for each failure. */
void site_tls_open(struct site *site, const struct site_options *options, GPtrArray *errors);

/* Closes them. */
void site_tls_close(struct site *site);

#endif
