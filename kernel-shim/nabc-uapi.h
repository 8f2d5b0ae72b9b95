/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * The calls of /dev/nabc: Network Aware Data Buffering and Caching.
 *
 * A process opens the device once and maps its arena once.  It allocates units,
 * fills them through the arena or directly from a descriptor, and inserts them:
 * from then on their bytes never change and they are not mapped anywhere.  It can
 * also create small units in one call.  It sends ranges of units over TCP by their
 * ids, without a copy.
 *
 * Rules for all calls:
 *  - An open file serves the process that opened it, as long as it runs the
 *    same program: a child made by fork(), another process that was passed
 *    the descriptor, and the next program after execve() get EPERM.  They must
 *    open the device themselves.
 *  - Sizes, offsets and lengths are in bytes.  Times are in milliseconds.
 *  - Fields called reserved and unknown bits of flags must be 0, else EINVAL:
 *    later versions give them meanings.
 *  - Pointers are widened to 64 bits, so that 32-bit programs need no
 *    translation.
 *  - Every call can fail with EFAULT for memory that cannot be read or written,
 *    EINTR (or a restart) if a signal comes before anything was done, ENOTTY for
 *    an unknown call, ENOMEM if the kernel itself is short of memory.
 *  - A unit is unknown (ENOENT) if it never existed, if it was destroyed (but
 *    holders may still send, copy, sum, stat and hold it), and while it is being
 *    filled through another open file, even one of the same process.  EACCES: it
 *    exists, and the caller has no right to it.
 *
 * Ids are never 0 and are not reused for another unit until the module is unloaded.
 */
#ifndef _UAPI_LINUX_NABC_H
#define _UAPI_LINUX_NABC_H

#include <linux/types.h>
#include <linux/ioctl.h>

#define NABC_DEVICE "/dev/nabc"

/* Raised when a structure or its meaning changes incompatibly. */
#define NABC_ABI_VERSION 1u

/*
 * NABC_IOC_INFO - the features and limits of this module.
 *
 * Fails only with EFAULT and EPERM.  A caller compares version with
 * NABC_ABI_VERSION before it makes other calls.
 */
struct nabc_info {
	__u32 version;	    /* NABC_ABI_VERSION of the module */
	__u32 features;	    /* NABC_FEATURE_* */
	__u64 arena_size;   /* maximum bytes that one mmap() of the file may span */
	__u64 unit_max;	    /* maximum bytes of one unit */
	__u64 memory_limit; /* maximum bytes of all units of the machine */
	__u32 page_size;    /* units begin at a multiple of it in the arena */
	__u32 chunk_size;   /* units consist of contiguous physical pages of this many bytes */
	__u32 sum_grain;    /* bytes between two kept checksums */
	__u32 linger_max;   /* maximum milliseconds that a unit may outlive its maker */
	__u32 ranges_max;   /* maximum ranges of one NABC_IOC_SOCKSENDV */
	__u32 header_max;   /* maximum bytes of its header */
};

/* features */
#define NABC_FEATURE_SUMS 0x1u	 /* kept checksums are used on egress if requested */
#define NABC_FEATURE_SPLICE 0x2u /* sends pages by sendmsg (6.5 and later), not sendpage */
#define NABC_FEATURE_PUT 0x4u	 /* NABC_IOC_PUT exists; otherwise ENOTTY */

/*
 * mmap() - the arena of this open file.
 *
 * MAP_SHARED, offset 0, at most arena_size bytes, PROT_READ and PROT_WRITE or one
 * of them; once per process, since it costs nothing until units are filled.
 * EINVAL: MAP_PRIVATE, PROT_EXEC, another offset, too long.  EPERM: not the process
 * that opened the file.
 *
 * The unit being filled is at arena_offset of NABC_IOC_ALLOC.  All other parts of
 * the arena cause SIGBUS, also those of inserted units.  Memory of the arena is not
 * inherited by fork(), not dumped, and cannot be pinned, so calls that pin it
 * (O_DIRECT, vmsplice(), process_vm_readv()) fail with EFAULT.  Parts of the
 * mapping cannot be unmapped or moved separately (EINVAL).
 */

