/* SPDX-License-Identifier: MIT */
/*
 * nabc.h - Network Aware Data Buffering and Caching.
 *
 * A process fills page-aligned memory once and inserts it into a cache; from
 * then on, all processes refer to it by a cache id.  nabc(7) is the overview;
 * the manual page of each call lists its errors.
 *
 * Calls return -1 (or NULL) and set errno on failure.  All of them are
 * thread-safe, except that an NC_handle belongs to one thread at a time.  No
 * call blocks unless its manual page says so.
 */
#ifndef NABC_H
#define NABC_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The version of this header: major << 16 | minor << 8 | patch.  A release candidate has that of its
 * release.
 */
#define NC_VERSION 0x010000u

/*
 * Structures can grow at their end.  One that a call reads begins with its
 * size, which its initialiser sets, and takes designated initialisers:
 *
 *	struct NC_cache_options options = NC_CACHE_OPTIONS_INIT(.memory = 1 << 30);
 *
 * What is not named has its default; what a newer library adds has it, too.
 * For one that a call writes, the caller passes the size that it knows.
 */
/* clang-format off */
#define NC_INIT(type, ...) {.size = sizeof(type), __VA_ARGS__}
/* clang-format on */

/*
 * For C++, which has designated initialisers since C++20 only, and whose compilers warn of the fields
 * that they leave out:
 *
 *	struct NC_cache_options options = NC_defaults<struct NC_cache_options>();
 *	options.memory = 1 << 30;
 */
#ifdef __cplusplus
extern "C++" {
template <typename type> inline type NC_defaults()
{
	type made = type();

	made.size = sizeof(made);
	return made;
}
}
#endif

/*
 * A cache that this process owns, or its attachment to another process's.  A
 * process can have several.  The first one is its default: NULL and the calls
 * without a cache argument use it.  A process that has none gets one at its
 * first such call: that of $NABC_CACHE, or else one of its own.
 */
typedef struct NC_cache NC_cache;

/*
 * A unit that is being filled (paper 002, section 2.2).  The caller owns the
 * memory of the handle; its contents belong to the library.  NC_alloc()
 * initialises it, NC_free() releases it.
 */
typedef struct NC_handle {
	uint64_t nc_private[10];
} NC_handle;

/* Kinds of memory for units; nabc(7) compares them. */
enum NC_kind {
	NC_KIND_AUTO = 0, /* the library chooses by size */
	NC_KIND_RECYCLED, /* short-lived or small: memory is reused in place */
	NC_KIND_APPENDED, /* long-lived: written once, reclaimed by segment */
	NC_KIND_SEALED,	  /* a segment of its own, sealed at insert; can outlive its process */
	NC_KIND_KERNEL,	  /* in the kernel module, if it has memory; else as AUTO */
};

#define NC_UNIT_UNSUMMED 0x1u /* keep no checksums: for data that is sent once */

/*
 * Receives each diagnostic message once: what is slower than possible or
 * exhausted, and which limit to raise.  priority is that of syslog(3).  Called
 * from any call of the library, in any thread; must not call the library.
 */
typedef void (*NC_log)(void *context, int priority, const char *message);

/* Which units are evicted first when memory is short. */
enum NC_policy {
	NC_POLICY_DEFAULT = 0, /* GDSF */
	NC_POLICY_SIEVE,       /* the oldest unit that was not used for one round */
	NC_POLICY_LRU,	       /* the least recently used unit */
	NC_POLICY_GDSF,	       /* the unit with the least uses per byte, with ageing */
};

/* Checksums of a unit's bytes; NC_checksum(3) defines the values. */
enum NC_checksum_kind {
	NC_CHECKSUM_DEFAULT = 0, /* the kind that the cache keeps of each fragment */
	NC_CHECKSUM_INET,	 /* 16-bit ones' complement sum, RFC 1071 */
	NC_CHECKSUM_CRC32C,	 /* CRC with the Castagnoli polynomial, as in RFC 3720 */
};

