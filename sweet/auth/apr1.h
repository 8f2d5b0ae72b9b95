/* SPDX-License-Identifier: MIT */
/*
 * apr1.h - Apache's own format of password hashes: the default of htpasswd(1),
 * which crypt(3) does not know.
 */
#ifndef SWEET_APR1_H
#define SWEET_APR1_H

#define APR1_MAGIC "$apr1$"
#define APR1_MAX 38 /* bytes with the NUL: magic, 8 of salt, '$', 22 of hash */

/* Hashes with the salt of setting ("$apr1$SALT$..."); out has APR1_MAX bytes. */
void apr1_crypt(const char *password, const char *setting, char *out);

#endif
