/* SPDX-License-Identifier: MIT */
/*
 * transmit.c - one message (header + ranges) to a socket.
 *
 * copy     sendmsg() of header and ranges together; always possible.
 * splice   sendfile() from the segment: page references move, bytes do not.
 *          Only from appended segments, whose memory is never written again
 *          (invariant 1), and only while SIGPIPE is ignored, because
 *          sendfile() knows no MSG_NOSIGNAL.
 * zerocopy IORING_OP_SEND_ZC from recycled segments to other machines; the
 *          unit stays held until the kernel's notification.
 *
 * A fast method takes or declines each piece; copy is what remains.  Units
 * are held from the first byte to the return.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/socket.h>

#include "transmit.h"

#define IOVECS 64u
#define SPLICE_MIN ((size_t)32 << 10)
#define ZEROCOPY_MIN ((size_t)64 << 10)
/* Copied behind a spliced body so that MSG_MORE can stand on the last bytes. */
#define TAIL ((size_t)4 << 10)
#define FLAGS (NC_SEND_MORE | NC_SEND_CLOSE | NC_SEND_DONTWAIT | NC_SEND_HELD)

/* A message on its way: where it is, and what may still be tried. */
struct passage {
	struct nc_transmit *transmit;
	int socket;
	const struct NC_send *message;
	struct nc_view *views;
	size_t total;	/* bytes of the message */
	size_t at;	/* bytes sent, skipped ones included */
	unsigned range; /* the range that `at` lies in; range_count: none left */
	size_t within;	/* bytes of that range sent */
	bool may_splice, may_zerocopy;
	unsigned route;
};

enum method { TAKE_COPY, TAKE_SPLICE, TAKE_ZEROCOPY };