/* Priority of a unit when memory is short. */
enum NC_priority {
	NC_PRIORITY_LOW, /* evicted before all others */
	NC_PRIORITY_NORMAL,
	NC_PRIORITY_HIGH,   /* evicted only if no other unit can be */
	NC_PRIORITY_PINNED, /* never evicted; can be moved within memory */
};

/* Options of NC_cache_open(); zero in a field means its default. */
struct NC_cache_options {
	size_t size;	     /* of this structure */
	size_t memory;	     /* bytes of memory for units; default 256 MiB, at least 1 MiB */
	size_t max_unit;     /* bytes of the largest unit; default and limit: memory / 4 */
	size_t member_size;  /* bytes of each member's segment; default 16 MiB */
	unsigned flags;	     /* NC_CACHE_* */
	size_t member_quota; /* bytes of a member's sealed units; default 4 * member_size */
	NC_log log;	     /* may be NULL */
	void *log_context;
	enum NC_checksum_kind checksum; /* of each fragment; default NC_CHECKSUM_INET */
	/*
	 * Limit of unsent bytes in a TCP socket (TCP_NOTSENT_LOWAT), set when a
	 * message of 128 KiB or more is spliced to it, unless the program has set
	 * one.  Default: 16 KiB if the peer has the socket's own address (data
	 * stays on this machine), else 1 MiB.  Values below 128 KiB apply to
	 * non-blocking sockets only.  SIZE_MAX: do not set a limit.
	 */
	size_t unsent_limit;
	enum NC_policy policy;
	unsigned high_water; /* percent of memory above which units are evicted ahead; default 95 */
	unsigned low_water;  /* percent of memory at which that stops; default 90 */
	unsigned clean_limit; /* percent of a segment that cleaning copies at most; default 50 */
	size_t scrub_rate;    /* bytes verified per second; 0: none */
	/*
	 * Milliseconds that a sealed unit stays after the process that inserted it
	 * has ended, unless the unit has its own lifetime; default one minute.
	 */
	uint64_t orphan_lifetime;
	/*
	 * Limit of file descriptors for the owner's segments, at least 4; default
	 * a quarter of RLIMIT_NOFILE at the time of NC_cache_open().
	 */
	unsigned max_descriptors;
	/*
	 * Bytes of memory that one member's sealed units have beside all others; if it has
	 * more when memory is short, its older ones are evicted first.  All members together
	 * have twice as much.  Default: a quarter of memory.
	 */
	size_t member_share;
};

#define NC_CACHE_OPTIONS_INIT(...) NC_INIT(struct NC_cache_options, __VA_ARGS__)

#define NC_CACHE_NO_URING 0x1u	      /* never use io_uring */
#define NC_CACHE_NO_HUGE 0x2u	      /* never request huge pages */
#define NC_CACHE_NO_THREAD 0x4u	      /* no collector thread: the caller dispatches */
#define NC_CACHE_PROTECT 0x8u	      /* for debugging: inserted memory is read-only */
#define NC_CACHE_NO_KERNEL 0x10u      /* never use the kernel module, /dev/nabc */
#define NC_CACHE_MEMBERS_THREAD 0x20u /* a thread of the library serves the members */
#define NC_CACHE_PIN 0x40u	      /* lock the memory of units: it is not swapped out */
#define NC_CACHE_EAGER_SUMS 0x80u     /* checksums are computed while units are filled */
#define NC_CACHE_NO_REGISTER 0x100u   /* never register memory with io_uring */

/* Kinds of grantees for NC_grant(): the meaning of the number beside it. */
enum NC_principal {
	NC_PROCESS = 1, /* a pid */
	NC_PROCESS_FD,	/* a process by its pidfd */
	NC_USER,	/* a uid: every process that runs as this user */
	NC_GROUP,	/* a gid: every process of this group, supplementary groups included */
	NC_PEER, /* for NC_access(): a Unix socket; the process that listens at its other end */
};

