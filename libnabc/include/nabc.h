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
#include <stdio.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A cache of this process, or this process's membership of another's.  A
 * process may have several; the first one is its default, which is meant by
 * NULL and by the calls that name no cache.
 */
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
	NC_KIND_SEALED,	  /* a segment of its own, sealed at insert: may outlive its maker */
	NC_KIND_KERNEL,	  /* in the kernel module, if it has room; else as the library chooses */

	/* With one of these: no checksums are kept, for what is sent once. */
	NC_KIND_UNSUMMED = 0x100,
};

/*
 * Told, once each, what is slower than it could be or has run out, and what to
 * raise.  priority: of syslog(3).  Called from within any call of the library,
 * by any thread; must not call the library.
 */
typedef void (*NC_log)(void *context, int priority, const char *message);

/* Which units go first when memory is short. */
enum NC_policy {
	NC_POLICY_DEFAULT = 0, /* GDSF */
	NC_POLICY_SIEVE,       /* the oldest that was not used for a round */
	NC_POLICY_LRU,	       /* what was used longest ago */
	NC_POLICY_GDSF,	       /* the least used by size, ageing */
};

/* What is computed over a unit's bytes; NC_checksum() defines the values. */
enum NC_checksum_kind {
	NC_CHECKSUM_DEFAULT = 0, /* that which the cache keeps of each fragment */
	NC_CHECKSUM_INET,	 /* 16-bit ones' complement sum, RFC 1071 */
	NC_CHECKSUM_CRC32C,	 /* CRC with the Castagnoli polynomial, as in RFC 3720 */
};

/* How much a unit should stay when memory is short. */
enum NC_priority {
	NC_PRIORITY_LOW, /* goes before all others */
	NC_PRIORITY_NORMAL,
	NC_PRIORITY_HIGH,   /* goes when nothing else may */
	NC_PRIORITY_PINNED, /* never goes; may be moved within memory */
};

/* Options of NC_cache_open(); zero in a field means its default. */
struct NC_cache_options {
	size_t size;	    /* bytes of memory for units; default 256 MiB, at least 1 MiB */
	size_t max_unit;    /* bytes of the largest unit; default and limit: size / 4 */
	size_t member_size; /* bytes of each member's segment; default 16 MiB */
	unsigned flags;	    /* NC_CACHE_* */
	size_t member_quota; /* bytes that a member's sealed units may take; default 4 * member_size */
	NC_log log;	     /* may be NULL */
	void *log_context;
	enum NC_checksum_kind checksum; /* kept of each fragment; default NC_CHECKSUM_INET */
	/*
	 * Bytes that may wait unsent in a TCP socket (TCP_NOTSENT_LOWAT) once a
	 * message of 128 KiB or more was spliced to it, unless the program has
	 * bounded them itself; default 16 KiB if the peer has the socket's own
	 * address, so that all stays on this machine, else 1 MiB; less than 128 KiB on
	 * non-blocking sockets only; SIZE_MAX: sockets stay as they are.
	 */
	size_t unsent_limit;
	enum NC_policy policy;
	unsigned high_water;  /* percent of size above which room is made ahead; default 95 */
	unsigned low_water;   /* percent of size at which that ends; default 90 */
	unsigned clean_limit; /* percent of a segment that cleaning may copy; default 50 */
	size_t scrub_rate;    /* bytes verified a second; 0: none */
	/*
	 * Milliseconds for which a sealed unit stands after the process that made
	 * it is gone, unless it has a lifetime of its own; default a minute.
	 */
	uint64_t orphan_lifetime;
	/*
	 * File descriptors that the owner's segments may use, at least 4; default a
	 * quarter of RLIMIT_NOFILE, as it is when the cache is opened.
	 */
	unsigned max_descriptors;
};

#define NC_CACHE_NO_URING 0x1u	      /* never use io_uring */
#define NC_CACHE_NO_HUGE 0x2u	      /* never ask for huge pages */
#define NC_CACHE_NO_THREAD 0x4u	      /* no collector thread: the caller dispatches */
#define NC_CACHE_PROTECT 0x8u	      /* for debugging: inserted memory is unwritable */
#define NC_CACHE_NO_KERNEL 0x10u      /* never use the kernel module, /dev/nabc */
#define NC_CACHE_MEMBERS_THREAD 0x20u /* a thread of the library's serves the members */

