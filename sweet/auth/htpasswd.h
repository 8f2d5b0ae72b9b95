/* SPDX-License-Identifier: MIT */
/*
 * htpasswd.h - a file of users and password hashes, as htpasswd(1) writes it, and
 * the verification of a password.
 *
 * Lines are USER:HASH; text after another colon is ignored; empty lines and lines
 * that begin with '#' are skipped.
 */
#ifndef SWEET_HTPASSWD_H
#define SWEET_HTPASSWD_H

#include <stdbool.h>
#include <stddef.h>

#define HTPASSWD_USER_MAX 127	    /* bytes of a name */
#define HTPASSWD_FILE_MAX (1 << 24) /* bytes */

struct htpasswd;

/*
 * Reads the whole file, which is constant from then on.  Returns NULL and *why (to
 * be freed with g_free()) on errors; *why begins with FILE:LINE if a line is wrong.
 * May block.
 */
struct htpasswd *htpasswd_read(const char *path, char **why);

/* As htpasswd_read(), but parses text in memory; name is used in messages. */
struct htpasswd *htpasswd_parse(const char *name, const char *text, size_t length, char **why);

/* The last release frees the file.  Any thread. */
struct htpasswd *htpasswd_hold(struct htpasswd *file);
void htpasswd_release(struct htpasswd *file);

/* Returns the hash of a user, or NULL.  Valid as long as the file. */
const char *htpasswd_find(const struct htpasswd *file, const char *user);

/*
 * Returns the hash of some user, so that an unknown user takes as long as a known
 * one; NULL if there is none.
 */
const char *htpasswd_any(const struct htpasswd *file);

/*
 * Returns 0 if the password matches the hash, -EACCES if not, -ENOTSUP if crypt(3)
 * of this system does not know the format.  Slow by design.
 */
int htpasswd_verify(const char *hash, const char *password);

/* As memcmp() == 0, in a time that does not depend on the bytes. */
bool htpasswd_equal(const void *a, const void *b, size_t length);

#endif
