/* SPDX-License-Identifier: MIT */
/*
 * pidfile.h - a file with the number of this process, for who wants to send
 * it signals.
 */
#ifndef SWEET_PIDFILE_H
#define SWEET_PIDFILE_H

/* Replaces what an earlier process has left there.  0 or -errno. */
int pidfile_write(const char *path);

/* Only if the number in it is still this process's. */
void pidfile_remove(const char *path);

#endif