/*
 * NABC_IOC_ALLOC - allocates a unit, to be filled.
 *
 * Its bytes are zeroes, or bytes of earlier units of this open file.  Its memory
 * counts against RLIMIT_MEMLOCK of the caller until it is returned to the kernel.
 * Memory of destroyed units is kept for the next units for a while, and as long as
 * a socket refers to a byte of it.  Memory that closed files of the caller's user
 * left behind also counts: units that linger, and pages that sockets refer to.
 *
 * EINVAL: size is 0.  EFBIG: size is more than unit_max.  ENOMEM: over
 * RLIMIT_MEMLOCK, or the kernel is short of memory.  ENOSPC: over memory_limit, or
 * the arena has no space for more units being filled.
 */
struct nabc_alloc {
	__u64 size;	    /* in */
	__u32 flags;	    /* in: 0 */
	__u32 reserved;	    /* in: 0 */
	__u64 id;	    /* out */
	__u64 arena_offset; /* out: where the unit begins in the arena */
};

/*
 * NABC_IOC_READ - fills a part of a unit from a descriptor.
 *
 * One read(), or pread() if position is not -1: done may be less than length, and
 * is 0 at the end of the file.  Bytes are read directly into the unit.
 *
 * Only the file that allocated the unit may fill it; for others it is unknown, and
 * after the insert they get EACCES.  EBADF: fd is not open for reading.  ERANGE:
 * not within the unit.  EROFS: the unit is inserted.  EINVAL: position is less than
 * -1, or such a file can only be read() into user memory.  ESPIPE, EAGAIN, EISDIR
 * and others: errors of reading it.
 */
struct nabc_read {
	__u64 id;	/* in */
	__u64 offset;	/* in: from the start of the unit */
	__u64 length;	/* in: at least 1 */
	__s64 position; /* in: in the file; -1: the descriptor's own, which advances */
	__u64 done;	/* out: bytes read */
	__s32 fd;	/* in */
	__u32 flags;	/* in: 0 */
};

/*
 * NABC_IOC_INSERT - the unit is full: makes it immutable and sendable.
 *
 * Its pages are removed from the caller's address space before the call returns.
 * Only the file that allocated the unit may insert it, as for READ.  length
 * truncates the unit; 0 keeps all.  linger: how long the unit remains when the file
 * that allocated it is closed (also at the end of the process); 0: it is destroyed
 * at once, unless it is held.
 *
 * ERANGE: length is more than was allocated.  EINVAL: linger is more than
 * linger_max.  EROFS: inserted before.  EBUSY: an NABC_IOC_READ into it is in
 * progress.
 */
struct nabc_insert {
	__u64 id;     /* in */
	__u64 length; /* in: bytes of the unit from now on; 0: as allocated */
	__u32 linger; /* in: milliseconds */
	__u32 flags;  /* in: NABC_INSERT_* */
};

#define NABC_INSERT_SUMS 0x1u /* make the checksums now, not when first needed */

/*
 * NABC_IOC_SOCKSEND - sends one range of a unit to a connected socket.
 *
 * It is sent without a copy.  The bytes do not change until they are acknowledged,
 * even if the unit is destroyed meanwhile.  Blocks like send(), according to the
 * socket's mode, SO_SNDTIMEO, and NABC_SEND_DONTWAIT.  Like send(), a call that
 * sent a part succeeds, and sent states how much.  Never raises SIGPIPE.
 *
 * EOPNOTSUPP: not a plain TCP socket over IPv4 or IPv6 (another family, MPTCP, TLS
 * or another upper protocol in the kernel, redirected by BPF): send a copy instead,
 * by NABC_IOC_COPY.  ENOTSOCK, EBADF: not a socket.  EAGAIN: would block.
 * ENOTCONN, EPIPE, ECONNRESET and others: errors of the socket.  ERANGE: not within
 * the unit.  EINVAL: length is 0; NABC_SEND_MORE together with NABC_SEND_CLOSE.
 * EBUSY: the unit is not inserted yet.  EACCES: NABC_SEND_DESTROY without
 * NABC_RIGHT_DESTROY; nothing was sent.
 */
