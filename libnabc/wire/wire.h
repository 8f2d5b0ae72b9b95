/* SPDX-License-Identifier: MIT */
/*
 * wire.h - the protocol between owner and members: hello and welcome, the calls of
 * members, and the records of requests and responses.
 *
 * Both ends run on one machine and one architecture, so records are plain
 * structures.  The receiver first copies a record, then checks the copy here.
 */
#ifndef NC_WIRE_H
#define NC_WIRE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nabc-worker.h>
#include <nabc.h>

#define NC_WIRE_MAGIC 0x4342414eu /* "NABC" */

/*
 * The newest and the oldest version that this library speaks.  Each end states
 * both, in messages whose layout never changes (hello and welcome), and both use
 * the newest common version.  Calls and replies state their length, and structures
 * in them have the size that the caller knows.  Version 9 has NC_RESPONSE_REPLACE and
 * NC_RESPONSE_INTERIM, and header lines of a last piece without ranges: trailer fields.
 */
#define NC_WIRE_VERSION 9u
#define NC_WIRE_OLDEST 8u

#define NC_WIRE_CHANNELS_MAX 64u
#define NC_WIRE_SLOT 64u /* bytes of an entry in the table of units */
#define NC_WIRE_BLOCK_MAX 32768u

/*
 * The first message of a process that connected.  A worker does not send it, except
 * as its last message, if it speaks none of the welcome's versions.
 */
struct nc_wire_hello {
	uint32_t magic;
	uint32_t version; /* the newest version */
	uint32_t flags;	  /* NC_WIRE_* */
	uint32_t oldest;  /* the oldest version; 0: the same as version (before 8) */
};

#define NC_WIRE_SEGMENT 0x1u  /* requests a segment of its own */
#define NC_WIRE_OPERATOR 0x2u /* requests to manage the whole cache */
#define NC_WIRE_POSIX 0x4u  /* in a welcome: each channel's doorbell is a pipe for its responses */
#define NC_WIRE_KERNEL 0x8u /* in a welcome: the owner accepts units in the kernel module */
#define NC_WIRE_EAGER_SUMS 0x10u /* in a welcome: the cache has NC_CACHE_EAGER_SUMS */

/*
 * The owner's reply to an attached process.  With error 0 it carries the
 * descriptors: the segment, if slots > 0; for channels > 0 the queues, the request
 * doorbell, and one response doorbell per channel.
 */
struct nc_wire_welcome {
	uint32_t magic;
	uint32_t version; /* the newest version */
	int32_t error;	  /* errno of a refusal, or 0 */
	uint32_t member;
	uint32_t slots;
	uint32_t generation; /* first one of every slot */
	uint32_t channels;
	uint32_t queue_size;   /* bytes of data in each queue */
	uint64_t segment_size; /* bytes, including the table */
	uint64_t data_offset;  /* where units begin in the segment */
	uint64_t max_unit;     /* bytes */
	uint32_t flags;	       /* NC_WIRE_OPERATOR, _POSIX, _KERNEL, _EAGER_SUMS */
	uint32_t oldest;       /* as in hello */
};

/*
 * The calls of a member, with their arguments -> results.  A call may carry
 * descriptors.  A reply may carry that of a unit, then that of the revocation map,
 * and bytes that follow it.  The reply to an operation that the owner does not know is
 * EOPNOTSUPP.
 */
