/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * The calls of /dev/nabc: Network Aware Data Buffering and Caching.
 *
 * A process opens the device once and maps its arena once.  It allocates
 * units, fills them through the arena or straight from a descriptor, inserts
 * them (from then on their bytes never change and nobody maps them), or puts
 * small ones in one call, and sends ranges of them over TCP by their ids,
 * without a copy.
 *
 * Rules for all calls:
 *  - An open file serves the process that opened it, as long as it runs the
 *    same program: a child made by fork(), another process that was passed
 *    the descriptor, and the next program after execve() get EPERM.  They open
 *    the device themselves.
 *  - Sizes, offsets and lengths count bytes.  Times count milliseconds.
 *  - Fields called reserved and unknown bits of flags must be 0, else EINVAL:
 *    later versions give them meanings.
 *  - Pointers are widened to 64 bits, so that 32-bit programs need no
 *    translation.
 *  - Every call: EFAULT for memory that cannot be read or written, EINTR or
 *    a restart when a signal comes before anything was done, ENOTTY for an
 *    unknown call, ENOMEM when the kernel itself is short of memory.
 *  - A unit is unknown (ENOENT) when it never was, when it was destroyed (but
 *    to those who hold it, who go on to send, copy, sum, stat and hold it), and
 *    as long as it is being filled through another open file, also one of the
 *    same process.  EACCES: it is there, and the caller has no right to it.
 *
 * Ids are never 0 and never name another unit, until the module is unloaded.
 */
#ifndef _UAPI_LINUX_NABC_H
#define _UAPI_LINUX_NABC_H

#include <linux/types.h>
#include <linux/ioctl.h>

#define NABC_DEVICE "/dev/nabc"

/* Raised when a structure or its meaning changes incompatibly. */
#define NABC_ABI_VERSION 1u

/*
 * NABC_IOC_INFO - what this module can do, and its measures.
 *
 * Never fails but for EFAULT and EPERM.  A caller compares version with
 * NABC_ABI_VERSION before it makes other calls.
 */
struct nabc_info {
	__u32 version;	    /* NABC_ABI_VERSION of the module */
	__u32 features;	    /* NABC_FEATURE_* */
	__u64 arena_size;   /* most bytes that one mmap() of the file may span */
	__u64 unit_max;	    /* most bytes of one unit */
	__u64 memory_limit; /* most bytes that all units of the machine may have */
	__u32 page_size;    /* units begin at a multiple of it in the arena */
	__u32 chunk_size;   /* units are made of physical runs of so many bytes */
	__u32 sum_grain;    /* bytes between two kept sums */
	__u32 linger_max;   /* most milliseconds that a unit may outlive its maker */
	__u32 ranges_max;   /* most ranges of one NABC_IOC_SOCKSENDV */
	__u32 header_max;   /* most bytes of its header */
};

/* features */
#define NABC_FEATURE_SUMS 0x1u	 /* kept checksums are used on egress when asked for */
#define NABC_FEATURE_SPLICE 0x2u /* sends pages by sendmsg (6.5 and later), not sendpage */
#define NABC_FEATURE_PUT 0x4u	 /* there is NABC_IOC_PUT; without it ENOTTY */

/*
 * mmap() - the arena of this open file.
 *
 * MAP_SHARED, offset 0, at most arena_size bytes, PROT_READ and PROT_WRITE or
 * one of them; once per process, for it costs nothing until units are filled.
 * EINVAL: MAP_PRIVATE, PROT_EXEC, another offset, too long.  EPERM: not the
 * process that opened the file.
 *
 * The unit being filled is found at arena_offset of NABC_IOC_ALLOC.  Other
 * parts of the arena give SIGBUS, inserted units too; memory of the arena is
 * not inherited over fork(), not dumped and cannot be pinned, so what would
 * (O_DIRECT, vmsplice(), process_vm_readv()) fails with EFAULT.  Parts of the
 * mapping cannot be unmapped or moved by themselves (EINVAL).
 */

