/* SPDX-License-Identifier: MIT */
/*
 * transmit.c - sends one message (header, ranges, texts) to a socket: each piece by the
 * first method that takes it.
 *
 * copy     send() of all pieces together; always possible, and in this file
 * splice   page references to memory that is never written again (splice.c)
 * zerocopy memory of all kinds to other machines (zerocopy.c)
 * kernel   units in the kernel module, with the header or text before them (kernel.c)
 *
 * transmit-plan.c selects the methods that may be tried.  Units are held from the
 * first byte to the return, and longer if a send is still in flight.
 */
#include <errno.h>
#include <nabc-worker.h>
#include <nabc.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "cache/index.h"
#include "os/device.h"
#include "os/registered.h"
#include "os/ring.h"
#include "os/socket.h"
#include "send/choice.h"
#include "send/kernel.h"
#include "send/message.h"
#include "send/method.h"
#include "send/route.h"
#include "send/splice.h"
#include "send/transmit-internal.h"
#include "send/transmit.h"

#define IOVECS (1u + NC_RANGES_MAX + NC_TEXTS_MAX)
#define GATHER_MAX ((size_t)12 << 10) /* bytes, on the stack */

/*
 * Measured on a loopback with bench/null-server, 16 and 64 connections: lending 128 KB costs
 * 1.12 and 1.24 times the CPU time of a copy and gives 5 and 16 % less throughput; lending
 * 256 KB costs 0.83 and 0.76 times the CPU time.
 */
#define LOCAL_SPLICE ((size_t)256 << 10)

/* Fits into a segment of any network. */
#define SEGMENT_MIN ((size_t)500)
/* A socket that was full rarely takes more than this at once. */
#define LATE_MAX ((size_t)64 << 10)

/* The least CPU time with which a program waits until a socket has space, and calls again. */
#define AGAIN_NS 1000u

/* In the order of preference; the rest is copied. */
static const struct nc_method *const methods[] = {&nc_kernel_method, &nc_splice_method,
						  &nc_zerocopy_method};

