/* SPDX-License-Identifier: MIT */
/*
 * spool.h - bytes that wait on disk instead of in memory: bodies of requests that
 * wait for a program, and responses that slow clients have not yet received.
 *
 * A spool is a file without a name in the operator's folder; it disappears with its
 * last descriptor.  Helper threads append and read the bytes.  The operations of
 * one spool run one after the other, in the order in which they were started, so a
 * read finds what was appended before it.  A spool and its operations belong to its
 * loop's thread; any thread may use struct spools.
 *
 * All spools of a server share the bytes of spool-size.  A spool releases its share
 * when it is closed, not as it is read.
 */
#ifndef SWEET_SPOOL_H
#define SWEET_SPOOL_H

#include <nabc.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/list.h"
#include "event/client-limit.h"

struct spools;
struct spool;
struct loop;
struct thread_pool;

struct spools_options {
	const char *folder; /* NULL: see spools_open() */
	uint64_t most;	    /* maximum bytes of all spools together */
	bool memory;	    /* the folder may be in memory: tmpfs, ramfs */
	/*
	 * The user that will create the files, if root drops its privileges;
	 * (uid_t)-1, (gid_t)-1: unchanged.
	 */
	uid_t user;
	gid_t group;
};

struct spools_stat {
	uint64_t most, bytes, files; /* now */
	uint64_t written;	     /* bytes since the start */
	uint64_t refused;	     /* appends refused for spool-size or by the disk */
};

/*
 * Opens the folder and checks that files can be created there.  Without
 * options->folder, uses the first usable one of $CACHE_DIRECTORY (systemd's),
 * SPOOL_FOLDER and /var/tmp.  Returns NULL with a line in *why (g_free).
 */
#define SPOOL_FOLDER "/var/cache/sweet"
struct spools *spools_open(const struct spools_options *options, char **why);

/* Returns the folder's path. */
const char *spools_folder(const struct spools *spools);

/* Call it before the first spool_open(). */
void spools_start(struct spools *spools, struct thread_pool *thread_pool);

/*
 * Call it before thread_pool_close(), after all loops have ended: nothing is
 * written from now on.
 */
void spools_stop(struct spools *spools);
bool spools_stopped(const struct spools *spools);

/*
 * Call it when no spool is in use any more (none is if spools_stat() counts no files), but before
 * the units that operations hold are gone.
 */
void spools_close(struct spools *spools);

void spools_stat(const struct spools *spools, struct spools_stat *stat);

/*
 * Returns true if bytes more leave a quarter of spool-size free: for bodies that
 * can wait elsewhere, so that the rest is for those that cannot.
 */
bool spools_have_room(const struct spools *spools, uint64_t bytes);

/*
 * One operation, in the caller's memory from its start until drop(). drop() is
 * called once for each started operation, on the loop's thread or by
 * spools_close(), and must release the memory of iov and the operation itself.
 */
struct spool_op {
	const struct iovec *iov; /* of the data to write, or to read into */
	unsigned count;
	uint64_t offset; /* in the spool; an append sets it */
	/*
	 * Result 0: everything was transferred; or -errno.  Not called after spool_close().
	 */
	void (*done)(struct spool_op *op, int result);
	void (*drop)(struct spool_op *op);
	/* Private to spool.c: */
	struct spool *spool;
	struct list_node node;
	uint64_t length;
	bool append;
	int result;
};

/* client: whose bytes they are.  Returns NULL without memory.  The first append creates the file. */
struct spool *spool_open(struct spools *spools, struct loop *loop, struct client_address client);

/*
 * Closes the spool; may be NULL.  After this, done() is not called for any of its
 * operations; drop() is called for a running one when it ends.
 */
void spool_close(struct spool *spool);

/*
 * Returns 0, or -errno without any callback: -EDQUOT: spool-size is reached;
 * others: an earlier append failed.
 */
int spool_append(struct spool *spool, struct spool_op *op);

/* Reads bytes that were appended, or are queued; returns 0 or -errno as above. */
int spool_read(struct spool *spool, struct spool_op *op);

/* Returns the bytes that were appended, including queued ones. */
uint64_t spool_length(const struct spool *spool);

/*
 * Returns a read-only descriptor with its own offset, for a program; the caller
 * owns it.  Or -errno.
 */
int spool_reader(const struct spool *spool);

/* A unit of one fragment, filled from a spool. */
struct spool_unit {
	struct spool_op op;
	void *user;
	struct iovec bytes;
	NC_handle handle; /* not inserted; done() may take it, and then sets taken */
	bool taken;
};

/*
 * Reads length bytes from offset into a new unit whose fragments have fragment
 * bytes, at least length.  Returns 0, and done() follows as for spool_read(); or
 * -errno.
 */
int spool_unit_read(struct spool *spool, uint64_t offset, size_t length, size_t fragment,
		    void (*done)(struct spool_op *op, int result), void *user);

#endif
