/* SPDX-License-Identifier: MIT */
/*
 * direct-read.h - reads a file into a unit past the page cache (O_DIRECT), so that
 * the system has no second copy of what the cache holds.
 */
#ifndef SWEET_DIRECT_READ_H
#define SWEET_DIRECT_READ_H

#include <stdbool.h>
#include <stddef.h>

#include <nabc.h>

/*
 * Reads the first size bytes of a file into a unit of contiguous fragments; blocks on
 * the disk.  The descriptor must belong to no other user meanwhile: it gets O_DIRECT
 * and is switched back; its file offset must be 0, and moves.
 *
 * Returns 0, or -errno; direct_read_refused() states what that means.  *done: how many
 * bytes are in the unit.  Fewer than size without an error: a plain read from there
 * finds the reason, usually the end of the file.
 */
int direct_read(int fd, NC_handle *handle, size_t size, size_t *done);

/*
 * Returns true if the error means that the file system, or the memory of the unit,
 * cannot be used with O_DIRECT; then a plain read can succeed.
 */
bool direct_read_refused(int error);

/* Logs that a file could not be read so, and why; only the first one of the process. */
void direct_read_report(const char *path, int error);

#endif
