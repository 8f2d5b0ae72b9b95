/* SPDX-License-Identifier: MIT */
/*
 * filestream.h - a file without a unit, or ranges of it, window by window: one
 * too large for the cache, or one for which there is no memory in it now.
 *
 * A helper sees to a window while the one before it is being sent.  By default
 * (large-files=sendfile) the windows are the page cache's own pages; the last
 * bytes are read into memory, after the client has acknowledged all others, and
 * sent if the file is still the same.  With large-files=copy every window is
 * read into memory before it is sent.  The cache's memory is not used.
 *
 * The file's version is compared after each window was read: when its bytes may
 * have changed, the answer breaks off.
 */
#ifndef SWEET_FILESTREAM_H
#define SWEET_FILESTREAM_H

#include "core/transaction.h"
#include "files/file-cache.h"

struct spool;

/* Who knows what the answer is to be; called on the transaction's thread. */
struct filestream_owner {
	/* The file has this version by now: chooses again.  False: no body. */
	bool (*renewed)(struct transaction *transaction, const struct file_version *version);
	/* Sets the text in front of transaction->file_response.part. */
	void (*lead)(struct transaction *transaction);
};

/*
 * Begins to read the ranges of transaction->file_response into transaction->body,
 * and takes next() and finish() of the transaction over, and the entry.  The
 * answer comes by done().
 */
enum respond filestream_respond(struct transaction *transaction, struct file_cache *cache,
				struct file_cache_entry *entry,
				const struct filestream_owner *owner);

/*
 * Goes on with an answer that is being sent, from an open file: behind so many
 * bytes of the present range.  Takes fd, next() and finish() over.  done() comes
 * when the next piece is there.
 */
void filestream_go_on(struct transaction *transaction, int fd, const struct file_version *version,
		      uint64_t gone, const struct filestream_owner *owner);

/* The same from a spool, which it takes over too, and a descriptor that reads it. */
void filestream_from_spool(struct transaction *transaction, struct spool *spool, int fd,
			   struct range range);

#endif
