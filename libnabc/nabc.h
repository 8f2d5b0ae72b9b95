/* SPDX-License-Identifier: MIT */
/*
 * nabc.h - Network Aware Data Buffering and Caching.
 *
 * A process fills page-aligned memory once, inserts it into a cache, and from
 * then on everyone names it by a cache id.  See nabc(7) for the whole picture
 * and the manual page of each call for its errors.
 *
 * Calls return -1 (or NULL) and set errno on failure.  All of them may be
 * called from any thread, except that one NC_handle belongs to one thread at
 * a time.  No call here blocks unless its description says so.
 */
#ifndef NABC_H
#define NABC_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A cache of this process, or this process's membership of another's. */
typedef struct NC_cache NC_cache;

/*
 * A unit being filled (paper 002, section 2.2).  The caller owns the memory
 * of the handle itself; what is inside belongs to the library.  NC_alloc()
 * initialises it, NC_free() ends its use.
 */
typedef struct NC_handle {
	uint64_t nc_private[10];
} NC_handle;

/* How a unit's memory is kept; nabc(7) compares the kinds. */
enum NC_kind {
	NC_KIND_AUTO = 0, /* the library chooses by size */
	NC_KIND_RECYCLED, /* short-lived or small: memory used again in place */
	NC_KIND_APPENDED, /* long-lived: written once, reclaimed by segment */
};

/* Options of NC_cache_open(); zero in a field means its default. */
struct NC_cache_options {
	size_t size;	    /* bytes of memory for units; default 256 MiB, at least 1 MiB */
	size_t max_unit;    /* bytes of the largest unit; default and limit: size / 4 */
	size_t member_size; /* bytes of each member's segment; default 16 MiB */
	unsigned flags;	    /* NC_CACHE_* */
};

#define NC_CACHE_NO_URING 0x1u /* never use io_uring */
#define NC_CACHE_NO_HUGE 0x2u  /* never ask for huge pages */

/* What NC_stat() tells of one unit. */
struct NC_stat {
	size_t id;
	size_t size;	/* bytes */
	size_t fraglen; /* bytes */
	size_t fragments;
	enum NC_kind kind;
	unsigned member; /* 0: the owner of the cache */
	unsigned holds;	 /* holds and unfinished sends of this process */
};

/* What NC_cache_stat() tells of a cache; counters since it was opened. */
struct NC_cache_stat {
	uint64_t size;		  /* budget, bytes */
	uint64_t used;		  /* bytes of the owner's segments */
	uint64_t units;		  /* the owner's units that can be named now */
	uint64_t members;	  /* attached now, the owner not counted */
	uint64_t inserts;	  /* by this process */
	uint64_t destroys;	  /* by this process */
	uint64_t evictions;	  /* units dropped to make room */
	uint64_t segments_closed; /* given back to the system */
	uint64_t failures;	  /* allocations refused with ENOMEM */
	uint64_t sends[4];	  /* socksend calls' pieces by NC_METHOD_* */
	uint64_t bytes[4];	  /* and the bytes that they moved */
	uint64_t zerocopy_copied; /* zero-copy sends the kernel copied after all */
	uint64_t stale;		  /* ids refused: ENOENT */
	uint64_t denied;	  /* ids refused: EACCES */
	char uring[96];		  /* "used", or why io_uring is not */
};

enum NC_method { NC_METHOD_COPY, NC_METHOD_SPLICE, NC_METHOD_ZEROCOPY, NC_METHOD_KERNEL };

/* One range of one unit. */
struct NC_range {
	size_t id;     /* cache id */
	size_t offset; /* bytes from the start of the unit */
	size_t length; /* bytes */
};

/* One message for NC_socksendv(): header, then the ranges in order. */
struct NC_send {
	const void *header;   /* may be NULL */
	size_t header_length; /* bytes */
	const struct NC_range *ranges;
	unsigned range_count; /* at most NC_RANGES_MAX */
	unsigned flags;	      /* NC_SEND_* */
	size_t skip;	      /* bytes of the message that earlier calls sent */
};

#define NC_RANGES_MAX 64u
#define NC_SEND_MORE 0x1u     /* more follows soon: leave no partial segment */
#define NC_SEND_CLOSE 0x2u    /* end the stream with the last byte: FIN on the last segment */
#define NC_SEND_DONTWAIT 0x4u /* do not block, whatever the socket's mode */
#define NC_SEND_HELD 0x8u     /* the caller holds every unit: destroyed ones may be sent */

/* --- cache ------------------------------------------------------------- */

NC_cache *NC_cache_open(const struct NC_cache_options *options);
NC_cache *NC_cache_attach(const char *path);
int NC_cache_close(NC_cache *cache);
int NC_cache_stat(NC_cache *cache, struct NC_cache_stat *stat);
int NC_cache_serve(NC_cache *cache, const char *path);
int NC_cache_fd(NC_cache *cache);
int NC_cache_dispatch(NC_cache *cache);

/* --- buffering --------------------------------------------------------- */

int NC_alloc(NC_handle *handle, size_t size, size_t fraglen);
int NC_alloc_kind(NC_handle *handle, size_t size, size_t fraglen, enum NC_kind kind);
int NC_free(NC_handle *handle);
ssize_t NC_read(int fd, NC_handle *handle, size_t handle_offset, size_t len);
ssize_t NC_write(NC_handle *handle, size_t handle_offset, const void *data, size_t len);
int NC_printf(NC_handle *handle, size_t handle_offset, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* --- cache management -------------------------------------------------- */

int NC_insert(NC_handle *handle);
size_t NC_cache_id(const NC_handle *handle);
int NC_destroy(size_t cache_id);
int NC_hold(size_t cache_id);
int NC_release(size_t cache_id);
int NC_stat(size_t cache_id, struct NC_stat *stat);

/* --- network ----------------------------------------------------------- */

ssize_t NC_socksend(int sock_fd, size_t cache_id, size_t offset, size_t len);
ssize_t NC_socksendv(int sock_fd, const struct NC_send *message);

#ifdef __cplusplus
}
#endif

#endif
