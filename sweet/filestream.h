/* SPDX-License-Identifier: MIT */
/*
 * filestream.h - a file too large for one unit, as a sequence of units.
 *
 * A window of the file is read by a helper while the one before it is being
 * sent, so two windows bound the memory.  The file's version is looked at
 * after each read: when it has changed, the sequence breaks off.
 */
#ifndef SWEET_FILESTREAM_H
#define SWEET_FILESTREAM_H

#include <docroot.h>
#include <transaction.h>

/*
 * Begins to read the file of that version into transaction->body, and takes
 * next() and finish() of the transaction over; the answer comes by done().
 */
enum respond filestream_respond(struct transaction *transaction, const char *path,
				const struct file_version *version);

#endif
