/* SPDX-License-Identifier: MIT */
/*
 * spool.h - bytes that wait on disk, not in memory: bodies of requests whose
 * program is not taken yet, answers that slow clients have not read.
 *
 * A spool is a file without a name in the operator's folder; it goes with its
 * last descriptor.  Bytes are appended and read by the helper threads, one
 * operation of a spool after the other in the order in which they were
 * started, so that a read finds what was appended before it.  A spool and its
 * operations are its loop's thread's; struct spools is any thread's.
 *
 * All spools of a server share the bytes of spool-size.  A spool gives its
 * share back when it is closed, not as it is read.
 */
#ifndef SWEET_SPOOL_H
#define SWEET_SPOOL_H

#include <nabc.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "event/thread-pool.h"

struct spools;
struct spool;

struct spools_options {
	const char *folder; /* NULL: see spools_open() */
	uint64_t most;	    /* bytes of all spools together */
	bool memory;	    /* the folder may be in memory: tmpfs, ramfs */
	/* Who makes the files, if root is to become that; (uid_t)-1, (gid_t)-1: as we are. */
	uid_t user;
	gid_t group;
};

struct spools_stat {
	uint64_t most, bytes, files; /* now */
	uint64_t written;	     /* bytes, since the start */
	uint64_t refused;	     /* appends that found no room here or on the disk */
};

/*
 * Opens the folder and tries whether files can be made there.  Without one it
 * is the first that can be used of $CACHE_DIRECTORY (systemd's), SPOOL_FOLDER
 * and /var/tmp.  NULL with a line in *why (g_free).
 */
#define SPOOL_FOLDER "/var/cache/sweet"
struct spools *spools_open(const struct spools_options *options, char **why);

/* The folder's path. */
const char *spools_folder(const struct spools *spools);

/* Before the first spool. */
void spools_start(struct spools *spools, struct thread_pool *thread_pool);

/* Before thread_pool_close(), when no loop runs any more: nothing is written from now on. */
void spools_stop(struct spools *spools);
bool spools_stopped(const struct spools *spools);

/* When nobody has a spool any more, but before what operations hold of the cache has gone. */
void spools_close(struct spools *spools);

void spools_stat(const struct spools *spools, struct spools_stat *stat);

/*
 * Whether so many bytes more leave a quarter of spool-size to others: for what
 * can wait elsewhere, so that the rest is for what cannot.
 */
bool spools_have_room(const struct spools *spools, uint64_t bytes);

/*
 * One operation.  The caller's memory from its start to its drop(), which is
 * called once for each that was started, on the loop's thread, and gives back
 * what iov names and the operation itself; or by spools_close().
 */
struct spool_op {
	const struct iovec *iov; /* of what is written, or read into */
	unsigned count;
	uint64_t offset; /* in the spool; of an append it is set */
	/* All bytes are there: 0; or -errno.  Not called after spool_cancel() or spool_close(). */
	void (*done)(struct spool_op *op, int result);
	void (*drop)(struct spool_op *op);
	/* spool.c's */
	struct spool *spool;
	struct spool_op *next;
	uint64_t length;
	bool append;
	int result;
};

/* NULL: no memory.  The file is made by the first append. */
struct spool *spool_open(struct spools *spools, struct loop *loop);

/*
 * May be NULL.  done() is called for none of its operations any more, drop()
 * for those under way when they have ended.
 */
void spool_close(struct spool *spool);

/*
 * 0, or -errno, and then nothing is called: -EDQUOT spool-size is reached,
 * others as an append before has failed.
 */
int spool_append(struct spool *spool, struct spool_op *op);

/* Bytes that are there, or being appended; 0 or -errno as above. */
int spool_read(struct spool *spool, struct spool_op *op);

/* done() is not called; of an operation that has not ended.  drop() may be, at once. */
void spool_cancel(struct spool_op *op);

/* Bytes that were appended, those under way too. */
uint64_t spool_length(const struct spool *spool);

/* The file, to be read by offsets; -1 before the first append is done.  The spool's. */
int spool_fd(const struct spool *spool);

/*
 * A descriptor that can only be read, with an offset of its own, for a program:
 * the caller's.  -errno.
 */
int spool_reader(const struct spool *spool);

/* A unit of one fragment that is filled from a spool. */
struct spool_unit {
	struct spool_op op; /* must be first: done() gets it */
	void *user;
	struct iovec bytes;
	NC_handle handle; /* not inserted; done() may take it, and sets taken then */
	bool taken;
};

/*
 * Reads length bytes from offset on into a new unit whose fragments are of that
 * many bytes, at least length.  0, and done() follows as spool_read() has it; or
 * -errno.
 */
int spool_unit_read(struct spool *spool, uint64_t offset, size_t length, size_t fragment,
		    void (*done)(struct spool_op *op, int result), void *user);

#endif
