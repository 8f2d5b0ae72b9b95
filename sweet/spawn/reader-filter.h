/* SPDX-License-Identifier: MIT */
/*
 * reader-filter.h - what is left to a process that only reads files and talks over the sockets that it
 * has.
 */
#ifndef SWEET_READER_FILTER_H
#define SWEET_READER_FILTER_H

/*
 * Keeps the capability to read all files, and those with which base/user-open.h takes the rights of a
 * user for a moment; and refuses all system calls that reading does not need: other processes,
 * programs, new sockets, changes of files and of ids.  A refused call fails with EPERM.  After
 * privileges_seal().  Returns 0 or -errno; where the system has no filters, only the capabilities are
 * dropped.
 */
int reader_filter_enter(void);

#endif