/* A grant of a unit, as NC_grants() returns it. */
struct NC_grant_info {
	enum NC_principal principal; /* NC_PROCESS, NC_USER or NC_GROUP */
	uint32_t who;		     /* pid, as the owner sees it; uid or gid */
	unsigned imports; /* members that it applies to and that have imported the unit */
};

/* Options of NC_cache_serve(); zero in a field means its default. */
struct NC_serve_options {
	size_t size;	    /* of this structure */
	mode_t mode;	    /* permissions of the socket; default 0600 */
	unsigned flags;	    /* NC_SERVE_* */
	gid_t group;	    /* of the socket, with NC_SERVE_GROUP */
	const uid_t *users; /* users that may attach beside the owner's user and root */
	unsigned user_count;
};

#define NC_SERVE_OPTIONS_INIT(...) NC_INIT(struct NC_serve_options, __VA_ARGS__)

#define NC_SERVE_GROUP 0x1u /* group is given */

/* Options of NC_cache_attach(). */
struct NC_attach_options {
	size_t size;	/* of this structure */
	unsigned flags; /* NC_ATTACH_* */
	NC_log log;	/* may be NULL */
	void *log_context;
};

#define NC_ATTACH_OPTIONS_INIT(...) NC_INIT(struct NC_attach_options, __VA_ARGS__)

#define NC_ATTACH_LIGHT 0x1u	/* no segment: sealed units only */
#define NC_ATTACH_OPERATOR 0x2u /* to administer the whole cache; no segment */

/* Options of NC_unit_insert_with(); zero in a field means its default. */
struct NC_insert_options {
	size_t size;		   /* of this structure */
	unsigned flags;		   /* NC_INSERT_* */
	enum NC_priority priority; /* with NC_INSERT_PRIORITY; default NC_PRIORITY_NORMAL */
	uint64_t lifetime;	   /* milliseconds from now; default: no limit */
	struct NC_hold *hold;	   /* filled as by NC_hold(); default: NULL, no hold */
};

#define NC_INSERT_OPTIONS_INIT(...) NC_INIT(struct NC_insert_options, __VA_ARGS__)

#define NC_INSERT_PRIORITY 0x1u /* priority is given */

/* Properties of a unit, as NC_stat() returns them. */
struct NC_stat {
	size_t id;
	size_t size;	/* bytes */
	size_t fraglen; /* bytes */
	size_t fragments;
	enum NC_kind kind;
	unsigned member; /* 0: the owner of the cache */
	unsigned holds;	 /* holds and unfinished sends of this process */
	pid_t session;	 /* of the member process that inserted it; 0 in lists */
	uint64_t since;	 /* CLOCK_BOOTTIME, ns: when that process attached; 0 with session */
};

/* What was sent by one method. */
struct NC_method_count {
	uint64_t sends; /* pieces of messages */
	uint64_t bytes; /* of units in them */
};