/* Whom NC_grant() gives leave; the number that goes with it. */
enum NC_principal {
	NC_PROCESS = 1, /* a pid */
	NC_PROCESS_FD,	/* a process by its pidfd */
	NC_USER,	/* a uid: every process that runs as this user */
	NC_GROUP,	/* a gid: the same of a group, supplementary ones counted */
	NC_PEER, /* for NC_access(): a Unix socket, the process that listens at its other end */
};

/* Options of NC_cache_serve_as(); zero in a field means its default. */
struct NC_serve_options {
	mode_t mode;	    /* permissions of the socket; default 0600 */
	unsigned flags;	    /* NC_SERVE_* */
	gid_t group;	    /* of the socket, with NC_SERVE_GROUP */
	const uid_t *users; /* who may join beside the owner's user and root */
	unsigned user_count;
};

#define NC_SERVE_GROUP 0x1u /* group is given */

/* Options of NC_cache_attach_as(). */
struct NC_attach_options {
	unsigned flags; /* NC_ATTACH_* */
	NC_log log;	/* may be NULL */
	void *log_context;
};

#define NC_ATTACH_LIGHT 0x1u	/* no segment: sealed units alone */
#define NC_ATTACH_OPERATOR 0x2u /* to look after the whole cache; light */

/* What NC_stat() tells of one unit. */
struct NC_stat {
	size_t id;
	size_t size;	/* bytes */
	size_t fraglen; /* bytes */
	size_t fragments;
	enum NC_kind kind;
	unsigned member; /* 0: the owner of the cache */
	unsigned holds;	 /* holds and unfinished sends of this process */
	pid_t session;	 /* of the process that made it as a member; 0 in lists */
	uint64_t since;	 /* CLOCK_BOOTTIME, ns: when that process attached; 0 with session */
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
	uint64_t sends_partial;	  /* calls that the socket took a part of */
	uint64_t sends_full;	  /* calls that it took nothing of: EAGAIN */
	uint64_t sends_failed;	  /* calls that met another error of the socket */
	/* Messages of which large pieces were not spliced: */
	uint64_t splice_sigpipe;  /* SIGPIPE is not ignored */
	uint64_t splice_dontwait; /* NC_SEND_DONTWAIT */
	uint64_t splice_refused;  /* by the socket: EINVAL, EOPNOTSUPP */
	uint64_t splice_learnt;	  /* the route's sockets take little at a time */
	/* Messages of which large pieces were not sent without a copy, or not all: */
	uint64_t zerocopy_memory;  /* ENOMEM, ENOBUFS: RLIMIT_MEMLOCK, net.core.optmem_max */
	uint64_t zerocopy_refused; /* by the socket: EOPNOTSUPP and others */
	uint64_t zerocopy_full;	   /* the socket was full */
	uint64_t zerocopy_learnt;  /* the kernel copies on the route, or it takes little */
	uint64_t zerocopy_kept;	   /* not a refusal: sends without any copy */
	uint64_t hits;		   /* ids that were found: holds, sends and the like */
	uint64_t pinned;	   /* the owner's units that never go */
	uint64_t expired;	   /* units whose lifetime was over */
	uint64_t cleaned;	   /* segments cleaned */
	uint64_t copied_units;	   /* that cleaning moved on */
	uint64_t copied_bytes;	   /* and their memory */
	uint64_t scrubbed;	   /* bytes verified in the background */
	uint64_t corrupt;	   /* units dropped because their bytes had changed */
	uint64_t failures_table;   /* of failures: no slot in the table of units */
	uint64_t failures_system;  /* allocations that the system refused: descriptors, mappings */
	uint64_t copies_avoided;   /* of sends: spliced, or zero-copy and not copied after all */
	uint64_t kernel_refused; /* messages: units of the module that their sockets did not take */
	uint64_t kernel_memory;	 /* allocations that the module had no room for */
	uint64_t kernel_copies;	 /* units of the module that had to be copied to memory */
	uint64_t kernel_copied_bytes; /* and their bytes */
	char kernel[96];	      /* "used", or why /dev/nabc is not */
};