/*
 * NABC_IOC_ALLOC - a new unit, to be filled.
 *
 * Its bytes are zeroes, or what this open file's own earlier units held.
 * Memory counts against RLIMIT_MEMLOCK of the caller until it is given back to
 * the kernel; what was destroyed is kept for the next units for a while, and for
 * as long as a socket refers to a byte of it.  So does what the closed files of
 * the caller's user left behind: units that linger, and what sockets refer to.
 *
 * EINVAL: size is 0.  EFBIG: size is more than unit_max.  ENOMEM: over
 * RLIMIT_MEMLOCK or the kernel is short.  ENOSPC: over memory_limit, or the
 * arena has no room for as many units being filled.
 */
struct nabc_alloc {
	__u64 size;	    /* in */
	__u32 flags;	    /* in: 0 */
	__u32 reserved;	    /* in: 0 */
	__u64 id;	    /* out */
	__u64 arena_offset; /* out: where the unit begins in the arena */
};

/*
 * NABC_IOC_READ - fill a part of a unit from a descriptor.
 *
 * One read(), or pread() when position is not -1: done may be less than
 * length, and is 0 at the end of the file.  Bytes go straight into the unit.
 *
 * Only the file that allocated the unit may fill it: to others it is unknown,
 * and from the insert on EACCES.  EBADF: fd is not open for reading.  ERANGE: not within the unit.  EROFS: the unit is
 * inserted.  EINVAL: position is less than -1, or such a file can only be
 * read() into user memory.  ESPIPE, EAGAIN, EISDIR and others: of reading it.
 */
struct nabc_read {
	__u64 id;	/* in */
	__u64 offset;	/* in: from the start of the unit */
	__u64 length;	/* in: at least 1 */
	__s64 position; /* in: in the file; -1: the descriptor's own, which moves on */
	__u64 done;	/* out: bytes that were read */
	__s32 fd;	/* in */
	__u32 flags;	/* in: 0 */
};

/*
 * NABC_IOC_INSERT - the unit is full: make it immutable and sendable.
 *
 * Its pages leave the caller's address space before the call returns.  Only
 * the file that allocated the unit may insert it, as for READ.  length cuts
 * off what was not needed; 0 keeps all.  linger: how long the unit stays when
 * the file that allocated it is closed (also by death); 0: it goes at once,
 * unless it is held.
 *
 * ERANGE: length is more than was allocated.  EINVAL: linger is more than
 * linger_max.  EROFS: inserted before.  EBUSY: an NABC_IOC_READ into it is
 * under way.
 */
struct nabc_insert {
	__u64 id;     /* in */
	__u64 length; /* in: bytes of the unit from now on; 0: as allocated */
	__u32 linger; /* in: milliseconds */
	__u32 flags;  /* in: NABC_INSERT_* */
};

#define NABC_INSERT_SUMS 0x1u /* make the checksums now, not when first needed */

/*
 * NABC_IOC_SOCKSEND - one range of a unit to a connected socket.
 *
 * Leaves without a copy.  Bytes stay as they are until acknowledged, whatever
 * happens to the unit meanwhile.  Blocks as send() does, by the socket's mode,
 * SO_SNDTIMEO, and NABC_SEND_DONTWAIT; like send(), a call that sent a part
 * succeeds, and sent tells how much.  Never raises SIGPIPE.
 *
 * EOPNOTSUPP: not a plain TCP socket over IPv4 or IPv6 (another family, MPTCP,
 * TLS or another upper protocol in the kernel, redirected by BPF): send a
 * copy, by NABC_IOC_COPY, instead.  ENOTSOCK, EBADF: not a socket.  EAGAIN:
 * would block.  ENOTCONN, EPIPE, ECONNRESET and others: of the socket.
 * ERANGE: not within the unit.  EINVAL: length is 0; NABC_SEND_MORE together
 * with NABC_SEND_CLOSE.  EBUSY: the unit is not inserted yet.
 * EACCES: NABC_SEND_DESTROY without NABC_RIGHT_DESTROY; nothing was sent.
 */
struct nabc_socksend {
	__u64 id;     /* in */
	__u64 offset; /* in */
	__u64 length; /* in */
	__u64 sent;   /* out: bytes that the socket took */
	__s32 socket; /* in */
	__u32 flags;  /* in: NABC_SEND_* */
};

