/* SPDX-License-Identifier: MIT */
/*
 * wire.h - what owner and members say to each other: hello and welcome, the
 * calls that a member makes, and the records of requests and responses.
 *
 * Both ends run on one machine and one architecture, so records are plain
 * structures; whoever reads one has copied it first and then checks it here.
 */
#ifndef NC_WIRE_H
#define NC_WIRE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nabc-worker.h>

#define NC_WIRE_MAGIC 0x4342414eu /* "NABC" */

/*
 * The newest and the oldest version that this library speaks.  Each end names both, in
 * messages whose layout never changes (hello and welcome), and both speak the newest
 * that they have in common.  Calls and replies say how long they are, and structures in
 * them are as long as the caller knows them.
 */
#define NC_WIRE_VERSION 8u
#define NC_WIRE_OLDEST 8u

#define NC_WIRE_CHANNELS_MAX 64u
#define NC_WIRE_SLOT 64u /* bytes of an entry in the table of units */
#define NC_WIRE_BLOCK_MAX 32768u

/*
 * The first message of a process that connected.  A worker was expected and sends none,
 * unless it speaks no version of the welcome's: then this is its last.
 */
struct nc_wire_hello {
	uint32_t magic;
	uint32_t version; /* the newest */
	uint32_t flags;	  /* NC_WIRE_* */
	uint32_t oldest;  /* 0: the newest, too; as versions before 8 leave it */
};

#define NC_WIRE_SEGMENT 0x1u  /* wants a segment of its own */
#define NC_WIRE_OPERATOR 0x2u /* wants to look after the whole cache */
#define NC_WIRE_POSIX 0x4u  /* of a welcome: each channel's doorbell is a pipe for its responses */
#define NC_WIRE_KERNEL 0x8u /* of a welcome: the owner takes units in the kernel module */

/*
 * The owner's reply to an attached process.  With error 0 it carries the
 * descriptors: segment, if slots > 0; and for channels > 0 queues, request
 * doorbell, then one response doorbell a channel.
 */
struct nc_wire_welcome {
	uint32_t magic;
	uint32_t version; /* the newest */
	int32_t error;	  /* errno of a refusal, or 0 */
	uint32_t member;
	uint32_t slots;
	uint32_t generation; /* first one of every slot */
	uint32_t channels;
	uint32_t queue_size;   /* bytes of each queue's data */
	uint64_t segment_size; /* bytes, the table included */
	uint64_t data_offset;  /* where units begin in the segment */
	uint64_t max_unit;     /* bytes */
	uint32_t flags;	       /* NC_WIRE_OPERATOR, NC_WIRE_POSIX, NC_WIRE_KERNEL */
	uint32_t oldest;       /* as in hello */
};

/*
 * What a member calls, and what it gets in reply.  A call may carry
 * descriptors, a reply may carry one of a unit and then that of the revocation map,
 * and bytes behind it.  The reply to an operation that the owner does not know is EOPNOTSUPP.
 */
