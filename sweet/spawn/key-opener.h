/* SPDX-License-Identifier: MIT */
/*
 * key-opener.h - opens private keys for a server that has dropped the privilege to do so, at each
 * reload.
 *
 * A small process keeps the privilege.  It opens only the files that the configuration names as
 * certificates, keys, authorities and folders of answers to challenges at that moment, which it
 * reads itself: an attacker who controls the server gets nothing else from it.
 */
#ifndef SWEET_KEY_OPENER_H
#define SWEET_KEY_OPENER_H

#include <stdbool.h>

struct key_opener;

/*
 * Forks the process; call it with one thread, before privileges are dropped. argc, argv: as for
 * config_read(), valid as long as the process.  Returns NULL with errno.
 */
struct key_opener *key_opener_open(int argc, char **argv);

/* Ends the process.  May be NULL. */
void key_opener_close(struct key_opener *opener);

/*
 * Makes it read the configuration: call it before the first file of a reload.  Returns 0, or
 * -errno; EINVAL: the configuration is no good.  Blocks; one thread at a time.
 */
int key_opener_begin(struct key_opener *opener);

/*
 * Returns a descriptor to read the file, or -errno; EPERM: the configuration does not name it;
 * EPIPE: the process has ended.  Blocks; one thread at a time.
 */
int key_opener_file(struct key_opener *opener, const char *path);

#endif