/* flags of both sends; unless all bytes were sent, CLOSE and DESTROY do nothing. */
#define NABC_SEND_MORE 0x1u	/* more follows soon: leave no partial segment */
#define NABC_SEND_CLOSE 0x2u	/* then end the stream: FIN on the last segment */
#define NABC_SEND_DONTWAIT 0x4u /* do not block, whatever the socket's mode */
#define NABC_SEND_SUMS 0x8u	/* for devices that sum in software: use kept checksums */
#define NABC_SEND_DESTROY 0x10u /* then destroy the units: they were for this one */

/*
 * NABC_IOC_SOCKSENDV - header, then ranges in order, as one message.
 *
 * As NABC_IOC_SOCKSEND.  skip: so many bytes of the message were sent by
 * earlier calls, over header and ranges counted together.  The socket is not
 * locked over the whole message: one thread at a time should send.
 *
 * EINVAL: also when nothing is left to send, when range_count is over
 * ranges_max or header_length is over header_max, or a range is empty.
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
 * NABC_IOC_COPY - a range of an inserted unit to memory.
 *
 * Who may send may copy: it could send to itself.  ERANGE: not within.
 * EBUSY: not inserted yet.
 */
struct nabc_copy {
	__u64 id;     /* in */
	__u64 offset; /* in */
	__u64 length; /* in: may be 0 */
	__u64 data;   /* in: address of length bytes */
};

/*
 * NABC_IOC_SUM - the checksum of a range of an inserted unit.
 *
 * The ones' complement sum of RFC 1071, not complemented, of the range's
 * 16-bit words in network byte order (an odd last byte is the high half), as
 * a number of this machine: 0x0102 for the bytes 1, 2.  From kept sums; makes
 * them.  ERANGE: not within.  EBUSY: not inserted yet.
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
 * DESTROY: the id is unknown from now on, but to those who hold it.  For the
 * maker and who was granted NABC_RIGHT_DESTROY, else EACCES.  A unit that is
 * being filled: also EBUSY while NABC_IOC_READ is under way.
 *
 * HOLD: the unit stays until RELEASE, or the file of the call is closed:
 * destroyed, revoked, and orphaned ones too, and the holder may go on to send
 * and copy it.  For who may send.  Holds of one file count; the first one of
 * a unit also counts its memory against the holder's RLIMIT_MEMLOCK: ENOMEM.
 * EBUSY: not inserted yet.  ENOSPC: 2^32 - 1 holds.
 *
 * RELEASE: EINVAL: the file of the call does not hold it, whether there is
 * such a unit or not.
 */
struct nabc_unit_id {
	__u64 id;	/* in */
	__u32 flags;	/* in: 0 */
	__u32 reserved; /* in: 0 */
};

/*
 * NABC_IOC_GRANT, NABC_IOC_REVOKE - leave for others to use a unit.
 *
 * Only the maker may: any file of that process, before the insert only the one
 * that allocated the unit, for it is unknown to others; else EACCES.  A grant to the same principal again
 * replaces its rights.  A process is meant by its identity, not its number: a
 * later process with that number has no right.  And it is meant with the program
 * that it runs at the time of the grant: the next one after execve() has no right,
 * neither to what was granted nor to what lingers of the one before.  To revoke
 * takes the right from whatever program of the process has it.  Users and groups
 * are taken in the caller's user namespace and compared with the effective user,
 * effective group and supplementary groups of a process at each of its calls.
 * Revoking does not end sends or holds.
 *
 * EINVAL: unknown principal, rights are 0 or unknown (REVOKE: not 0), an
 * invalid uid or gid.  ESRCH: no such process.  EBADF: not a pidfd.  ENOSPC:
 * NABC_GRANTS_MAX grants.  ENOENT: REVOKE of what was not granted.
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
 * NABC_IOC_PUT - a new unit from memory: allocated, filled, inserted and granted.
 *
 * Does at once what NABC_IOC_ALLOC, a copy into the arena, NABC_IOC_INSERT and
 * NABC_IOC_GRANT do, without the arena: units of up to about chunk_size cost
 * less so, large ones more, for their bytes are copied.  All or nothing: after
 * an error there is no unit.  What another thread writes to the bytes meanwhile
 * may be in the unit or not.  principal 0 grants nothing; NABC_IOC_GRANT makes
 * more grants.
 *
 * EINVAL: size is 0, linger is more than linger_max, unknown principal, rights
 * are 0 or unknown, an invalid uid or gid; principal is 0 and who or rights are
 * not.  EFBIG: size is more than unit_max.  ENOMEM: over RLIMIT_MEMLOCK or the
 * kernel is short.  ENOSPC: over memory_limit.  EFAULT: also when a part of the
 * bytes cannot be read.  ESRCH: no such process.  EBADF: not a pidfd.
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

/*
 * NABC_IOC_STAT - what is known of a unit; for who has any right to it.
 */