enum nc_wire_op {
	NC_WIRE_SEAL = 1, /* [frozen] size, fraglen, slot: enter it as a unit -> id, slot */
	NC_WIRE_FETCH,	  /* id, slot -> size, fraglen, slot [frozen] */
	NC_WIRE_DROP,	  /* slot: needs it no more */
	NC_WIRE_GRANT,	  /* id, principal, who [pidfd] [frozen, size, fraglen] */
	NC_WIRE_REVOKE,	  /* id, principal, who [pidfd] */
	NC_WIRE_DESTROY,  /* id */
	NC_WIRE_LIST, /* cursor in size, stride in fraglen -> units behind, next cursor in size */
	NC_WIRE_STAT, /* id, size: of the structure -> one unit behind; operators */
	NC_WIRE_COUNTERS, /* size: of the structure -> the owner's counters behind; operators */
	NC_WIRE_ROUTES, /* id: a place, who: how many, size: stride -> routes behind, all in size; operators */
	NC_WIRE_ROUTE,	/* who: a method for the address behind; operators */
	NC_WIRE_KEEP,	/* id, slot: NC_WIRE_PRIORITY or _LIFETIME, size; operators, the maker */
	NC_WIRE_PURGE,	/* a name behind -> in size how much was forgotten; operators */
	NC_WIRE_GRANTS, /* id, cursor in size, stride in fraglen, who: how many -> grants behind, next cursor in size, all in fraglen; operators, the maker */
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

/* Whether it can be the length of a caller's structure: at least one fits behind a reply. */
static inline bool nc_wire_is_size(uint64_t size)
{
	return size > 0 && size <= NC_WIRE_BEHIND_MAX;
}

#define NC_WIRE_NO_MAP 1u	/* slot of SEAL and FETCH: the caller has no revocation map (yet) */
#define NC_WIRE_MAP_SIZE 32768u /* bytes of the revocation map */

/* What a record to a worker is. */
enum nc_wire_kind {
	NC_WIRE_REQUEST,      /* variables follow */
	NC_WIRE_REQUEST_BODY, /* the same, and a body in pieces */
	NC_WIRE_PIECE,	      /* of the body: a range follows */
	NC_WIRE_LAST,	      /* the same, or nothing, and then no more */
	NC_WIRE_CANCEL,	      /* the client is gone */
	NC_WIRE_SENT,	      /* count pieces of the response have left */
	NC_WIRE_KINDS,
};

struct nc_wire_request {
	uint64_t tag;
	union {
		uint32_t length; /* of what follows */
		uint32_t count;
	};
	uint32_t kind;
};

#define NC_WIRE_RANGES_MAX 16u

/* The ranges, struct NC_range, follow; then the header lines. */
struct nc_wire_response {
	uint64_t tag;
	int32_t status;
	uint32_t flags; /* NC_RESPONSE_* */
	uint32_t headers_length;
	uint32_t ranges; /* how many */
};

static_assert(sizeof(struct nc_wire_welcome) == 64, "ABI of the attach socket");
static_assert(sizeof(struct nc_wire_hello) == 16, "ABI of the attach socket");
static_assert(sizeof(struct nc_wire_call) == 56, "ABI of the attach socket");
static_assert(sizeof(struct nc_wire_reply) == 56, "ABI of the attach socket");
static_assert(sizeof(struct nc_wire_request) == 16, "ABI of the request queue");
static_assert(sizeof(struct nc_wire_response) == 24, "ABI of the response queue");
static_assert(sizeof(struct NC_range) == 24, "ABI of the queues");

/* The newest version that both ends speak, of what the other one names; 0: none. */
uint32_t nc_wire_common(uint32_t version, uint32_t oldest);

/* 0; the errno of a refusal negated; -EPROTO; -EPROTONOSUPPORT: no version in common. */
int nc_wire_check_welcome(const struct nc_wire_welcome *welcome, size_t length, unsigned fds);

/* 0; -EPROTO; -EPROTONOSUPPORT: no version in common. */
int nc_wire_check_hello(const struct nc_wire_hello *hello, size_t length);

/*
 * message: what came, length bytes; its head is copied.  0 or -EPROTO.  A newer member may
 * call for an operation that this library does not know: the call is good then.
 */
int nc_wire_check_call(const void *message, size_t length, unsigned fds, struct nc_wire_call *call);

/* The same of a reply. */
int nc_wire_check_reply(const void *message, size_t length, unsigned fds,
			struct nc_wire_reply *reply);

/*
 * record: what came out of the queue, length bytes, aligned as malloc() aligns.  0 or
 * -EPROTO.  Whether the tag is one that may be spoken of is for the caller to know.
 */
int nc_wire_check_request(const void *record, size_t length, struct nc_wire_request *request);
int nc_wire_check_response(const void *record, size_t length, struct nc_wire_response *response);

#define NC_WIRE_KEPT (0xffff0000u | NC_RESPONSE_KEEP) /* what says which units stay */

/* Whether all bits have a meaning for a response of that many ranges. */
static inline bool nc_wire_flags_good(uint32_t flags, uint32_t ranges)
{
	uint32_t drops = (NC_RESPONSE_DROP(ranges) - 1) & ~(NC_RESPONSE_DROP(0) - 1);

	return !(flags & ~(NC_RESPONSE_KEEP | NC_RESPONSE_MORE | drops)) &&
	       (flags & NC_RESPONSE_KEEP || !(flags & drops));
}

/* Whether the unit of range i is to stay once it is sent. */
static inline bool nc_wire_keeps(uint32_t flags, unsigned i)
{
	return flags & NC_RESPONSE_KEEP && !(flags & NC_RESPONSE_DROP(i));
}

/* Whether the ranges have a byte. */
static inline bool nc_wire_has_bytes(const struct NC_range *ranges, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (ranges[i].length)
			return true;
	return false;
}

/* The ranges of a response that was checked, and its header lines. */
static inline const struct NC_range *nc_wire_ranges(const void *record)
{
	return (const struct NC_range *)(const void *)((const char *)record +
						       sizeof(struct nc_wire_response));
}

static inline const char *nc_wire_headers(const void *record, const struct nc_wire_response *head)
{
	return (const char *)record + sizeof(*head) + head->ranges * sizeof(struct NC_range);
}

/* Descriptors that a welcome with that many channels carries. */
static inline unsigned nc_wire_welcome_fds(const struct nc_wire_welcome *welcome)
{
	return (welcome->slots ? 1 : 0) + (welcome->channels ? 2 + welcome->channels : 0);
}

#endif
