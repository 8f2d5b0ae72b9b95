/* SPDX-License-Identifier: MIT */
/*
 * filestream.h - sends a file without a unit, or ranges of it, window by window: a file that is too
 * large for the cache, or for which it has no memory now.
 *
 * A helper thread prepares a window while the one before it is being sent.  By default
 * (large-files=sendfile) windows consist of pages of the page cache; the last bytes are read into
 * memory after the client has acknowledged all others, and are sent if the file is unchanged.  With
 * large-files=copy every window is read into memory before it is sent.  The memory of the cache is
 * not used.
 *
 * The file's version is compared after each window was read: if its bytes may have changed, the
 * response is cut off.
 */
#ifndef SWEET_FILESTREAM_H
#define SWEET_FILESTREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "core/transaction.h"
#include "http/range.h"

struct spool;
struct file_cache;
struct file_cache_entry;
struct file_version;

/* Callbacks of the code that chooses the response; on the transaction's thread. */
struct filestream_owner {
	/* The file has this version now: chooses again.  Returns false if there is no body. */
	bool (*renewed)(struct transaction *transaction, const struct file_version *version);
	/* Sets the text before transaction_file(transaction)->part. */
	void (*lead)(struct transaction *transaction);
};

/*
 * Starts to read the ranges of transaction->file_response into transaction->body; takes over
 * the entry, and sets a table of its own.  The response comes by done().
 */
enum respond filestream_respond(struct transaction *transaction, struct file_cache *cache,
				struct file_cache_entry *entry,
				const struct filestream_owner *owner);

/*
 * Continues a response that is being sent from an open file, after `gone` bytes of the current
 * range.  Takes over fd, path (of the file, below the cache's root; from malloc(), NULL: there was
 * no memory for it), and replaces the responder's table.  Calls done() when the next piece is ready;
 * without memory at once, with the status 0, which ends the connection.
 */
void filestream_go_on(struct transaction *transaction, int fd, char *path,
		      const struct file_version *version, uint64_t gone,
		      const struct filestream_owner *owner);

/* Sends that range of a spool, which it takes over with the descriptor that reads it; done() as above. */
void filestream_from_spool(struct transaction *transaction, struct spool *spool, int fd,
			   struct range range);

#endif