enum NC_method { NC_METHOD_COPY, NC_METHOD_SPLICE, NC_METHOD_ZEROCOPY, NC_METHOD_KERNEL };

#define NC_ROUTE_LEARN (-1) /* instead of a method: the library chooses */

/*
 * What NC_routes() tells of one route: a local address, and whether the peers
 * have the same one.  Small messages are counted by one in 64, for all 64.
 */
struct NC_route {
	char address[48];	  /* local address as text; "unix" */
	unsigned char octets[16]; /* and in network order, IPv4 in the first 4 */
	int family;		  /* AF_INET, AF_INET6, AF_UNIX */
	int local;		  /* 1: what is sent does not leave this machine */
	int method;		  /* fixed: NC_METHOD_*; else NC_ROUTE_LEARN */
	enum NC_method recycled;  /* how large pieces go now: of recycled units */
	enum NC_method lasting;	  /* of all other kinds */
	uint64_t sends[4];	  /* pieces, by NC_METHOD_* */
	uint64_t bytes[4];	  /* of units in them */
	uint64_t partial;	  /* pieces that sockets did not take whole */
	uint64_t kept;		  /* zero-copy sends without any copy */
	uint64_t copied;	  /* zero-copy sends the kernel copied after all */
	char why[96];		  /* of the choice, for people */
};

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

/* One message for NC_sendfile(): header, then a range of a file. */
struct NC_sendfile {
	size_t size;	      /* of this struct; NC_SENDFILE_INIT sets it */
	const void *header;   /* may be NULL */
	size_t header_length; /* bytes */
	int file;	      /* descriptor that can be read */
	uint64_t offset;      /* bytes from the start of the file */
	size_t length;	      /* bytes */
	unsigned flags;	      /* NC_SEND_MORE, _CLOSE, _DONTWAIT */
	size_t skip;	      /* bytes of the message that earlier calls sent */
};

/* Initialises a struct NC_sendfile: no header, no bytes. */
#define NC_SENDFILE_INIT                                                                           \
	{                                                                                          \
		sizeof(struct NC_sendfile), NULL, 0, -1, 0, 0, 0, 0                                \
	}

#define NC_RANGES_MAX 64u
#define NC_SEND_MORE 0x1u     /* more follows soon: leave no partial segment */
#define NC_SEND_CLOSE 0x2u    /* end the stream with the last byte: FIN on the last segment */
#define NC_SEND_DONTWAIT 0x4u /* do not block, whatever the socket's mode */
#define NC_SEND_HELD 0x8u     /* the caller holds every unit: destroyed ones may be sent */
#define NC_SEND_COPY 0x10u    /* lend no pages to the socket: copy */

/* --- cache ------------------------------------------------------------- */

NC_cache *NC_cache_open(const struct NC_cache_options *options);
NC_cache *NC_cache_attach(const char *path);
NC_cache *NC_cache_attach_as(const char *path, const struct NC_attach_options *options);
int NC_cache_close(NC_cache *cache);
int NC_cache_stat(NC_cache *cache, struct NC_cache_stat *stat);
int NC_cache_serve(NC_cache *cache, const char *path);
int NC_cache_serve_as(NC_cache *cache, const char *path, const struct NC_serve_options *options);
int NC_cache_fd(NC_cache *cache);
int NC_cache_dispatch(NC_cache *cache);

/* --- buffering --------------------------------------------------------- */