enum nc_wire_op {
	NC_WIRE_SEAL = 1, /* [frozen] size, fraglen, slot: enters a unit -> id, slot */
	NC_WIRE_FETCH,	  /* id, slot -> size, fraglen, slot [frozen] */
	NC_WIRE_DROP,	  /* slot: no longer needed */
	NC_WIRE_GRANT,	  /* id, principal, who [pidfd] [frozen, size, fraglen] */
	NC_WIRE_REVOKE,	  /* id, principal, who [pidfd] */
	NC_WIRE_DESTROY,  /* id */
	NC_WIRE_LIST, /* cursor in size, stride in fraglen -> units follow, next cursor in size */
	NC_WIRE_STAT, /* id, size of the structure -> one unit follows; operators */
	NC_WIRE_COUNTERS, /* size of the structure -> the owner's counters follow; operators */
	/* id: position, who: count, size: stride -> routes follow, total in size; operators */
	NC_WIRE_ROUTES,
	NC_WIRE_ROUTE, /* who: method; the address follows; operators */
	NC_WIRE_KEEP,  /* id, slot: NC_WIRE_PRIORITY or _LIFETIME, size; operators, the maker */
	NC_WIRE_PURGE, /* a name follows -> how many were purged in size; operators */
	/*
	 * id, cursor in size, stride in fraglen, who: count -> grants follow, next cursor in size,
	 * total in fraglen; operators, the maker
	 */
	NC_WIRE_GRANTS,
	/*
	 * A worker has joined: so the owner finds out at once whether it is the process that it has
	 * started.  The worker skips the reply.
	 */
	NC_WIRE_JOINED,
	NC_WIRE_NAME_SET, /* id, who: NC_NAME_*; a name follows; members that may set names */
	/*
	 * A name follows -> id of a unit of the caller's own, or id, size, fraglen, slot [frozen].
	 * Without the descriptor, the caller has the unit already.
	 */
	NC_WIRE_NAME_HOLD,
	NC_WIRE_NAME_REMOVE, /* id, 0: of any unit; a name follows; members that may set names */
	NC_WIRE_OPS,
};

#define NC_WIRE_PRIORITY 1u
#define NC_WIRE_LIFETIME 2u

struct nc_wire_call {
	uint32_t magic;
	uint32_t op;
	uint64_t tag;
	uint64_t id;
	uint64_t size;
	uint64_t fraglen;
	uint32_t slot;
	uint32_t principal; /* enum NC_principal */
	uint32_t who;
	uint32_t length; /* of the bytes that follow */
};

struct nc_wire_reply {
	uint32_t magic;
	int32_t error; /* errno, or 0 */
	uint64_t tag;  /* of the call */
	uint64_t id;
	uint64_t size;
	uint64_t fraglen;
	uint32_t slot;
	uint32_t flags;	 /* NC_WIRE_* */
	uint32_t length; /* of the bytes that follow */
	uint32_t reserved;
};

#define NC_WIRE_HAS_UNIT 0x1u /* descriptor: a frozen segment */
#define NC_WIRE_HAS_MAP 0x2u  /* descriptor: the revocation map, the last one */
#define NC_WIRE_BEHIND_MAX 16384u

/* Whether a caller's structure may have that size: one must fit behind a reply. */
static inline bool nc_wire_is_size(uint64_t size)
{
	return size > 0 && size <= NC_WIRE_BEHIND_MAX;
}

#define NC_WIRE_NO_MAP 1u	/* slot of SEAL and FETCH: the caller has no revocation map yet */
#define NC_WIRE_MAP_SIZE 32768u /* bytes of the revocation map */

/* Kind of a record that is sent to a worker. */
enum nc_wire_kind {
	NC_WIRE_REQUEST,      /* variables follow */
	NC_WIRE_REQUEST_BODY, /* the same, and a body in pieces */
	NC_WIRE_PIECE,	      /* of the body: a range follows */
	NC_WIRE_LAST,	      /* a last range, or nothing, follows */
	NC_WIRE_CANCEL,	      /* the client is gone */
	NC_WIRE_SENT,	      /* count pieces of the response were sent */
	NC_WIRE_KINDS,
};

struct nc_wire_request {
	uint64_t tag;
	union {
		uint32_t length; /* bytes that follow */
		uint32_t count;
	};
	uint32_t kind;
};

#define NC_WIRE_RANGES_MAX 16u

/* Followed by the ranges (struct NC_range), then the header lines. */
struct nc_wire_response {
	uint64_t tag;
	int32_t status;
	uint32_t flags; /* NC_RESPONSE_* */
	uint32_t headers_length;
	uint32_t ranges; /* number of ranges */
};