struct nabc_socksend {
	__u64 id;     /* in */
	__u64 offset; /* in */
	__u64 length; /* in */
	__u64 sent;   /* out: bytes that the socket took */
	__s32 socket; /* in */
	__u32 flags;  /* in: NABC_SEND_* */
};

/* flags of both sends; CLOSE and DESTROY take effect only if all bytes were sent. */
#define NABC_SEND_MORE 0x1u	/* more follows soon: send no partial segment */
#define NABC_SEND_CLOSE 0x2u	/* then end the stream: FIN on the last segment */
#define NABC_SEND_DONTWAIT 0x4u /* do not block, regardless of the socket's mode */
#define NABC_SEND_SUMS 0x8u	/* for devices without checksum offload: use kept checksums */
#define NABC_SEND_DESTROY 0x10u /* then destroy the units: they were for this message only */

/*
 * NABC_IOC_SOCKSENDV - sends a header, then ranges in order, as one message.
 *
 * As NABC_IOC_SOCKSEND.  skip: bytes of the message that earlier calls sent,
 * counted over header and ranges together.  The socket is not locked for the whole
 * message: only one thread at a time should send.
 *
 * EINVAL: also if nothing is left to send, if range_count is over ranges_max or
 * header_length is over header_max, or if a range is empty.
 */
struct nabc_range {
	__u64 id;
	__u64 offset;
	__u64 length; /* at least 1 */
};

struct nabc_socksendv {
	__u64 header;	     /* in: address of header_length bytes */
	__u64 ranges;	     /* in: address of range_count structures nabc_range */
	__u32 header_length; /* in: may be 0 */
	__u32 range_count;   /* in: may be 0 */
	__u64 skip;	     /* in */
	__u64 sent;	     /* out: bytes that the socket took in this call */
	__s32 socket;	     /* in */
	__u32 flags;	     /* in: NABC_SEND_* */
};

#define NABC_RANGES_MAX 64u
#define NABC_HEADER_MAX 65536u

/*
 * NABC_IOC_COPY - copies a range of an inserted unit to memory.
 *
 * A process that may send the unit may copy it: it could send it to itself.
 * ERANGE: not within the unit.  EBUSY: not inserted yet.
 */
struct nabc_copy {
	__u64 id;     /* in */
	__u64 offset; /* in */
	__u64 length; /* in: may be 0 */
	__u64 data;   /* in: address of length bytes */
};

/*
 * NABC_IOC_SUM - returns the checksum of a range of an inserted unit.
 *
 * The ones' complement sum of RFC 1071, not complemented, of the range's 16-bit
 * words in network byte order (an odd last byte is the high half), as a number of
 * this machine: 0x0102 for the bytes 1, 2.  Uses kept checksums, and makes them if
 * necessary.  ERANGE: not within the unit.  EBUSY: not inserted yet.
 */
struct nabc_sum {
	__u64 id;     /* in */
	__u64 offset; /* in */
	__u64 length; /* in: may be 0: then the sum is 0 */
	__u32 sum;    /* out */
	__u32 reserved;
};

/*
 * NABC_IOC_DESTROY, NABC_IOC_HOLD, NABC_IOC_RELEASE.
 *
 * DESTROY: the id is unknown from now on, except to holders.  Permitted for the
 * maker, and for processes with NABC_RIGHT_DESTROY; otherwise EACCES.  For a unit
 * that is being filled: also EBUSY while NABC_IOC_READ is in progress.
 *
 * HOLD: the unit remains until RELEASE, or until the file of the call is closed,
 * even if it is destroyed, revoked or orphaned; the holder may continue to send and
 * copy it.  Permitted for processes that may send the unit.  Holds of one file are
 * counted; the first one of a unit also counts its memory against the holder's
 * RLIMIT_MEMLOCK: ENOMEM.  EBUSY: not inserted yet.  ENOSPC: 2^32 - 1 holds.
 *
 * RELEASE: EINVAL: the file of the call does not hold the unit, whether it exists
 * or not.
 */
struct nabc_unit_id {
	__u64 id;	/* in */
	__u32 flags;	/* in: 0 */
	__u32 reserved; /* in: 0 */
};