int NC_alloc(NC_handle *handle, size_t size, size_t fraglen);
int NC_alloc_kind(NC_handle *handle, size_t size, size_t fraglen, enum NC_kind kind);
int NC_alloc_in(NC_cache *cache, NC_handle *handle, size_t size, size_t fraglen, enum NC_kind kind);
int NC_free(NC_handle *handle);
ssize_t NC_read_in(NC_cache *cache, int fd, NC_handle *handle, size_t handle_offset, size_t len);
ssize_t NC_read(int fd, NC_handle *handle, size_t handle_offset, size_t len);
ssize_t NC_write(NC_handle *handle, size_t handle_offset, const void *data, size_t len);
int NC_printf(NC_handle *handle, size_t handle_offset, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* A fragment's memory, in place of NC_write(): good until NC_insert() or NC_free(). */
void *NC_fragment(NC_handle *handle, size_t index, size_t *length);
/* The caller closes it, before NC_insert(): that does not flush it, nor does fclose() insert. */
FILE *NC_stream(NC_handle *handle, const char *mode);

/* --- cache management -------------------------------------------------- */

int NC_insert(NC_handle *handle);
size_t NC_cache_id(const NC_handle *handle);
int NC_destroy(size_t cache_id);
int NC_hold(size_t cache_id);
int NC_release(size_t cache_id);
int NC_stat(size_t cache_id, struct NC_stat *stat);
/* Of len bytes from offset on; a range outside of the unit is ERANGE. */
int NC_checksum(NC_cache *cache, size_t cache_id, enum NC_checksum_kind kind, size_t offset,
		size_t len, uint32_t *value);
/* Compares the bytes with the sums of insert: 0, or -1 and EBADMSG; ENODATA: none are kept. */
int NC_verify(NC_cache *cache, size_t cache_id);

int NC_set_priority(NC_cache *cache, size_t cache_id, enum NC_priority priority);
int NC_set_lifetime(NC_cache *cache, size_t cache_id, uint64_t milliseconds);

int NC_insert_in(NC_cache *cache, NC_handle *handle);
int NC_destroy_in(NC_cache *cache, size_t cache_id);
int NC_hold_in(NC_cache *cache, size_t cache_id);
int NC_release_in(NC_cache *cache, size_t cache_id);
int NC_stat_in(NC_cache *cache, size_t cache_id, struct NC_stat *stat);

int NC_list(NC_cache *cache, size_t *cursor, struct NC_stat *units, unsigned count);
ssize_t NC_pread(NC_cache *cache, size_t cache_id, void *data, size_t len, size_t offset);
const void *NC_data(NC_cache *cache, size_t cache_id, size_t offset, size_t *run);

/* --- what is kept under names ------------------------------------------- */

#define NC_PURGE_MAX 8192u /* bytes of a name */

/*
 * What an owner does when it is told to forget what it keeps under a name: the
 * number of things that it forgot, or -errno.  May be called by any thread, at
 * any time; must not block, nor call these two or NC_cache_close().
 */
typedef int (*NC_purger)(void *context, const char *name);

/* The owner's; NULL: none.  When it returns, the one before is not called any more. */
int NC_cache_on_purge(NC_cache *cache, NC_purger purger, void *context);

/* By the owner, or an operator, who waits for the owner. */
int NC_purge(NC_cache *cache, const char *name);

/* --- who may use a unit ------------------------------------------------- */

int NC_grant(NC_cache *cache, size_t cache_id, enum NC_principal principal, uint32_t who);
int NC_revoke(NC_cache *cache, size_t cache_id, enum NC_principal principal, uint32_t who);
/* The owner's: whether a process (NC_PROCESS, NC_PROCESS_FD, NC_PEER) made a unit or has leave. */
int NC_access(NC_cache *cache, size_t cache_id, enum NC_principal principal, uint32_t who);

/* --- network ----------------------------------------------------------- */

ssize_t NC_socksend(int sock_fd, size_t cache_id, size_t offset, size_t len);
ssize_t NC_socksend_in(NC_cache *cache, int sock_fd, size_t cache_id, size_t offset, size_t len);
ssize_t NC_socksendv(int sock_fd, const struct NC_send *message);
ssize_t NC_socksendv_in(NC_cache *cache, int sock_fd, const struct NC_send *message);

/* In cache (NULL: the default) are the routes and the bound of unsent bytes that hold for it. */
ssize_t NC_sendfile(NC_cache *cache, int sock_fd, const struct NC_sendfile *message);

/* Writes at most count routes; returns how many there are. */
int NC_routes(NC_cache *cache, struct NC_route *routes, unsigned count);

/* address: a local one as text, "unix", or "*" for all; method: NC_METHOD_* or NC_ROUTE_LEARN. */
int NC_route_set(NC_cache *cache, const char *address, int method);

#ifdef __cplusplus
}
#endif

#endif