/* Properties of a cache and counters since it was opened, as NC_cache_stat() returns them. */
struct NC_cache_stat {
	uint64_t size;		  /* budget, bytes */
	uint64_t used;		  /* bytes of the owner's segments */
	uint64_t units;		  /* the owner's units that exist now */
	uint64_t members;	  /* attached now, without the owner */
	uint64_t inserts;	  /* by this process */
	uint64_t destroys;	  /* by this process */
	uint64_t evictions;	  /* units evicted */
	uint64_t segments_closed; /* returned to the system */
	uint64_t failures;	  /* allocations refused with ENOMEM */
	struct NC_method_count by_copy, by_splice, by_zerocopy, by_kernel;
	uint64_t zerocopy_copied; /* zero-copy sends the kernel copied after all */
	uint64_t stale;		  /* ids refused: ENOENT */
	uint64_t denied;	  /* ids refused: EACCES */
	char uring[96];		  /* "used", or why io_uring is not */
	uint64_t sends_partial;	  /* calls of which the socket took a part */
	uint64_t sends_full;	  /* calls of which it took nothing: EAGAIN */
	uint64_t sends_failed;	  /* calls that failed with another error of the socket */
	/* Messages of which large pieces were not spliced: */
	uint64_t splice_sigpipe;  /* SIGPIPE is not ignored */
	uint64_t splice_dontwait; /* NC_SEND_DONTWAIT */
	uint64_t splice_refused;  /* by the socket: EINVAL, EOPNOTSUPP */
	uint64_t splice_learnt;	  /* another method costs less on the route, or is tried */
	/* Messages of which large pieces were not sent without a copy, or not all: */
	uint64_t zerocopy_memory;  /* ENOMEM, ENOBUFS: RLIMIT_MEMLOCK, net.core.optmem_max */
	uint64_t zerocopy_refused; /* by the socket: EOPNOTSUPP and others */
	uint64_t zerocopy_full;	   /* the socket was full */
	uint64_t zerocopy_learnt;  /* the same, or the kernel copies on the route */
	uint64_t zerocopy_kept;	   /* not a refusal: sends without any copy */
	uint64_t hits;		   /* ids that were found by holds, sends and other calls */
	uint64_t pinned;	   /* the owner's units that are never evicted */
	uint64_t expired;	   /* units that expired */
	uint64_t cleaned;	   /* segments cleaned */
	uint64_t copied_units;	   /* units that cleaning copied */
	uint64_t copied_bytes;	   /* bytes of their memory */
	uint64_t scrubbed;	   /* bytes verified in the background */
	uint64_t corrupt;	   /* units dropped because their bytes did not match */
	uint64_t failures_table;   /* of failures: the table of units is full */
	uint64_t failures_system;  /* allocations that the system refused: descriptors, mappings */
	uint64_t copies_avoided;   /* pieces spliced, or zero-copy and not copied after all */
	uint64_t kernel_refused;   /* messages whose sockets do not accept units of the module */
	uint64_t kernel_memory;	   /* allocations that did not fit in the module */
	uint64_t kernel_copies;	   /* units of the module that had to be copied to memory */
	uint64_t kernel_copied_bytes; /* bytes in them */
	char kernel[96];	      /* "used", or why /dev/nabc is not */
	uint64_t locked_bytes;	      /* NC_CACHE_PIN: of segments and copies that are locked */
	uint64_t unlocked_bytes;      /* and of those that could not be: RLIMIT_MEMLOCK */
	/* Memory registered with io_uring, for zero-copy sends: */
	uint64_t registered_bytes;     /* bytes registered, and thereby pinned, now */
	uint64_t registrations;	       /* blocks registered */
	uint64_t registrations_failed; /* blocks that could not be registered */
	uint64_t registered_sends;     /* zero-copy sends from registered memory */
};

enum NC_method { NC_METHOD_COPY, NC_METHOD_SPLICE, NC_METHOD_ZEROCOPY, NC_METHOD_KERNEL };

#define NC_ROUTE_LEARN (-1) /* instead of a method: the library chooses */

/*
 * A route, as NC_routes() returns it: a local address, and whether the peers
 * have the same address.  Of small messages, one in 64 is counted, as 64.
 */
struct NC_route {
	char address[48];	  /* local address as text; "unix" */
	unsigned char octets[16]; /* and in network order, IPv4 in the first 4 */
	int family;		  /* AF_INET, AF_INET6, AF_UNIX */
	int local;		  /* 1: what is sent does not leave this machine */
	int method;		  /* fixed: NC_METHOD_*; else NC_ROUTE_LEARN */
	enum NC_method recycled;  /* method of large pieces now: of recycled units */
	enum NC_method lasting;	  /* of all other kinds of units */
	struct NC_method_count by_copy, by_splice, by_zerocopy, by_kernel;
	uint64_t partial; /* pieces of which a socket took only a part */
	uint64_t kept;	  /* zero-copy sends without any copy */
	uint64_t copied;  /* zero-copy sends the kernel copied after all */
	char why[96];	  /* reason for the choice, as text */
};

