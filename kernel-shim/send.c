// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sends ranges of units to a TCP socket, by references to their pages.
 *
 * No unit is locked meanwhile: the call has a reference, so the chunks remain, and
 * the socket takes references to the pages that it queues (rule 1).
 */
#include <linux/bvec.h>
#include <linux/ipv6.h>
#include <linux/net.h>
#include <linux/slab.h>
#include <linux/tcp.h>
#include <linux/uaccess.h>
#include <linux/uio.h>
#include <net/inet_connection_sock.h>
#include <net/tcp.h>
#include <net/transp_v6.h>

#include "compat.h"
#include "nabc.h"

/* Chunks passed to the socket at once: with 32, a unit of 1 MiB is one call. */
#define SEND_CHUNKS 32

/* Messages with up to this many ranges need no allocation. */
#define FEW_RANGES 4

#define SEND_FLAGS                                                                                 \
	(NABC_SEND_MORE | NABC_SEND_CLOSE | NABC_SEND_DONTWAIT | NABC_SEND_SUMS | NABC_SEND_DESTROY)

struct piece {
	struct nabc_unit *unit; /* referenced */
	u64 offset;
	u64 length;
};

struct message {
	struct socket *sock;
	u32 flags;     /* NABC_SEND_* */
	int msg_flags; /* MSG_*, for each part */
	const void __user *header;
	u64 header_length;
	struct piece *pieces;
	unsigned int count;
	u64 skip;
	u64 sent;
};

/*
 * Only plain TCP: other protocols under the same system call (TLS, MPTCP, BPF) have
 * their own rules for pages passed to them.
 */
static bool is_plain_tcp(const struct socket *sock)
{
	struct sock *sk = sock->sk;
	const struct proto *prot;

	if (!sk || !sk_is_tcp(sk))
		return false;
	prot = READ_ONCE(sk->sk_prot);
	if (sk->sk_family == AF_INET) {
		if (prot != &tcp_prot)
			return false;
#if IS_ENABLED(CONFIG_IPV6)
	} else if (sk->sk_family == AF_INET6) {
		/* tcp_prot: after IPV6_ADDRFORM, which changes the family last. */
		if (prot != &tcpv6_prot && prot != &tcp_prot)
			return false;
#endif
	} else {
		return false;
	}
	return !inet_csk_has_ulp(sk);
}

static struct socket *socket_get(int fd)
{
	struct socket *sock;
	int ret;

	sock = sockfd_lookup(fd, &ret);
	if (!sock)
		return ERR_PTR(ret);
	if (is_plain_tcp(sock))
		return sock;
	sockfd_put(sock);
	nabc_count(NABC_REFUSED, 1);
	return ERR_PTR(-EOPNOTSUPP);
}

/* Also calls the security module on kernels where sending pages does not. */
static ssize_t send_header(struct message *message)
{
	u64 skip = min(message->skip, message->header_length);
	size_t length = message->header_length - skip;
	struct msghdr msg = {.msg_flags = message->msg_flags};
	struct iovec room;
	ssize_t ret;

	if (!length && NABC_HAVE_SPLICE)
		return 0;
	if (message->count || message->flags & (NABC_SEND_MORE | NABC_SEND_CLOSE))
		msg.msg_flags |= MSG_MORE;
	ret = nabc_import((void __user *)message->header + skip, length, &room, &msg.msg_iter);
	if (!ret)
		ret = sock_sendmsg(message->sock, &msg);
	if (ret > 0) {
		message->sent += ret;
		nabc_count(NABC_HEADER_BYTES, ret);
		if (ret < length)
			return -EAGAIN;
	}
	return min_t(ssize_t, ret, 0);
}

/* Counts the sent bytes of the pieces, and advances to the rest. */
static void advance(struct message *message, unsigned int *i, u64 *at, u64 sent)
{
	message->sent += sent;
	nabc_count(NABC_SENT_BYTES, sent);
	while (sent) {
		const struct piece *piece = &message->pieces[*i];
		u64 part = min(sent, piece->length - *at);

		atomic64_add(part, &piece->unit->sent);
		sent -= part;
		*at += part;
		if (*at == piece->length) {
			++*i;
			*at = 0;
		}
	}
}

static ssize_t send_pieces(struct message *message)
{
	u64 at = message->skip - min(message->skip, message->header_length);
	struct bio_vec pages[SEND_CHUNKS];
	unsigned int i = 0;

	while (i < message->count && at >= message->pieces[i].length)
		at -= message->pieces[i++].length;
	while (i < message->count) {
		unsigned int n = 0, next = i;
		u64 from = at, length = 0, part;
		int flags = message->msg_flags;
		ssize_t ret;

		while (next < message->count && n < SEND_CHUNKS) {
			const struct piece *piece = &message->pieces[next];

			n += nabc_unit_pages(piece->unit, piece->offset + from,
					     piece->length - from, pages + n, SEND_CHUNKS - n,
					     &part);
			length += part;
			from += part;
			if (from == piece->length) {
				next++;
				from = 0;
			}
		}
		/* With CLOSE, the last segment waits for the FIN that follows at once. */
		if (next < message->count || message->flags & (NABC_SEND_MORE | NABC_SEND_CLOSE))
			flags |= MSG_MORE;
		ret = nabc_send_pages(message->sock, pages, n, length, flags);
		if (ret <= 0)
			return ret ? ret : -EAGAIN;
		advance(message, &i, &at, ret);
		if (ret < length)
			return -EAGAIN;
	}
	return 0;
}

