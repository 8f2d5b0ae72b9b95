/* SPDX-License-Identifier: MIT */
/*
 * filestream.h - a file too large for one unit, or ranges of it, as a sequence
 * of units.
 *
 * A window of the file is read by a helper while the one before it is being
 * sent, so two windows bound the memory.  The file's version is looked at
 * after each read: when its bytes may have changed, the sequence breaks off.
 */
#ifndef SWEET_FILESTREAM_H
#define SWEET_FILESTREAM_H

#include <content.h>
#include <transaction.h>

/* Who knows what the answer is to be; called on the transaction's thread. */
struct filestream_owner {
	/* The file has this version by now: chooses again.  False: no body. */
	bool (*renewed)(struct transaction *transaction, const struct file_version *version);
	/* Sets the text in front of transaction->selection.part. */
	void (*lead)(struct transaction *transaction);
};

/*
 * Begins to read the ranges of transaction->selection into transaction->body,
 * and takes next() and finish() of the transaction over, and the entry.  The
 * answer comes by done().
 */
enum respond filestream_respond(struct transaction *transaction, struct content *content,
				struct content_entry *entry, const struct filestream_owner *owner);

#endif