/*
 * NABC_IOC_GRANT, NABC_IOC_REVOKE - permit or forbid others to use a unit.
 *
 * Only the maker may call them: any file of that process; before the insert only
 * the file that allocated the unit, since it is unknown to others; otherwise
 * EACCES.  Another grant to the same principal replaces its rights.
 *
 * A grant to a process is to that process, not to its number: a later process with
 * that number has no right.  It is also to the program that the process runs at the
 * time of the grant: the next program after execve() has no right, neither to what
 * was granted to the previous one nor to what lingers of it.  Revoking removes the
 * right from any program of the process.  Users and groups are interpreted in the
 * caller's user namespace and compared with the effective user, effective group and
 * supplementary groups of a process at each of its calls.  Revoking does not end
 * sends or holds.
 *
 * EINVAL: unknown principal, rights are 0 or unknown (REVOKE: not 0), an invalid
 * uid or gid.  ESRCH: no such process.  EBADF: not a pidfd.  ENOSPC:
 * NABC_GRANTS_MAX grants exist.  ENOENT: REVOKE without a grant.
 */
struct nabc_grant {
	__u64 id;	 /* in */
	__u32 principal; /* in: NABC_PRINCIPAL_* */
	__u32 who;	 /* in: pid, pidfd, uid or gid */
	__u32 rights;	 /* in: NABC_RIGHT_*; for REVOKE 0 */
	__u32 flags;	 /* in: 0 */
};

#define NABC_PRINCIPAL_PROCESS 1u /* a pid in the caller's pid namespace */
#define NABC_PRINCIPAL_PIDFD 2u	  /* a process by its pidfd */
#define NABC_PRINCIPAL_USER 3u	  /* a uid */
#define NABC_PRINCIPAL_GROUP 4u	  /* a gid */

#define NABC_RIGHT_SEND 0x1u	/* send, copy, sum, hold and stat */
#define NABC_RIGHT_DESTROY 0x2u /* destroy; includes no right to send */

#define NABC_GRANTS_MAX 64u

/*
 * NABC_IOC_PUT - creates a unit from memory: allocated, filled, inserted and
 * granted.
 *
 * Does what NABC_IOC_ALLOC, a copy into the arena, NABC_IOC_INSERT and
 * NABC_IOC_GRANT do, in one call and without the arena: cheaper for units of up to
 * about chunk_size, more expensive for large ones, since their bytes are copied.
 * All or nothing: after an error there is no unit.  Bytes that another thread
 * writes meanwhile may or may not be in the unit.  principal 0 grants nothing;
 * NABC_IOC_GRANT makes more grants.
 *
 * EINVAL: size is 0, linger is more than linger_max, unknown principal, rights are
 * 0 or unknown, an invalid uid or gid; principal is 0 and who or rights are not.
 * EFBIG: size is more than unit_max.  ENOMEM: over RLIMIT_MEMLOCK, or the kernel is
 * short of memory.  ENOSPC: over memory_limit.  EFAULT: also if a part of the bytes
 * cannot be read.  ESRCH: no such process.  EBADF: not a pidfd.
 */
struct nabc_put {
	__u64 size;	 /* in */
	__u64 data;	 /* in: address of size bytes */
	__u32 linger;	 /* in: milliseconds, as for NABC_IOC_INSERT */
	__u32 flags;	 /* in: NABC_INSERT_* */
	__u32 principal; /* in: NABC_PRINCIPAL_* or 0 */
	__u32 who;	 /* in: pid, pidfd, uid or gid */
	__u32 rights;	 /* in: NABC_RIGHT_* */
	__u32 reserved;	 /* in: 0 */
	__u64 id;	 /* out */
};

/* NABC_IOC_STAT - describes a unit; for processes that have any right to it. */
struct nabc_stat {
	__u64 id;	 /* in */
	__u64 size;	 /* out: bytes */
	__u64 memory;	 /* out: bytes of memory that it occupies */
	__u64 sent;	 /* out: bytes sent from it */
	__u32 state;	 /* out: NABC_STATE_* */
	__u32 rights;	 /* out: of the caller */
	__u32 holds;	 /* out: files that hold it */
	__u32 grants;	 /* out */
	__u32 maker_pid; /* out: in the caller's pid namespace; 0: gone, or not visible there */
	__u32 maker_uid; /* out: effective, when it was allocated */
	__u32 linger;	 /* out: milliseconds */
	__u32 flags;	 /* out: NABC_UNIT_* */
};