static_assert(sizeof(struct nc_wire_welcome) == 64, "ABI of the attach socket");
static_assert(sizeof(struct nc_wire_hello) == 16, "ABI of the attach socket");
static_assert(sizeof(struct nc_wire_call) == 56, "ABI of the attach socket");
static_assert(sizeof(struct nc_wire_reply) == 56, "ABI of the attach socket");
static_assert(sizeof(struct nc_wire_request) == 16, "ABI of the request queue");
static_assert(sizeof(struct nc_wire_response) == 24, "ABI of the response queue");
static_assert(sizeof(struct NC_range) == 24, "ABI of the queues");

/* Returns the newest version that both ends speak, given the other end's versions; 0: none. */
uint32_t nc_wire_common(uint32_t version, uint32_t oldest);

/* Returns 0, the negated errno of a refusal, -EPROTO, or -EPROTONOSUPPORT (no common version). */
int nc_wire_check_welcome(const struct nc_wire_welcome *welcome, size_t length, unsigned fds);

/* Returns 0, -EPROTO, or -EPROTONOSUPPORT (no common version). */
int nc_wire_check_hello(const struct nc_wire_hello *hello, size_t length);

/*
 * Checks a received call of length bytes and copies its head.  Returns 0 or -EPROTO.  An operation
 * that this library does not know is good: a newer member may call it.
 */
int nc_wire_check_call(const void *message, size_t length, unsigned fds, struct nc_wire_call *call);

/* Checks a received reply and copies its head.  Returns 0 or -EPROTO. */
int nc_wire_check_reply(const void *message, size_t length, unsigned fds,
			struct nc_wire_reply *reply);

/*
 * Check a record of length bytes from a queue, aligned as malloc() aligns.  Return
 * 0 or -EPROTO.  The caller must check whether the tag is valid.
 */
int nc_wire_check_request(const void *record, size_t length, struct nc_wire_request *request);
int nc_wire_check_response(const void *record, size_t length, struct nc_wire_response *response);

/* Returns the value of a variable among length bytes of "NAME=value" strings, or NULL. */
const char *nc_wire_variable(const char *variables, size_t length, const char *name);

#define NC_WIRE_KEPT (0xffff0000u | NC_RESPONSE_KEEP) /* flags that state which units are kept */

/* Whether all flags are valid for a response with that many ranges. */
static inline bool nc_wire_flags_good(uint32_t flags, uint32_t ranges)
{
	uint32_t drops = (NC_RESPONSE_DROP(ranges) - 1) & ~(NC_RESPONSE_DROP(0) - 1);

	return !(flags & ~(NC_RESPONSE_KEEP | NC_RESPONSE_MORE | drops)) &&
	       (flags & NC_RESPONSE_KEEP || !(flags & drops));
}

/* Whether the status is that of an interim response; 101 is none, since it ends the request. */
static inline bool nc_wire_is_interim(int status)
{
	return status >= 100 && status <= 199 && status != 101;
}

/* Whether a response leaves HTTP: bytes follow in both directions, which its pieces are. */
static inline bool nc_wire_switches(int status, uint32_t flags)
{
	return status == 101 && flags & NC_RESPONSE_MORE;
}

/* Whether the unit of range i is kept after it is sent. */
static inline bool nc_wire_keeps(uint32_t flags, unsigned i)
{
	return flags & NC_RESPONSE_KEEP && !(flags & NC_RESPONSE_DROP(i));
}

/* Whether the ranges contain at least one byte. */
static inline bool nc_wire_has_bytes(const struct NC_range *ranges, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (ranges[i].length)
			return true;
	return false;
}

/* Return the ranges of a checked response, and its header lines. */
static inline const struct NC_range *nc_wire_ranges(const void *record)
{
	return (const struct NC_range *)(const void *)((const char *)record +
						       sizeof(struct nc_wire_response));
}

static inline const char *nc_wire_headers(const void *record, const struct nc_wire_response *head)
{
	return (const char *)record + sizeof(*head) + head->ranges * sizeof(struct NC_range);
}

/* Returns the number of descriptors that a welcome with that many channels carries. */
static inline unsigned nc_wire_welcome_fds(const struct nc_wire_welcome *welcome)
{
	return (welcome->slots ? 1 : 0) + (welcome->channels ? 2 + welcome->channels : 0);
}

#endif