/* Called when all was sent. */
static void send_finish(struct message *message)
{
	unsigned int i;

	if (message->flags & NABC_SEND_CLOSE)
		kernel_sock_shutdown(message->sock, SHUT_WR);
	if (!(message->flags & NABC_SEND_DESTROY))
		return;
	for (i = 0; i < message->count; i++) {
		struct nabc_unit *unit = message->pieces[i].unit;

		mutex_lock(&unit->lock);
		nabc_unit_destroy_locked(unit);
		mutex_unlock(&unit->lock);
	}
}

/* Returns 0 if anything was sent. */
static int send_message(struct message *message)
{
	bool asked = message->flags & NABC_SEND_SUMS;
	unsigned int i;
	ssize_t ret;

	message->msg_flags = MSG_NOSIGNAL;
	if (message->flags & NABC_SEND_DONTWAIT || message->sock->file->f_flags & O_NONBLOCK)
		message->msg_flags |= MSG_DONTWAIT;
	ret = send_header(message);
	if (!ret) {
		if (nabc_egress_wants(message->sock->sk, asked, &message->msg_flags)) {
			for (i = 0; i < message->count; i++)
				nabc_sums_make(message->pieces[i].unit);
		}
		ret = send_pieces(message);
	}
	if (!ret)
		send_finish(message);
	if (!message->sent)
		return ret;
	nabc_count(NABC_SENDS, 1);
	return 0;
}

static int piece_get(struct nabc_file *file, const struct nabc_range *range, u32 flags,
		     struct piece *piece)
{
	u32 rights = NABC_RIGHT_SEND | (flags & NABC_SEND_DESTROY ? NABC_RIGHT_DESTROY : 0);
	int ret;

	if (!range->length)
		return -EINVAL;
	ret = nabc_access(file, range->id, rights, &piece->unit);
	if (ret)
		return ret;
	if (!nabc_within(piece->unit, range->offset, range->length)) {
		nabc_unit_put(piece->unit);
		return -ERANGE;
	}
	piece->offset = range->offset;
	piece->length = range->length;
	return 0;
}

static bool flags_valid(u32 flags)
{
	return !(flags & ~SEND_FLAGS) &&
	       (flags & (NABC_SEND_MORE | NABC_SEND_CLOSE)) != (NABC_SEND_MORE | NABC_SEND_CLOSE);
}

int nabc_socksend(struct nabc_file *file, struct nabc_socksend *call)
{
	struct nabc_range range = {call->id, call->offset, call->length};
	struct message message = {.flags = call->flags, .count = 1};
	struct piece piece;
	int ret;

	if (!flags_valid(call->flags))
		return -EINVAL;
	message.sock = socket_get(call->socket);
	if (IS_ERR(message.sock))
		return PTR_ERR(message.sock);
	ret = piece_get(file, &range, call->flags, &piece);
	if (!ret) {
		message.pieces = &piece;
		ret = send_message(&message);
		nabc_unit_put(piece.unit);
	}
	sockfd_put(message.sock);
	call->sent = message.sent;
	return ret;
}

/* Gets all pieces or fails; adds their length to *total. */
static int pieces_get(struct nabc_file *file, const struct nabc_socksendv *call,
		      struct message *message, u64 *total)
{
	const struct nabc_range __user *ranges = u64_to_user_ptr(call->ranges);
	struct nabc_range range;
	int ret = 0;

	for (message->count = 0; message->count < call->range_count; message->count++) {
		if (copy_from_user(&range, &ranges[message->count], sizeof(range)))
			ret = -EFAULT;
		else
			ret = piece_get(file, &range, call->flags,
					&message->pieces[message->count]);
		if (ret)
			break;
		*total += range.length;
	}
	return ret;
}

int nabc_socksendv(struct nabc_file *file, struct nabc_socksendv *call)
{
	struct message message = {
		.flags = call->flags,
		.header = u64_to_user_ptr(call->header),
		.header_length = call->header_length,
		.skip = call->skip,
	};
	struct piece few[FEW_RANGES], *many = NULL;
	u64 total = call->header_length;
	int ret;

	if (!flags_valid(call->flags) || call->range_count > NABC_RANGES_MAX ||
	    call->header_length > NABC_HEADER_MAX)
		return -EINVAL;
	message.pieces = few;
	if (call->range_count > FEW_RANGES) {
		many = kmalloc_array(call->range_count, sizeof(*many), GFP_KERNEL);
		if (!many)
			return -ENOMEM;
		message.pieces = many;
	}
	message.sock = socket_get(call->socket);
	if (IS_ERR(message.sock)) {
		ret = PTR_ERR(message.sock);
		goto out;
	}
	ret = pieces_get(file, call, &message, &total);
	if (!ret && call->skip >= total)
		ret = -EINVAL;
	if (!ret)
		ret = send_message(&message);
	while (message.count)
		nabc_unit_put(message.pieces[--message.count].unit);
	sockfd_put(message.sock);
	call->sent = message.sent;
out:
	kfree(many);
	return ret;
}