#define NABC_STATE_FILLING 1u
#define NABC_STATE_CACHED 2u	/* inserted */
#define NABC_STATE_DESTROYED 3u /* remains for its holders */

#define NABC_UNIT_SUMMED 0x1u /* checksums are kept */
#define NABC_UNIT_ORPHAN 0x2u /* its maker's file is closed */
#define NABC_UNIT_HELD 0x4u   /* by the file of the call */

/*
 * NABC_IOC_LIST - lists the units to which the caller has any right, by ascending
 * id.
 *
 * Begin with cursor 0.  Each call writes up to count structures nabc_stat and
 * advances cursor; the list is complete when found is less than count.  EINVAL:
 * count is 0 or over NABC_LIST_MAX.
 */
struct nabc_list {
	__u64 cursor; /* in and out: ids above it are listed */
	__u64 units;  /* in: address of count structures nabc_stat */
	__u32 count;  /* in */
	__u32 found;  /* out: structures written */
};

#define NABC_LIST_MAX 1024u

/*
 * NABC_IOC_STATISTICS - returns counters since the module was loaded, and gauges.
 *
 * Fields called file_ are of the open file of the call, all others of the machine.
 * Fails only with EFAULT and EPERM.
 */
struct nabc_statistics {
	/* gauges */
	__u64 units;	     /* that exist */
	__u64 unit_memory;   /* bytes of memory that they occupy */
	__u64 pooled_memory; /* bytes kept for the next units */
	__u64 orphans;	     /* units whose maker's file is closed */
	__u64 orphan_memory; /* bytes that they occupy */
	__u64 files;	     /* open files */
	__u64 sum_memory;    /* bytes of kept checksums */
	__u64 hooks;	     /* devices on which kept checksums are used */
	/* counters */
	__u64 allocated;    /* units */
	__u64 pool_hits;    /* chunks for them from the pool */
	__u64 pool_misses;  /* chunks from the kernel */
	__u64 inserted;	    /* units */
	__u64 destroyed;    /* units */
	__u64 collected;    /* units of closed files that were destroyed */
	__u64 read_bytes;   /* by NABC_IOC_READ */
	__u64 sends;	    /* calls that sent something */
	__u64 sent_bytes;   /* out of units */
	__u64 header_bytes; /* out of headers */
	__u64 refused;	    /* sends to sockets that are not plain TCP */
	__u64 shrunk;	    /* bytes of the pool that the kernel reclaimed */
	__u64 aged;	    /* bytes of the pool freed because they were not used for a time */
	/* checksums on egress */
	__u64 sum_made;	     /* bytes checksummed once, to be kept */
	__u64 sum_reused;    /* bytes sent with kept checksums */
	__u64 sum_touched;   /* bytes of the same packets that had to be read */
	__u64 sum_packets;   /* packets completed from kept checksums */
	__u64 sum_fallbacks; /* packets whose checksum the kernel had to compute */
	/* of the open file */
	__u64 file_units;   /* units that it made and that exist */
	__u64 file_charged; /* bytes that count against its RLIMIT_MEMLOCK */
	__u64 file_pooled;  /* bytes kept for its next units */
	__u64 file_held;    /* units that it holds */
	__u64 file_left;    /* bytes left by closed files of its user, which count as well */
	/* one more gauge of the machine */
	__u64 in_flight_memory; /* bytes of destroyed units that sockets refer to */
};

#define NABC_IOC_MAGIC 0xBC

