/* SPDX-License-Identifier: MIT */
/*
 * wire.h - what owner and members say to each other: the welcome that admits
 * a member, and the records of requests and responses.
 *
 * Both ends run on one machine and one architecture, so records are plain
 * structures; whoever reads one has copied it first and then checks it here.
 */
#ifndef NC_WIRE_H
#define NC_WIRE_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define NC_WIRE_MAGIC 0x4342414eu /* "NABC" */
#define NC_WIRE_VERSION 1u
#define NC_WIRE_LANES_MAX 64u
#define NC_WIRE_BLOCK_MAX 32768u

/*
 * The owner's answer to a process that joined.  With error 0 it carries the
 * descriptors: segment; and for lanes > 0 queues, request doorbell, then one
 * response doorbell a lane.
 */
struct nc_wire_welcome {
	uint32_t magic;
	uint32_t version;
	int32_t error; /* errno of a refusal, or 0 */
	uint32_t member;
	uint32_t slots;
	uint32_t generation; /* first one of every slot */
	uint32_t lanes;
	uint32_t queue_size;   /* bytes of each queue's data */
	uint64_t segment_size; /* bytes, the table included */
	uint64_t data_offset;  /* where units begin in the segment */
	uint64_t max_unit;     /* bytes */
};

struct nc_wire_request {
	uint64_t tag;
	uint32_t length; /* of the variables that follow */
	uint32_t reserved;
};

struct nc_wire_response {
	uint64_t tag;
	int32_t status;
	uint32_t flags;
	uint64_t id; /* 0: no body */
	uint64_t offset;
	uint64_t length;
	uint32_t headers_length; /* of the header lines that follow */
	uint32_t reserved;
};

static_assert(sizeof(struct nc_wire_welcome) == 56, "ABI of the attach socket");
static_assert(sizeof(struct nc_wire_request) == 16, "ABI of the request queue");
static_assert(sizeof(struct nc_wire_response) == 48, "ABI of the response queue");

/* 0, the errno of a refusal negated, or -EPROTO. */
int nc_wire_check_welcome(const struct nc_wire_welcome *welcome, size_t length, unsigned fds);

/* record: what came out of the queue, length bytes.  0 or -EPROTO. */
int nc_wire_check_request(const void *record, size_t length, struct nc_wire_request *request);
int nc_wire_check_response(const void *record, size_t length, struct nc_wire_response *response);

/* Descriptors that a welcome with that many lanes carries. */
static inline unsigned nc_wire_welcome_fds(unsigned lanes)
{
	return lanes ? 3 + lanes : 1;
}

#endif