/* One range of one unit; this structure does not grow. */
struct NC_range {
	size_t id;     /* cache id */
	size_t offset; /* bytes from the start of the unit */
	size_t length; /* bytes */
};

/*
 * A hold on a unit: NC_hold() fills it, NC_release() ends it.  The caller owns the
 * memory, the contents belong to the library; all zeros: no hold.  It may be
 * copied and passed between threads, and is released once.  This structure does not grow.
 */
struct NC_hold {
	uint64_t nc_private[4];
};

/* Memory before a range of a message, or behind all of them; this structure does not grow. */
struct NC_text {
	const void *data; /* may be NULL if length is 0 */
	size_t length;	  /* bytes */
	unsigned before;  /* index of the range that follows; range_count: behind the last one */
};

/* One message for NC_send(): header, then the ranges in order, with texts before and behind them. */
struct NC_send {
	size_t size;	      /* of this structure */
	const void *header;   /* may be NULL */
	size_t header_length; /* bytes */
	const struct NC_range *ranges;
	const struct NC_hold *holds; /* that the caller has on units of the ranges; may be NULL */
	unsigned range_count;	     /* at most NC_RANGES_MAX */
	unsigned hold_count;	     /* at most NC_RANGES_MAX */
	unsigned flags;		     /* NC_SEND_* */
	size_t skip;		     /* bytes of the message that earlier calls sent */
	/*
	 * NULL, or a variable of the connection that is 0 before its first message: then the
	 * library asks only once for the socket's number (SO_COOKIE), and keeps it there.
	 */
	uint64_t *cookie;
	size_t limit;		     /* bytes that this call sends at most; 0: no limit */
	const struct NC_text *texts; /* in the order of their `before`; may be NULL */
	unsigned text_count;	     /* at most NC_TEXTS_MAX */
};

#define NC_SEND_INIT(...) NC_INIT(struct NC_send, __VA_ARGS__)

/* One message for NC_sendfile(): header, then a range of a file. */
struct NC_sendfile {
	size_t size;	      /* of this structure */
	const void *header;   /* may be NULL */
	size_t header_length; /* bytes */
	int file;	      /* descriptor that can be read */
	uint64_t offset;      /* bytes from the start of the file */
	size_t length;	      /* bytes */
	unsigned flags;	      /* NC_SEND_MORE, _CLOSE, _DONTWAIT */
	size_t skip;	      /* bytes of the message that earlier calls sent */
};

#define NC_SENDFILE_INIT(...) NC_INIT(struct NC_sendfile, __VA_ARGS__)

#define NC_RANGES_MAX 64u
#define NC_TEXTS_MAX 128u
#define NC_SEND_MORE 0x1u     /* more follows soon: send no partial segment */
#define NC_SEND_CLOSE 0x2u    /* end of the stream: FIN on the last segment */
#define NC_SEND_DONTWAIT 0x4u /* do not block, whatever the socket's mode */
#define NC_SEND_COPY 0x8u     /* pass no page references to the socket: copy */

/* --- library ------------------------------------------------------------ */

/* Returns the version of the library, as NC_VERSION is that of the header. */
unsigned NC_version(void);

/*
 * Returns the bytes of a public type, "NC_handle" or "struct NC_stat", as the
 * library knows it; 0: no such type.  For programs in other languages.
 */
size_t NC_sizeof(const char *type);

/* --- cache ------------------------------------------------------------- */

NC_cache *NC_cache_open(const struct NC_cache_options *options);
NC_cache *NC_cache_attach(const char *path, const struct NC_attach_options *options);
int NC_cache_close(NC_cache *cache);
int NC_cache_stat(NC_cache *cache, struct NC_cache_stat *stat, size_t size);
int NC_cache_serve(NC_cache *cache, const char *path, const struct NC_serve_options *options);
int NC_cache_fd(NC_cache *cache);
int NC_cache_dispatch(NC_cache *cache);

/* --- the calls of paper 002, on the default cache ------------------------- */