/* Returns the method other than copy that takes that range; NULL: none. */
static const struct nc_method *find_method(const struct nc_sending *sending, unsigned range)
{
	size_t length;

	if (!sending->any)
		return NULL;
	length = nc_message_share(&sending->message, range);
	for (unsigned i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		if (nc_sending_may(sending, methods[i]->id, length) &&
		    methods[i]->takes(sending, range))
			return methods[i];
	return NULL;
}

/* Returns the first range behind those to be copied now. */
static unsigned copied_until(const struct nc_sending *sending)
{
	const struct nc_message *message = &sending->message;
	const struct NC_send *spec = message->spec;
	unsigned end = message->range;

	/* Copy was selected for this range, unless memory is next. */
	if (!message->memory)
		end++;
	else if (end < spec->range_count && find_method(sending, end))
		return end;
	else
		end++;
	while (end < spec->range_count && !find_method(sending, end))
		end++;
	return end < spec->range_count ? end : spec->range_count;
}

/* Sends small pieces as one, which costs the kernel less. */
static ssize_t send_pieces(int socket, struct iovec *pieces, unsigned count, size_t length,
			   int flags)
{
	struct msghdr header = {.msg_iov = pieces, .msg_iovlen = count};
	char gathered[GATHER_MAX], *to = gathered;

	if (count == 1)
		return send(socket, pieces->iov_base, length, flags);
	if (length > sizeof(gathered))
		return sendmsg(socket, &header, flags);
	for (unsigned i = 0; i < count; i++) {
		memcpy(to, pieces[i].iov_base, pieces[i].iov_len);
		to += pieces[i].iov_len;
	}
	return send(socket, gathered, length, flags);
}

static int send_copy(struct nc_sending *sending)
{
	struct nc_message *message = &sending->message;
	struct iovec iov[IOVECS];
	unsigned count, end = copied_until(sending);
	int flags = MSG_NOSIGNAL, error = nc_message_fetch(message, end);
	size_t planned;
	ssize_t sent;

	if (error)
		return error;
	count = nc_message_plan(message, end, iov, IOVECS, &planned);
	if (nc_message_more(message, planned))
		flags |= MSG_MORE;
	if (message->spec->flags & NC_SEND_DONTWAIT)
		flags |= MSG_DONTWAIT;
	do {
		sent = send_pieces(sending->socket, iov, count, planned, flags);
	} while (sent < 0 && errno == EINTR);
	if (sent < 0)
		return -errno;
	/* A short send also pushes a partial segment. */
	sending->pushed = (size_t)sent < planned;
	return nc_sending_moved(sending, NC_METHOD_COPY, planned, (size_t)sent);
}

/* Returns the method that sends the next part; NULL: copy. */
static const struct nc_method *next_method(const struct nc_sending *sending)
{
	const struct nc_message *message = &sending->message;
	const struct nc_method *method = NULL;

	if (message->range < message->spec->range_count)
		method = find_method(sending, message->range);
	if (method && message->memory && !(method->headed && nc_kernel_next(message)))
		return NULL;
	return method;
}

/* Sends until all that may be sent is, the socket is full, or an error occurs. */
static int send_all(struct nc_sending *sending)
{
	struct nc_message *message = &sending->message;
	int result = 1;

	while (result > 0 && message->at < message->end) {
		const struct nc_method *method = next_method(sending);

		result = method ? method->send(sending) : send_copy(sending);
	}
	return result;
}

/* --- segments ----------------------------------------------------------------- */

/*
 * Whether the last, partial segment must wait for what follows: the FIN, or more
 * bytes, unless the message fits into one segment, which MSG_MORE holds back as
 * well.  If much is left after a short send, this call will hardly reach the end
 * either.  Nor will one whose limit cuts the message.
 */
static bool holds_last_segment(const struct nc_message *message)
{
	const unsigned flags = message->spec->flags;
	size_t rest = message->total - message->at;

	if (!(flags & (NC_SEND_MORE | NC_SEND_CLOSE)) || nc_message_is_cut(message) ||
	    (message->spec->skip && rest > LATE_MAX))
		return false;
	return flags & NC_SEND_CLOSE || rest > SEGMENT_MIN;
}

/* A partial segment could be sent between a spliced piece and the next. */
static bool wants_cork(const struct nc_sending *sending)
{
	const struct nc_message *message = &sending->message;
	const struct NC_send *spec = message->spec;

	return holds_last_segment(message) ||
	       (sending->classes[NC_METHOD_SPLICE] &&
		(nc_message_is_cut(message) || !nc_message_holds_back(message)) &&
		(message->range + 1 < spec->range_count || message->text < spec->text_count));
}

static void cork(struct nc_transmit *transmit, struct nc_sending *sending)
{
	if (sending->message.at < sending->message.total && !sending->alone && wants_cork(sending))
		sending->message.push = nc_cork_set(&transmit->corks, sending->socket);
}

void nc_transmit_begin(struct nc_transmit *transmit, int socket, const struct nc_message *message)
{
	/* In addition to MSG_MORE, since others may lift the cork before this message is sent. */
	if (message->at < message->total && holds_last_segment(message))
		(void)nc_cork_set(&transmit->corks, socket);
}

int nc_transmit_end(struct nc_transmit *transmit, int socket, unsigned flags, bool closed)
{
	if (flags & NC_SEND_CLOSE) {
		/* The FIN is sent with what the cork holds back. */
		if (!closed && shutdown(socket, SHUT_WR) < 0)
			return -errno;
		nc_cork_forget(&transmit->corks, socket);
	} else if (!(flags & NC_SEND_MORE)) {
		nc_cork_lift(&transmit->corks, socket);
	} else if (!nc_socket_has_room(socket)) {
		/*
		 * A caller that waits for a writable socket before the next message
		 * must not wait for the cork.
		 */
		nc_cork_push(socket);
	}
	return 0;
}

/* --- sending ------------------------------------------------------------------ */

static void count_result(const struct nc_sending *sending, int result)
{
	const struct nc_message *message = &sending->message;
	_Atomic uint64_t *counter = NULL;

	if (result < 0 && result != -EAGAIN)
		counter = &sending->counts->failed;
	else if (message->at == message->spec->skip && message->at < message->end)
		counter = &sending->counts->full;
	else if (message->at < message->end)
		counter = &sending->counts->partial;
	if (counter)
		atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

struct nc_transmit_counts *nc_transmit_counts(struct nc_transmit *transmit)
{
	int cpu = sched_getcpu();

	return &transmit->counts[(unsigned)(cpu < 0 ? 0 : cpu) % NC_TRANSMIT_SHARDS];
}

/*
 * The socket is full: a segment that the cork or MSG_MORE holds back is not the
 * last one.  It also counts as unsent.  If a segment is larger than the limit of
 * unsent bytes, as the 64 KB of a loopback are, the socket would not become
 * writable until the kernel's timeout of 200 ms.
 */
static void ends_short(struct nc_transmit *transmit, const struct nc_sending *sending)
{
	nc_cork_lift(&transmit->corks, sending->socket);
	if (!sending->pushed)
		nc_cork_push(sending->socket);
	nc_transmit_resume_keep(transmit, sending);
}

/* All that may be sent was.  What the limit leaves continues with the decision. */
static int ends_full(struct nc_transmit *transmit, const struct nc_sending *sending)
{
	const struct nc_message *message = &sending->message;

	if (nc_message_is_cut(message))
		nc_transmit_resume_keep(transmit, sending);
	return nc_transmit_end(transmit, sending->socket, nc_message_end_flags(message),
			       sending->closed);
}

/* Sends, and measures the CPU time if the choice of the method wants to know it. */
static int send_measured(struct nc_transmit *transmit, struct nc_sending *sending)
{
	struct nc_message *message = &sending->message;
	uint64_t began, ns;
	size_t at = message->at;
	int result;

	if (!sending->measured)
		return send_all(sending);
	began = transmit->cpu_ns();
	result = send_all(sending);
	ns = transmit->cpu_ns() - began;
	if (message->at < message->end)
		ns += AGAIN_NS;
	nc_choice_measured(sending->measured, sending->way, ns, message->at - at, message->total);
	/* All from registered memory, or none although it could. */
	if (sending->registered || sending->unregistered)
		nc_choice_measured(nc_route_registered(&sending->route, sending->class),
				   sending->registered > 0, ns, message->at - at, message->total);
	return result;
}

static uint64_t transmit_thread_cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

ssize_t nc_transmit_send(struct nc_transmit *transmit, int socket, const struct NC_send *spec)
{
	struct nc_view views[NC_RANGES_MAX];
	struct nc_sending sending = {.socket = socket,
				     .counts = nc_transmit_counts(transmit),
				     .retry_short = nc_ring_waits(&transmit->zerocopy.ring),
				     .zerocopy = &transmit->zerocopy,
				     .routes = &transmit->routes};
	struct nc_message *message = &sending.message;
	int result = nc_message_open(message, transmit->index, spec, views);
	unsigned weight;

	if (result)
		return result;
	weight = nc_transmit_resume(transmit, &sending) ? 1
							: nc_transmit_consider(transmit, &sending);
	memcpy(sending.decided, sending.classes, sizeof(sending.decided));
	cork(transmit, &sending);
	result = send_measured(transmit, &sending);
	if (result >= 0 && message->at == message->end)
		result = ends_full(transmit, &sending);
	else
		ends_short(transmit, &sending);
	if (weight)
		nc_route_count(&sending.route, &sending.tally, weight);
	count_result(&sending, result);
	nc_message_close(message);
	if (result < 0 && message->at <= spec->skip)
		return result;
	return (ssize_t)(message->at - spec->skip);
}

unsigned nc_transmit_reap(struct nc_transmit *transmit)
{
	return nc_zerocopy_reap(&transmit->zerocopy);
}

void nc_transmit_init(struct nc_transmit *transmit, struct nc_index *index)
{
	*transmit = (struct nc_transmit){.index = index,
					 .local_splice = LOCAL_SPLICE,
					 .cpu_ns = transmit_thread_cpu_ns,
					 .unsent_limit = index->unsent_limit};
	nc_routes_init(&transmit->routes);
	transmit->routes.sums = index->device.sums;
	nc_zerocopy_init(&transmit->zerocopy, index);
}

void nc_transmit_fini(struct nc_transmit *transmit)
{
	nc_zerocopy_fini(&transmit->zerocopy);
	nc_routes_fini(&transmit->routes);
}

/* --- what sending met with and where it goes, for people --------------------------- */

void nc_transmit_stat(struct nc_transmit *transmit, struct NC_cache_stat *stat)
{
	uint64_t *const reasons[NC_REASONS] = {
		[NC_SPLICE_SIGPIPE] = &stat->splice_sigpipe,
		[NC_SPLICE_DONTWAIT] = &stat->splice_dontwait,
		[NC_SPLICE_REFUSED] = &stat->splice_refused,
		[NC_SPLICE_LEARNT] = &stat->splice_learnt,
		[NC_ZEROCOPY_MEMORY] = &stat->zerocopy_memory,
		[NC_ZEROCOPY_REFUSED] = &stat->zerocopy_refused,
		[NC_ZEROCOPY_FULL] = &stat->zerocopy_full,
		[NC_ZEROCOPY_LEARNT] = &stat->zerocopy_learnt,
		[NC_KERNEL_REFUSED] = &stat->kernel_refused,
	};
	struct nc_registered_counts registered = nc_zerocopy_registered(&transmit->zerocopy);

	for (unsigned i = 0; i < NC_TRANSMIT_SHARDS; i++) {
		struct nc_transmit_counts *counts = &transmit->counts[i];

		for (unsigned reason = 0; reason < NC_REASONS; reason++)
			*reasons[reason] += atomic_load_explicit(&counts->reasons[reason],
								 memory_order_relaxed);
		stat->zerocopy_kept += atomic_load_explicit(&counts->kept, memory_order_relaxed);
		stat->registered_sends +=
			atomic_load_explicit(&counts->registered, memory_order_relaxed);
		stat->sends_partial += atomic_load_explicit(&counts->partial, memory_order_relaxed);
		stat->sends_full += atomic_load_explicit(&counts->full, memory_order_relaxed);
		stat->sends_failed += atomic_load_explicit(&counts->failed, memory_order_relaxed);
	}
	stat->registered_bytes = registered.bytes;
	stat->registrations = registered.blocks;
	stat->registrations_failed = registered.failed;
	stat->copies_avoided = stat->by_splice.sends + stat->zerocopy_kept + stat->by_kernel.sends;
	snprintf(stat->uring, sizeof(stat->uring), "%s", transmit->zerocopy.ring.why);
	snprintf(stat->kernel, sizeof(stat->kernel), "%s", transmit->index->device.why);
}

int nc_transmit_routes(struct nc_transmit *transmit, struct NC_route *routes, unsigned count)
{
	if (count && !routes)
		return -EINVAL;
	return (int)nc_routes_list(&transmit->routes, routes, count,
				   transmit->zerocopy.ring.usable);
}

int nc_transmit_route_set(struct nc_transmit *transmit, const char *address, int method)
{
	struct nc_index *index = transmit->index;
	int error;

	if (!address || method < NC_ROUTE_LEARN || method > NC_METHOD_KERNEL)
		return -EINVAL;
	if ((method == NC_METHOD_KERNEL && !nc_device_usable(&index->device)) ||
	    (method == NC_METHOD_ZEROCOPY && !transmit->zerocopy.ring.usable))
		return -EOPNOTSUPP;
	error = nc_routes_fix(&transmit->routes, address, method);
	/* If no route may send from the module, do not allocate units there. */
	if (!error && strcmp(address, "*") == 0)
		atomic_store_explicit(&index->other_routes,
				      method != NC_ROUTE_LEARN && method != NC_METHOD_KERNEL,
				      memory_order_relaxed);
	return error;
}