#define NABC_IOC_INFO _IOR(NABC_IOC_MAGIC, 0x00, struct nabc_info)
#define NABC_IOC_ALLOC _IOWR(NABC_IOC_MAGIC, 0x01, struct nabc_alloc)
#define NABC_IOC_READ _IOWR(NABC_IOC_MAGIC, 0x02, struct nabc_read)
#define NABC_IOC_INSERT _IOW(NABC_IOC_MAGIC, 0x03, struct nabc_insert)
#define NABC_IOC_SOCKSEND _IOWR(NABC_IOC_MAGIC, 0x04, struct nabc_socksend)
#define NABC_IOC_SOCKSENDV _IOWR(NABC_IOC_MAGIC, 0x05, struct nabc_socksendv)
#define NABC_IOC_COPY _IOW(NABC_IOC_MAGIC, 0x06, struct nabc_copy)
#define NABC_IOC_SUM _IOWR(NABC_IOC_MAGIC, 0x07, struct nabc_sum)
#define NABC_IOC_DESTROY _IOW(NABC_IOC_MAGIC, 0x08, struct nabc_unit_id)
#define NABC_IOC_HOLD _IOW(NABC_IOC_MAGIC, 0x09, struct nabc_unit_id)
#define NABC_IOC_RELEASE _IOW(NABC_IOC_MAGIC, 0x0a, struct nabc_unit_id)
#define NABC_IOC_GRANT _IOW(NABC_IOC_MAGIC, 0x0b, struct nabc_grant)
#define NABC_IOC_REVOKE _IOW(NABC_IOC_MAGIC, 0x0c, struct nabc_grant)
#define NABC_IOC_STAT _IOWR(NABC_IOC_MAGIC, 0x0d, struct nabc_stat)
#define NABC_IOC_LIST _IOWR(NABC_IOC_MAGIC, 0x0e, struct nabc_list)
#define NABC_IOC_STATISTICS _IOR(NABC_IOC_MAGIC, 0x0f, struct nabc_statistics)
#define NABC_IOC_PUT _IOWR(NABC_IOC_MAGIC, 0x10, struct nabc_put)

/* The layout is part of the interface: the same for 32-bit and 64-bit programs. */
#ifdef __cplusplus
#define NABC_ASSERT(true_) static_assert(true_, #true_)
#else
#define NABC_ASSERT(true_) _Static_assert(true_, #true_)
#endif
#define NABC_ASSERT_AT(name, field, offset)                                                        \
	NABC_ASSERT(__builtin_offsetof(struct name, field) == (offset))

NABC_ASSERT(sizeof(struct nabc_info) == 56);
NABC_ASSERT_AT(nabc_info, page_size, 32);
NABC_ASSERT(sizeof(struct nabc_alloc) == 32);
NABC_ASSERT_AT(nabc_alloc, id, 16);
NABC_ASSERT(sizeof(struct nabc_read) == 48);
NABC_ASSERT_AT(nabc_read, fd, 40);
NABC_ASSERT(sizeof(struct nabc_insert) == 24);
NABC_ASSERT_AT(nabc_insert, linger, 16);
NABC_ASSERT(sizeof(struct nabc_socksend) == 40);
NABC_ASSERT_AT(nabc_socksend, socket, 32);
NABC_ASSERT(sizeof(struct nabc_range) == 24);
NABC_ASSERT(sizeof(struct nabc_socksendv) == 48);
NABC_ASSERT_AT(nabc_socksendv, skip, 24);
NABC_ASSERT_AT(nabc_socksendv, socket, 40);
NABC_ASSERT(sizeof(struct nabc_copy) == 32);
NABC_ASSERT(sizeof(struct nabc_sum) == 32);
NABC_ASSERT_AT(nabc_sum, sum, 24);
NABC_ASSERT(sizeof(struct nabc_unit_id) == 16);
NABC_ASSERT(sizeof(struct nabc_grant) == 24);
NABC_ASSERT_AT(nabc_grant, rights, 16);
NABC_ASSERT(sizeof(struct nabc_put) == 48);
NABC_ASSERT_AT(nabc_put, linger, 16);
NABC_ASSERT_AT(nabc_put, id, 40);
NABC_ASSERT(sizeof(struct nabc_stat) == 64);
NABC_ASSERT_AT(nabc_stat, state, 32);
NABC_ASSERT_AT(nabc_stat, flags, 60);
NABC_ASSERT(sizeof(struct nabc_list) == 24);
NABC_ASSERT_AT(nabc_list, count, 16);
NABC_ASSERT(sizeof(struct nabc_statistics) == 256);
NABC_ASSERT_AT(nabc_statistics, sum_made, 168);

#endif
