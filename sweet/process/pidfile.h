/* SPDX-License-Identifier: MIT */
/*
 * pidfile.h - a file with the pid of this process, for programs that send it
 * signals.
 */
#ifndef SWEET_PIDFILE_H
#define SWEET_PIDFILE_H

/* Overwrites the file of an earlier process.  Returns 0 or -errno. */
int pidfile_write(const char *path);

/* Removes the file only if it contains this process's pid. */
void pidfile_remove(const char *path);

#endif
