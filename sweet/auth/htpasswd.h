/* SPDX-License-Identifier: MIT */
/*
 * htpasswd.h - a file of users and password hashes, as htpasswd(1) writes it,
 * and the comparison of a password with such a hash.
 *
 * Lines are USER:HASH, and what follows another colon is not looked at; empty
 * lines and those that begin with '#' are skipped.
 */
#ifndef SWEET_HTPASSWD_H
#define SWEET_HTPASSWD_H

#include <stdbool.h>
#include <stddef.h>

#define HTPASSWD_USER_MAX 127	    /* bytes of a name */
#define HTPASSWD_FILE_MAX (1 << 24) /* bytes */

struct htpasswd;

/*
 * Reads the whole file; constant from then on.  NULL with *why (the caller's,
 * to be freed by g_free()), which begins with FILE:LINE where a line is wrong.
 * May block.
 */
struct htpasswd *htpasswd_read(const char *path, char **why);

/* As htpasswd_read(), of text in memory; name is what messages say. */
struct htpasswd *htpasswd_parse(const char *name, const char *text, size_t length, char **why);

/* Who holds the last reference frees it.  Any thread. */
struct htpasswd *htpasswd_hold(struct htpasswd *file);
void htpasswd_release(struct htpasswd *file);

/* The hash of a user, or NULL.  Good as long as the file. */
const char *htpasswd_find(const struct htpasswd *file, const char *user);

/* Somebody's hash, so that an unknown user costs as much as a known one; NULL: none. */
const char *htpasswd_any(const struct htpasswd *file);

/*
 * 0 when the password has that hash, -EACCES when not, -ENOTSUP when crypt(3)
 * of this system does not know the form.  Slow, as it should be.
 */
int htpasswd_verify(const char *hash, const char *password);

/* As memcmp() == 0, in a time that tells nothing about the bytes. */
bool htpasswd_equal(const void *a, const void *b, size_t length);

#endif