static bool sigpipe_ignored(void)
{
	struct sigaction action;

	return sigaction(SIGPIPE, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

/* sendfile() would write into anything; the other methods refuse it. */
static bool is_socket(int fd)
{
	int type;
	socklen_t length = sizeof(type);

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0;
}

/* Whether the end of the message must carry MSG_MORE. */
static bool holds_back(const struct NC_send *message)
{
	return message->flags & (NC_SEND_MORE | NC_SEND_CLOSE);
}

/* What remains of a range for a fast method; the tail is kept back for a copy. */
static size_t fast_length(const struct passage *passage, unsigned range, size_t within)
{
	size_t left = passage->message->ranges[range].length - within;

	if (range + 1 == passage->message->range_count && holds_back(passage->message))
		return left > TAIL ? left - TAIL : 0;
	return left;
}

static enum method method_of(const struct passage *passage, unsigned range, size_t within)
{
	const struct nc_unit *unit = passage->views[range].unit;
	size_t length = fast_length(passage, range, within);

	if (!nc_layout_gapless(&unit->layout))
		return TAKE_COPY;
	if (unit->store->kind == NC_KIND_APPENDED)
		return passage->may_splice && length >= SPLICE_MIN ? TAKE_SPLICE : TAKE_COPY;
	return passage->may_zerocopy && length >= ZEROCOPY_MIN ? TAKE_ZEROCOPY : TAKE_COPY;
}

/* Statistics are of units: the header's bytes do not count. */
static void count_body(const struct passage *passage, enum NC_method method, size_t sent)
{
	size_t head = passage->message->header_length;

	head = passage->at < head ? head - passage->at : 0;
	if (sent > head)
		nc_cache_count(passage->transmit->cache, method, sent - head);
}

static void advance(struct passage *passage, size_t bytes)
{
	const struct NC_send *message = passage->message;

	if (passage->at < message->header_length) {
		size_t head = message->header_length - passage->at;

		head = bytes < head ? bytes : head;
		passage->at += head;
		bytes -= head;
	}
	passage->at += bytes;
	passage->within += bytes;
	while (passage->range < message->range_count &&
	       passage->within >= message->ranges[passage->range].length) {
		passage->within -= message->ranges[passage->range].length;
		passage->range++;
	}
}

/* Header and ranges from here on, up to a piece that a fast method takes. */
static ssize_t send_copy(struct passage *passage)
{
	const struct NC_send *message = passage->message;
	struct iovec iov[IOVECS];
	struct msghdr header = {.msg_iov = iov};
	size_t planned = 0, within = passage->within;
	unsigned count = 0;
	int flags = MSG_NOSIGNAL;
	ssize_t sent;

	if (passage->at < message->header_length) {
		iov[0].iov_base = (char *)message->header + passage->at;
		iov[0].iov_len = message->header_length - passage->at;
		planned = iov[0].iov_len;
		count = 1;
	}
	for (unsigned i = passage->range; i < message->range_count && count < IOVECS; i++) {
		const struct NC_range *range = &message->ranges[i];
		size_t covered = 0;

		/* Right behind a header the choice is made here; else by the caller. */
		if (planned && method_of(passage, i, within) != TAKE_COPY)
			break;
		count += nc_layout_iovec(&passage->views[i].unit->layout,
					 nc_unit_base(passage->views[i].unit),
					 range->offset + within, range->length - within,
					 iov + count, IOVECS - count, &covered);
		planned += covered;
		within = 0;
	}
	header.msg_iovlen = count;
	if (passage->at + planned < passage->total || holds_back(message))
		flags |= MSG_MORE;
	if (message->flags & NC_SEND_DONTWAIT)
		flags |= MSG_DONTWAIT;
	do {
		sent = sendmsg(passage->socket, &header, flags);
	} while (sent < 0 && errno == EINTR);
	if (sent < 0)
		return -errno;
	count_body(passage, NC_METHOD_COPY, (size_t)sent);
	advance(passage, (size_t)sent);
	return (size_t)sent < planned ? 0 : sent;
}

static ssize_t send_splice(struct passage *passage)
{
	const struct nc_unit *unit = passage->views[passage->range].unit;
	size_t length = fast_length(passage, passage->range, passage->within);
	off_t from = (off_t)(unit->at + passage->message->ranges[passage->range].offset +
			     passage->within);
	ssize_t sent;

	do {
		sent = sendfile(passage->socket, unit->store->segment.fd, &from, length);
	} while (sent < 0 && errno == EINTR);
	if (sent < 0 && (errno == EINVAL || errno == EOPNOTSUPP)) {
		/* Declined: a socket that takes no pages. */
		passage->may_splice = false;
		return 1;
	}
	if (sent < 0)
		return -errno;
	count_body(passage, NC_METHOD_SPLICE, (size_t)sent);
	advance(passage, (size_t)sent);
	return (size_t)sent < length ? 0 : sent;
}

/* A zero-copy send that the kernel has not finished with: it holds its unit. */
struct nc_flight {
	struct nc_flight *next, **link;
	size_t id;
	unsigned route;
};

static struct nc_flight *flight_open(struct nc_transmit *transmit, size_t id, unsigned route)
{
	struct nc_flight *flight = malloc(sizeof(*flight));
	struct nc_view hold;

	if (!flight)
		return NULL;
	/* The message holds the unit already, so this cannot miss it. */
	if (nc_cache_hold(transmit->cache, id, true, &hold)) {
		free(flight);
		return NULL;
	}
	pthread_mutex_lock(&transmit->lock);
	*flight = (struct nc_flight){
		.next = transmit->flights, .link = &transmit->flights, .id = id, .route = route};
	if (flight->next)
		flight->next->link = &flight->next;
	transmit->flights = flight;
	pthread_mutex_unlock(&transmit->lock);
	return flight;
}

static void flight_close(struct nc_transmit *transmit, struct nc_flight *flight)
{
	pthread_mutex_lock(&transmit->lock);
	*flight->link = flight->next;
	if (flight->next)
		flight->next->link = flight->link;
	pthread_mutex_unlock(&transmit->lock);
	(void)nc_cache_release(transmit->cache, flight->id);
	free(flight);
}

static void zerocopy_sent(void *context, uint64_t token, bool copied)
{
	struct nc_transmit *transmit = context;
	struct nc_flight *flight = (struct nc_flight *)(uintptr_t)token;

	if (copied) {
		nc_route_copied(&transmit->routes, flight->route);
		atomic_fetch_add_explicit(&nc_cache_counters(transmit->cache)->zerocopy_copied, 1,
					  memory_order_relaxed);
	}
	flight_close(transmit, flight);
}

static ssize_t send_zerocopy(struct passage *passage)
{
	struct nc_transmit *transmit = passage->transmit;
	const struct NC_range *range = &passage->message->ranges[passage->range];
	const struct nc_view *view = &passage->views[passage->range];
	size_t length = fast_length(passage, passage->range, passage->within);
	struct nc_flight *flight = flight_open(transmit, view->id, passage->route);
	bool notify, more = passage->at + length < passage->total;
	ssize_t sent = -ENOMEM;

	if (flight) {
		sent = nc_ring_send(&transmit->ring, passage->socket,
				    nc_unit_base(view->unit) + range->offset + passage->within,
				    length, more, (uintptr_t)flight, &notify, zerocopy_sent,
				    transmit);
		if (!notify)
			flight_close(transmit, flight);
	}
	if (sent < 0) {
		/* Declined: busy, out of lockable memory, or for copy to wait. */
		passage->may_zerocopy = false;
		return 1;
	}
	count_body(passage, NC_METHOD_ZEROCOPY, (size_t)sent);
	advance(passage, (size_t)sent);
	/* Full: it is for copy to wait, or to say that it may not. */
	if ((size_t)sent < length)
		passage->may_zerocopy = false;
	return 1;
}

/* Sends until all is gone or the socket takes no more; -errno stops too. */
static ssize_t send_all(struct passage *passage)
{
	ssize_t result = 1;

	while (result > 0 && passage->at < passage->total) {
		enum method method = TAKE_COPY;

		if (passage->at >= passage->message->header_length)
			method = method_of(passage, passage->range, passage->within);
		if (method == TAKE_SPLICE)
			result = send_splice(passage);
		else if (method == TAKE_ZEROCOPY)
			result = send_zerocopy(passage);
		else
			result = send_copy(passage);
	}
	return result;
}

/* Which fast methods this message may use at all: asked once, only if it matters. */
static void consider(struct passage *passage)
{
	const struct NC_send *message = passage->message;

	for (unsigned i = 0; i < message->range_count; i++) {
		bool appended = passage->views[i].unit->store->kind == NC_KIND_APPENDED;

		if (appended && message->ranges[i].length >= SPLICE_MIN && !passage->may_splice &&
		    !(message->flags & NC_SEND_DONTWAIT))
			passage->may_splice = sigpipe_ignored() && is_socket(passage->socket);
		if (!appended && message->ranges[i].length >= ZEROCOPY_MIN &&
		    !passage->may_zerocopy && passage->transmit->ring.usable)
			passage->may_zerocopy = nc_route_zerocopy(&passage->transmit->routes,
								  passage->socket, &passage->route);
	}
}

static int check(const struct NC_send *message, size_t *total)
{
	if (!message || message->range_count > NC_RANGES_MAX || (message->flags & ~FLAGS) ||
	    (message->header_length && !message->header) ||
	    (message->range_count && !message->ranges))
		return -EINVAL;
	*total = message->header_length;
	for (unsigned i = 0; i < message->range_count; i++)
		if (__builtin_add_overflow(*total, message->ranges[i].length, total))
			return -ERANGE;
	if (*total > SSIZE_MAX)
		return -ERANGE;
	return message->skip > *total ? -EINVAL : 0;
}

static int hold_all(struct passage *passage, unsigned *held)
{
	const struct NC_send *message = passage->message;

	for (*held = 0; *held < message->range_count; (*held)++) {
		const struct NC_range *range = &message->ranges[*held];
		struct nc_view *view = &passage->views[*held];
		int error = nc_cache_hold(passage->transmit->cache, range->id,
					  message->flags & NC_SEND_HELD, view);

		if (error)
			return error;
		if (range->offset > view->unit->layout.size ||
		    range->length > view->unit->layout.size - range->offset) {
			(*held)++;
			return -ERANGE;
		}
	}
	return 0;
}

ssize_t nc_transmit_send(struct nc_transmit *transmit, int socket, const struct NC_send *message)
{
	struct nc_view views[NC_RANGES_MAX];
	struct passage passage = {
		.transmit = transmit, .socket = socket, .message = message, .views = views};
	ssize_t result;
	unsigned held;
	int error = check(message, &passage.total);

	if (error)
		return error;
	result = hold_all(&passage, &held);
	if (result == 0) {
		advance(&passage, message->skip);
		consider(&passage);
		result = send_all(&passage);
	}
	if (result >= 0 && passage.at == passage.total && (message->flags & NC_SEND_CLOSE) &&
	    shutdown(socket, SHUT_WR) < 0)
		result = -errno;
	while (held)
		(void)nc_cache_release(transmit->cache, views[--held].id);
	if (result < 0 && passage.at <= message->skip)
		return result;
	return (ssize_t)(passage.at - message->skip);
}

unsigned nc_transmit_reap(struct nc_transmit *transmit)
{
	return nc_ring_reap(&transmit->ring, zerocopy_sent, transmit);
}

void nc_transmit_init(struct nc_transmit *transmit, struct nc_cache *cache)
{
	*transmit = (struct nc_transmit){.cache = cache};
	pthread_mutex_init(&transmit->lock, NULL);
	nc_ring_init(&transmit->ring, !(cache->flags & NC_CACHE_NO_URING));
}

void nc_transmit_fini(struct nc_transmit *transmit)
{
	nc_ring_fini(&transmit->ring);
	while (transmit->flights)
		flight_close(transmit, transmit->flights);
	pthread_mutex_destroy(&transmit->lock);
}