int NC_alloc(NC_handle *handle, size_t size, size_t fraglen);
ssize_t NC_read(int fd, NC_handle *handle, size_t handle_offset, size_t len);
int NC_insert(NC_handle *handle);
ssize_t NC_socksend(int sock_fd, size_t cache_id, size_t offset, size_t len);

/* --- buffering --------------------------------------------------------- */

/* flags: NC_UNIT_* */
int NC_unit_alloc(NC_cache *cache, NC_handle *handle, size_t size, size_t fraglen,
		  enum NC_kind kind, unsigned flags);
/* And waits for memory if there is none; milliseconds: how long at most; -1: no limit. */
int NC_unit_alloc_wait(NC_cache *cache, NC_handle *handle, size_t size, size_t fraglen,
		       enum NC_kind kind, unsigned flags, int milliseconds);
/* Makes a unit that is being filled longer, which may move it: NC_fragment()'s memory is invalid. */
int NC_unit_grow(NC_handle *handle, size_t size);
int NC_free(NC_handle *handle);
ssize_t NC_unit_read(NC_handle *handle, int fd, size_t len, size_t handle_offset);
ssize_t NC_write(NC_handle *handle, const void *data, size_t len, size_t handle_offset);
int NC_printf(NC_handle *handle, size_t handle_offset, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
int NC_vprintf(NC_handle *handle, size_t handle_offset, const char *format, va_list arguments)
	__attribute__((format(printf, 3, 0)));
/* Memory of a fragment, valid until the unit is inserted or freed. */
void *NC_fragment(NC_handle *handle, size_t index, size_t *length);
/* The caller closes the stream before it inserts the unit, which does not flush it. */
FILE *NC_stream(NC_handle *handle, const char *mode);

/* --- cache management -------------------------------------------------- */

#define NC_WHOLE SIZE_MAX /* as length: all that was allocated */

/* Inserts the first len bytes as the unit. */
int NC_unit_insert(NC_handle *handle, size_t len);
/* And sets priority, lifetime and a hold, before the unit can be evicted; NULL: none of them. */
int NC_unit_insert_with(NC_handle *handle, size_t len, const struct NC_insert_options *options);
size_t NC_cache_id(const NC_handle *handle);
int NC_destroy(NC_cache *cache, size_t cache_id);

/* Fills *hold: the unit stays, and stays where it is, until the hold is released. */
int NC_hold(NC_cache *cache, size_t cache_id, struct NC_hold *hold);
/* Holds without waiting; errno EAGAIN: call it again when NC_cache_fd() is readable. */
int NC_hold_nowait(NC_cache *cache, size_t cache_id, struct NC_hold *hold);
/* Ends the hold and clears *hold. */
int NC_release(struct NC_hold *hold);
int NC_stat(NC_cache *cache, size_t cache_id, struct NC_stat *stat, size_t size);
/* Sets *value to the checksum of len bytes at offset; ERANGE: outside of the unit. */
int NC_checksum(NC_cache *cache, size_t cache_id, uint32_t *value, enum NC_checksum_kind kind,
		size_t len, size_t offset);
/* Compares the bytes with their checksums: 0, or -1 with EBADMSG; ENODATA: none are kept. */
int NC_verify(NC_cache *cache, size_t cache_id);

int NC_set_priority(NC_cache *cache, size_t cache_id, enum NC_priority priority);
int NC_set_lifetime(NC_cache *cache, size_t cache_id, uint64_t milliseconds);

/* units: count structures of stride bytes each. */
int NC_list(NC_cache *cache, size_t *cursor, struct NC_stat *units, size_t stride, unsigned count);
ssize_t NC_pread(NC_cache *cache, size_t cache_id, void *data, size_t len, size_t offset);

/* A held unit as memory: the address of the byte at offset; *run: bytes from there on. */
const void *NC_data(const struct NC_hold *hold, size_t *run, size_t offset);
/*
 * And as a file: returns a descriptor that can only be read, the library's, valid as
 * long as the hold; *position: where the byte at offset is in it.
 */
int NC_file(const struct NC_hold *hold, uint64_t *position, size_t *run, size_t offset);

/* Why a unit has ended that the program did not destroy. */
enum NC_eviction {
	NC_EVICTION_MEMORY = 1, /* memory, a descriptor or an entry of a table was needed */
	NC_EVICTION_LIFETIME,	/* its lifetime is over */
	NC_EVICTION_CORRUPT,	/* its bytes did not match their checksums */
	NC_EVICTION_DESTROYED,	/* by the member that inserted it, or by an operator */
	NC_EVICTION_LOST,	/* too many to say which: id and size are 0 */
};

/*
 * Reports that a unit of the owner has ended; size: its bytes.  Called by the thread that
 * dispatches, one call at a time; must not call NC_cache_on_evict(), NC_cache_open(),
 * NC_cache_attach() or NC_cache_close().
 */
typedef void (*NC_evicted)(void *context, size_t cache_id, size_t size, enum NC_eviction why);

/* Sets the owner's callback; NULL: none.  After it returns, the old one is not called any more. */
int NC_cache_on_evict(NC_cache *cache, NC_evicted evicted, void *context);

/* --- names of units, which all processes of a cache share ---------------------- */

#define NC_NAME_MAX 1024u /* bytes of a name */
#define NC_NAME_NEW 0x1u  /* fail with EEXIST if another unit has the name */

/* Gives a name to a unit, instead of the one that had it.  flags: NC_NAME_* */
int NC_name_set(NC_cache *cache, const char *name, size_t cache_id, unsigned flags);
/* As NC_hold(), of the unit that has the name; *cache_id: its id; NULL: not wanted. */
int NC_name_hold(NC_cache *cache, const char *name, struct NC_hold *hold, size_t *cache_id);
/* Frees the name, if that unit has it; cache_id 0: whichever unit has it. */
int NC_name_remove(NC_cache *cache, const char *name, size_t cache_id);

/* --- cached data with names ---------------------------------------------- */

#define NC_PURGE_MAX 8192u /* bytes of a name */

/*
 * Drops all data that the owner keeps under a name.  Returns the number of
 * dropped items, or -errno.  Called in any thread at any time; must not block,
 * and must not call NC_cache_on_purge(), NC_purge() or NC_cache_close().
 */
typedef int (*NC_purger)(void *context, const char *name);

/* Sets the owner's purger; NULL: none.  After it returns, the old one is not called any more. */
int NC_cache_on_purge(NC_cache *cache, NC_purger purger, void *context);

/* For the owner and operators; an operator waits for the owner. */
int NC_purge(NC_cache *cache, const char *name);

/* --- access to units ---------------------------------------------------- */

int NC_grant(NC_cache *cache, size_t cache_id, enum NC_principal principal, uint32_t who);
int NC_revoke(NC_cache *cache, size_t cache_id, enum NC_principal principal, uint32_t who);
/* For the owner: whether a process (NC_PROCESS, NC_PROCESS_FD, NC_PEER) may use a unit. */
int NC_access(NC_cache *cache, size_t cache_id, enum NC_principal principal, uint32_t who);
/* Writes at most count grants of stride bytes each; returns the number of grants that exist. */
int NC_grants(NC_cache *cache, size_t cache_id, struct NC_grant_info *grants, size_t stride,
	      unsigned count);

/* --- network ----------------------------------------------------------- */

ssize_t NC_send(NC_cache *cache, int sock_fd, const struct NC_send *message);

/* cache supplies the routes and the limit of unsent bytes. */
ssize_t NC_sendfile(NC_cache *cache, int sock_fd, const struct NC_sendfile *message);

/* Writes at most count routes of stride bytes each; returns the number of routes that exist. */
int NC_routes(NC_cache *cache, struct NC_route *routes, size_t stride, unsigned count);

/* address: a local one as text, "unix", or "*" for all; method: NC_METHOD_* or NC_ROUTE_LEARN. */
int NC_route_set(NC_cache *cache, const char *address, int method);

#ifdef __cplusplus
}
#endif

#endif