struct nabc_stat {
	__u64 id;	 /* in */
	__u64 size;	 /* out: bytes */
	__u64 memory;	 /* out: bytes of memory that it takes */
	__u64 sent;	 /* out: bytes that were sent from it */
	__u32 state;	 /* out: NABC_STATE_* */
	__u32 rights;	 /* out: of the caller */
	__u32 holds;	 /* out: files that hold it */
	__u32 grants;	 /* out */
	__u32 maker_pid; /* out: in the caller's pid namespace; 0: gone, or not seen there */
	__u32 maker_uid; /* out: effective, when it was allocated */
	__u32 linger;	 /* out: milliseconds */
	__u32 flags;	 /* out: NABC_UNIT_* */
};

#define NABC_STATE_FILLING 1u
#define NABC_STATE_CACHED 2u	/* inserted */
#define NABC_STATE_DESTROYED 3u /* stays for its holders */

#define NABC_UNIT_SUMMED 0x1u /* checksums are kept */
#define NABC_UNIT_ORPHAN 0x2u /* its maker's file is closed */
#define NABC_UNIT_HELD 0x4u   /* by the file of the call */

/*
 * NABC_IOC_LIST - the units to which the caller has any right, by rising id.
 *
 * Begin with cursor 0.  Each call writes up to count structures nabc_stat and
 * moves cursor on; the list is at its end when found is less than count.
 * EINVAL: count is 0 or over NABC_LIST_MAX.
 */
struct nabc_list {
	__u64 cursor; /* in and out: ids above it are listed */
	__u64 units;  /* in: address of count structures nabc_stat */
	__u32 count;  /* in */
	__u32 found;  /* out: structures that were written */
};

#define NABC_LIST_MAX 1024u

/*
 * NABC_IOC_STATISTICS - counters since the module was loaded, and gauges.
 *
 * Those called file_ are of the open file of the call, all others of the
 * machine.  Never fails but for EFAULT and EPERM.
 */
struct nabc_statistics {
	/* gauges */
	__u64 units;	     /* that there are */
	__u64 unit_memory;   /* bytes of memory that they take */
	__u64 pooled_memory; /* bytes kept for the next units */
	__u64 orphans;	     /* units whose maker's file is closed */
	__u64 orphan_memory; /* bytes that they take */
	__u64 files;	     /* that are open */
	__u64 sum_memory;    /* bytes of kept checksums */
	__u64 hooks;	     /* devices on which kept checksums are used */
	/* counters */
	__u64 allocated;    /* units */
	__u64 pool_hits;    /* chunks for them that came from the pool */
	__u64 pool_misses;  /* chunks that came from the kernel */
	__u64 inserted;	    /* units */
	__u64 destroyed;    /* units */
	__u64 collected;    /* units of closed files that were destroyed */
	__u64 read_bytes;   /* by NABC_IOC_READ */
	__u64 sends;	    /* calls that sent something */
	__u64 sent_bytes;   /* out of units */
	__u64 header_bytes; /* out of headers */
	__u64 refused;	    /* sends to what is not plain TCP */
	__u64 shrunk;	    /* bytes of the pool that the kernel wanted back */
	__u64 aged;	    /* bytes of the pool that were not used for a time */
	/* checksums on egress */
	__u64 sum_made;	     /* bytes that were summed once, to be kept */
	__u64 sum_reused;    /* bytes sent whose kept sums were used */
	__u64 sum_touched;   /* bytes of the same packets that had to be read */
	__u64 sum_packets;   /* packets that were completed from kept sums */
	__u64 sum_fallbacks; /* packets left to the kernel, to sum in software */
	/* of the open file */
	__u64 file_units;   /* that it made and that there are */
	__u64 file_charged; /* bytes that count against its RLIMIT_MEMLOCK */
	__u64 file_pooled;  /* bytes kept for its next units */
	__u64 file_held;    /* units that it holds */
	__u64 file_left;    /* bytes of its user's closed files, which count as well */
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
