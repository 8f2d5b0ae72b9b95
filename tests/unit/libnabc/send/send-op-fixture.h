/* SPDX-License-Identifier: MIT */
/*
 * send-op-fixture.h - sends prepared on the caller's io_uring; the test itself plays
 * the kernel, so that it can produce every order of completions.
 */
#ifndef SEND_OP_FIXTURE_H
#define SEND_OP_FIXTURE_H

#include <errno.h>
#include <liburing.h>
#include <limits.h>
#include <nabc-async.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "send/send-op.h"

#include "async-fixture.h"
#include "suite.h"

/* A completion as the kernel would return it. */
static inline int completed(NC_send_op *operation, int32_t result, uint32_t flags)
{
	struct io_uring_cqe cqe = {.res = result, .flags = flags};

	return NC_send_op_complete(operation, &cqe);
}

/* Returns the pieces of memory that a submission sends; whole: space for a single one. */
static inline struct msghdr pieces_of(const struct io_uring_sqe *sqe, struct iovec *whole)
{
	if (sqe->opcode == IORING_OP_SEND) {
		*whole = (struct iovec){(void *)(uintptr_t)sqe->addr, sqe->len};
		return (struct msghdr){.msg_iov = whole, .msg_iovlen = 1};
	}
	ck_assert(sqe->opcode == IORING_OP_SENDMSG || sqe->opcode == IORING_OP_SENDMSG_ZC);
	return *(const struct msghdr *)(uintptr_t)sqe->addr;
}

/* Performs a submission by a plain call; returns the result as the kernel would. */
static inline int32_t perform(const struct io_uring_sqe *sqe, size_t at_most)
{
	struct iovec whole;
	const struct msghdr header = pieces_of(sqe, &whole);
	struct iovec iov[64];
	struct msghdr part = {.msg_iov = iov};
	ssize_t sent;

	ck_assert_uint_le(header.msg_iovlen, 64);
	ck_assert(sqe->msg_flags & MSG_NOSIGNAL);
	for (size_t i = 0; i < header.msg_iovlen && at_most; i++) {
		iov[i] = header.msg_iov[i];
		if (iov[i].iov_len > at_most)
			iov[i].iov_len = at_most;
		at_most -= iov[i].iov_len;
		part.msg_iovlen++;
	}
	sent = sendmsg(sqe->fd, &part, MSG_NOSIGNAL | MSG_DONTWAIT);
	return sent < 0 ? -errno : (int32_t)sent;
}

static inline void prepare(struct io_uring_sqe *sqe, NC_send_op *operation)
{
	memset(sqe, 0xaa, sizeof(*sqe));
	sqe->user_data = 4711;
	ck_assert_int_eq(NC_prep_send(sqe, operation), 0);
	ck_assert_uint_eq(sqe->user_data, 4711);
	/* Nothing of what the entry had before. */
	ck_assert_uint_eq(sqe->buf_index, 0);
	ck_assert_uint_eq(sqe->personality, 0);
	ck_assert_int_eq(sqe->splice_fd_in, 0);
	ck_assert_uint_eq(sqe->addr3, 0);
}

#endif
