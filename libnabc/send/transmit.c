/* SPDX-License-Identifier: MIT */
/*
 * transmit.c - one message (header + ranges) to a socket: for each piece the
 * first method that takes it.
 *
 * copy     send() of header and ranges together; always possible, and here.
 * splice   page references of memory that is written no more (splice.c)
 * zerocopy memory of all kinds to other machines (zerocopy.c)
 * kernel   units that lie in the kernel module, with the header (kernel.c)
 *
 * What is offered to a message is decided once, from its sizes and its route,
 * and only if it matters: most messages are small and are just copied.  Units
 * are held from the first byte to the return, and longer by what is still in
 * flight.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "os/socket.h"
#include "send/transmit.h"

#define IOVECS 64u
#define GATHER_MAX ((size_t)12 << 10) /* bytes; of the stack */

/* Of small messages, one in so many is entered in its route, for all of them. */
#define SMALL_SAMPLE 64u

/*
 * Measured with SWEET, 64 connections over loopback: bounding the unsent bytes
 * to 16 KiB takes a third off the server's CPU time for 256 KiB, a quarter for
 * 512 KiB.  Of 1 MiB it brings 30 % more a second for 20 % less CPU time of both
 * ends; but of that more is the server's, which else leaves it to the arriving
 * acknowledgements, on loopback the client's.  8 and 32 KiB are no better, 64
 * to 512 KiB worse than no bound.
 *
 * That is of pages lent.  What is copied is copied once, and cheapest in one
 * go: with the bound 1 MiB costs twice the CPU time.
 *
 * Between machines sending goes on while the program is away: a pacing timer or
 * an acknowledgement takes up to 64 KiB at a time, and what then finds nothing
 * more counts as the program's lack of data.  Over a link of 1 Gbit/s and 100 ms
 * bounds of 16 to 256 KiB kept BBR, which forgets samples of such times, in its
 * startup for good, at 2.9 times the link's rate: one packet in eight was lost,
 * for a tenth less and three times the CPU time.  From 512 KiB on, of which half
 * must have left before the program hears of it, all was well.
 */
#define UNSENT_NEAR ((size_t)16 << 10)
#define UNSENT_FAR ((size_t)1 << 20)
#define UNSENT_MIN ((size_t)128 << 10)

/*
 * A loopback has no card that fetches pages by itself: what is lent is copied
 * by the receiver, page by page, and a copy of what the caches hold costs no
 * more.  Measured with bench/null-server, 16 and 64 connections: of 128 KB
 * lending costs 1.12 and 1.24 times a copy's CPU time and brings 5 and 16 %
 * less a second, of 256 KB 0.83 and 0.76 times.
 */
#define LOCAL_SPLICE ((size_t)256 << 10)

/* Fits into a segment of any network. */
#define SEGMENT_MIN ((size_t)500)
/* More is hardly taken at once by a socket that was full. */
#define LATE_MAX ((size_t)64 << 10)

/* In the order of preference; what remains is copied. */
static const struct nc_method *const methods[] = {&nc_kernel_method, &nc_splice_method,
						  &nc_zerocopy_method};

static _Thread_local unsigned ticks;

/* Which method but copy takes that range; NULL: none. */
static const struct nc_method *taker(const struct nc_sending *sending, unsigned range)
{
	size_t length = sending->message.spec->ranges[range].length;

	for (unsigned i = 0; sending->any && i < sizeof(methods) / sizeof(methods[0]); i++)
		if (nc_sending_may(sending, methods[i]->id, length) &&
		    methods[i]->takes(sending, range))
			return methods[i];
	return NULL;
}

/* The first range behind those that are to be copied now. */
static unsigned copied_until(const struct nc_sending *sending)
{
	const struct nc_message *message = &sending->message;
	const struct NC_send *spec = message->spec;
	unsigned end = message->range;

	/* Copy was chosen for this one, unless it is the header's turn. */
	if (message->at >= spec->header_length)
		end++;
	else if (end < spec->range_count && taker(sending, end))
		return end;
	else
		end++;
	while (end < spec->range_count && !taker(sending, end))
		end++;
	return end < spec->range_count ? end : spec->range_count;
}

/* What is small together goes in one piece, which costs the system less to take. */
static ssize_t send_pieces(int socket, struct iovec *pieces, unsigned count, size_t length,
			   int flags)
{
	struct msghdr spec = {.msg_iov = pieces, .msg_iovlen = count};
	char gathered[GATHER_MAX], *to = gathered;

	if (count == 1)
		return send(socket, pieces->iov_base, length, flags);
	if (length > sizeof(gathered))
		return sendmsg(socket, &spec, flags);
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
	/* A call that is cut short pushes what it has taken. */
	sending->pushed = (size_t)sent < planned;
	return nc_sending_moved(sending, NC_METHOD_COPY, planned, (size_t)sent);
}

/* Who sends what is next; NULL: copy. */
static const struct nc_method *next_method(const struct nc_sending *sending)
{
	const struct nc_message *message = &sending->message;
	const struct nc_method *method = NULL;

	if (message->range < message->spec->range_count)
		method = taker(sending, message->range);
	if (method && message->at < message->spec->header_length &&
	    !(method->headed && nc_kernel_next(message)))
		return NULL;
	return method;
}

/* Sends until all is gone or the socket takes no more; -errno stops too. */
static int send_all(struct nc_sending *sending)
{
	struct nc_message *message = &sending->message;
	int result = 1;

	while (result > 0 && message->at < message->total) {
		const struct nc_method *method = next_method(sending);

		result = method ? method->send(sending) : send_copy(sending);
	}
	return result;
}

/* --- what a message is offered ---------------------------------------------- */

/* The sizes of a message's pieces, as bits of classes. */
struct survey {
	unsigned lasting;  /* in memory written no more */
	unsigned recycled; /* in other memory */
	unsigned kernel;   /* in the module, small ones too */
	bool others;	   /* some are elsewhere */
};

static struct survey survey(const struct nc_sending *sending)
{
	const struct nc_message *message = &sending->message;
	struct survey sizes = {0};

	for (unsigned i = message->range; i < message->spec->range_count; i++) {
		size_t length = message->spec->ranges[i].length;
		unsigned bit = 1u << nc_route_class(length);

		if (nc_kernel_has(nc_sending_unit(sending, i))) {
			sizes.kernel |= bit;
			continue;
		}
		sizes.others |= length > 0;
		if (length < NC_ROUTE_CLASS_MIN || !nc_sending_gapless(sending, i))
			continue;
		*(nc_unit_spliceable(nc_sending_unit(sending, i)) ? &sizes.lasting
								  : &sizes.recycled) |= bit;
	}
	return sizes;
}

/* Reasons that hold whatever the route. */
static bool may_splice(struct nc_sending *sending)
{
	if (sending->message.spec->flags & NC_SEND_DONTWAIT) {
		nc_sending_drop(sending, NC_METHOD_SPLICE, NC_SPLICE_DONTWAIT);
		return false;
	}
	if (!nc_socket_sigpipe_ignored()) {
		nc_sending_drop(sending, NC_METHOD_SPLICE, NC_SPLICE_SIGPIPE);
		return false;
	}
	return true;
}

/* Offers a method for those of the classes in which it does well. */
static void offer(struct nc_sending *sending, enum NC_method method, unsigned classes,
		  enum nc_reason otherwise)
{
	bool learnt = false;

	for (unsigned class = 0; class < NC_ROUTE_CLASSES; class ++) {
		if (!(classes >> class & 1))
			continue;
		if (nc_route_tries(&sending->route, method, class, sending->sampled))
			sending->classes[method] |= (unsigned char)(1u << class);
		else
			learnt = true;
	}
	if (learnt)
		nc_sending_count(sending, otherwise);
}

/* Nothing else spares them a copy, whatever their size. */
static void offer_kernel(struct nc_sending *sending, const struct survey *sizes)
{
	if (!sizes->kernel)
		return;
	if (sending->route.strange) {
		nc_sending_count(sending, NC_KERNEL_REFUSED);
		return;
	}
	sending->classes[NC_METHOD_KERNEL] = NC_ROUTE_ALL_CLASSES;
	sending->any = true;
	sending->alone = !sizes->others && sending->message.spec->flags & NC_SEND_CLOSE;
}

static void offer_learnt(const struct nc_transmit *transmit, struct nc_sending *sending,
			 const struct survey *sizes)
{
	const unsigned large = NC_ROUTE_ALL_CLASSES << NC_ZEROCOPY_CLASS_MIN;
	unsigned spliced = sizes->lasting, recycled = sizes->recycled;

	offer_kernel(sending, sizes);
	if (sending->route.local)
		spliced &= NC_ROUTE_ALL_CLASSES << nc_route_class(transmit->local_splice);
	if (spliced && may_splice(sending))
		offer(sending, NC_METHOD_SPLICE, spliced, NC_SPLICE_LEARNT);
	if (!sending->classes[NC_METHOD_SPLICE])
		recycled |= sizes->lasting;
	recycled &= large;
	if (!recycled || !sending->zerocopy->ring.usable)
		return;
	if (nc_route_tries_zerocopy(&sending->route, sending->sampled))
		offer(sending, NC_METHOD_ZEROCOPY, recycled, NC_ZEROCOPY_LEARNT);
	else if (sending->route.route && !sending->route.local)
		nc_sending_count(sending, NC_ZEROCOPY_LEARNT);
}

static void offer_fixed(struct nc_sending *sending, const struct survey *sizes, int method)
{
	if (method == NC_METHOD_KERNEL)
		offer_kernel(sending, sizes);
	if (method == NC_METHOD_SPLICE && may_splice(sending))
		sending->classes[method] = NC_ROUTE_ALL_CLASSES;
	if (method == NC_METHOD_ZEROCOPY && sending->zerocopy->ring.usable)
		sending->classes[method] = NC_ROUTE_ALL_CLASSES;
}

/*
 * Of less than two segments, those of a loopback at least, a call that waits
 * for room itself would hear of none while its own last segment is held back
 * for more, and there is nobody to push that.
 */
#define UNSENT_WAITING ((size_t)128 << 10)

void nc_transmit_bound(struct nc_transmit *transmit, int socket, size_t left,
		       const struct nc_route_use *route)
{
	size_t limit = transmit->unsent_limit;

	if (!route->unbounded || limit == SIZE_MAX || left < UNSENT_MIN)
		return;
	if (!limit)
		limit = route->local ? UNSENT_NEAR : UNSENT_FAR;
	if (limit < UNSENT_WAITING && nc_socket_waits(socket))
		return;
	nc_socket_bound_unsent(socket, limit);
	nc_route_bounded(&transmit->routes, route);
}

int nc_transmit_route(struct nc_transmit *transmit, int socket, const struct nc_message *message,
		      struct nc_route_use *route)
{
	if (message->total - message->at < NC_ROUTE_CLASS_MIN)
		return 0;
	return nc_route_find(&transmit->routes, socket, route);
}

/* Fills in what may be tried; returns of how many messages this one is the sample. */
static unsigned consider(struct nc_transmit *transmit, struct nc_sending *sending)
{
	struct survey sizes = survey(sending);
	unsigned weight = 1;
	int fixed;

	ticks++;
	if (!sizes.lasting && !sizes.recycled && !(sizes.kernel & ~1u) &&
	    !atomic_load_explicit(&transmit->routes.any_fixed, memory_order_relaxed)) {
		if (ticks % SMALL_SAMPLE) {
			offer_kernel(sending, &sizes);
			return 0;
		}
		weight = SMALL_SAMPLE;
	}
	sending->sampled = ticks % NC_ROUTE_SAMPLE == 0;
	/* What is no socket is left to the simplest, which says so. */
	if (nc_route_find(&transmit->routes, sending->socket, &sending->route)) {
		offer_kernel(sending, &sizes);
		return 0;
	}
	fixed = nc_route_fixed(&sending->route);
	if (sending->message.spec->flags & NC_SEND_COPY)
		offer_kernel(sending, &sizes);
	else if (fixed == NC_ROUTE_LEARN)
		offer_learnt(transmit, sending, &sizes);
	else
		offer_fixed(sending, &sizes, fixed);
	/* Of pages that are lent, by either: a copy is cheapest in one go. */
	if ((sizes.lasting && sending->classes[NC_METHOD_SPLICE]) ||
	    (sizes.kernel && sending->classes[NC_METHOD_KERNEL]))
		nc_transmit_bound(transmit, sending->socket,
				  sending->message.total - sending->message.at, &sending->route);
	for (unsigned i = 0; i < NC_METHODS; i++)
		sending->any |= sending->classes[i] != 0;
	return weight;
}

/* --- messages that go on ------------------------------------------------------ */

/*
 * A decision: what tells the message from others << 29 | the route << 13 |
 * sampled << 12 | classes of zero-copy << 6 | classes of splice.
 */
#define RESUME_CLASSES NC_ROUTE_CLASSES
#define RESUME_SAMPLED (2 * RESUME_CLASSES)
#define RESUME_ROUTE (RESUME_SAMPLED + 1)
#define RESUME_MARK (RESUME_ROUTE + NC_ROUTE_NOTE_BITS)

/* Where the message is by now, which unit it began with, and what it may do. */
static uint64_t resume_mark(const struct nc_message *message)
{
	const struct NC_send *spec = message->spec;
	const uint64_t parts[] = {spec->ranges[0].id, spec->ranges[0].offset, spec->header_length,
				  message->at, spec->flags & (NC_SEND_DONTWAIT | NC_SEND_COPY)};
	uint64_t mark = 0;

	for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		mark = (mark ^ parts[i]) * UINT64_C(0x9e3779b97f4a7c15);
		mark ^= mark >> 32;
	}
	return mark >> RESUME_MARK << RESUME_MARK;
}

static _Atomic uint64_t *resume_of(struct nc_transmit *transmit, int socket)
{
	return &transmit->resumes[(unsigned)socket % NC_TRANSMIT_RESUMES];
}

/* For the call that goes on with it; what the module sends is asked for each time. */
static void resume_keep(struct nc_transmit *transmit, const struct nc_sending *sending)
{
	const unsigned char *classes = sending->decided;
	uint64_t note = nc_route_note(&transmit->routes, &sending->route);

	if (!note || !sending->message.spec->range_count || classes[NC_METHOD_KERNEL])
		return;
	atomic_store_explicit(resume_of(transmit, sending->socket),
			      resume_mark(&sending->message) | note << RESUME_ROUTE |
				      (uint64_t)sending->sampled << RESUME_SAMPLED |
				      (uint64_t)classes[NC_METHOD_ZEROCOPY] << RESUME_CLASSES |
				      classes[NC_METHOD_SPLICE],
			      memory_order_relaxed);
}

/* Whether the message goes on as was decided at its beginning. */
static bool resume(struct nc_transmit *transmit, struct nc_sending *sending)
{
	const struct nc_message *message = &sending->message;
	uint64_t kept;

	if (!message->at || !message->spec->range_count)
		return false;
	kept = atomic_load_explicit(resume_of(transmit, sending->socket), memory_order_relaxed);
	if (kept >> RESUME_MARK << RESUME_MARK != resume_mark(message) ||
	    !nc_route_noted(&transmit->routes, (uint32_t)(kept >> RESUME_ROUTE), &sending->route))
		return false;
	sending->classes[NC_METHOD_SPLICE] = kept & NC_ROUTE_ALL_CLASSES;
	sending->classes[NC_METHOD_ZEROCOPY] = kept >> RESUME_CLASSES & NC_ROUTE_ALL_CLASSES;
	sending->sampled = kept >> RESUME_SAMPLED & 1;
	sending->any = sending->classes[NC_METHOD_SPLICE] || sending->classes[NC_METHOD_ZEROCOPY];
	return true;
}

/* --- segments ----------------------------------------------------------------- */

/*
 * Whether the last, partial segment is to wait for what comes behind: for the
 * FIN; for more to come, unless all of the message fits into one segment,
 * which MSG_MORE holds back as well.  What did not go at once before will
 * hardly now, if much is left of it: that is not yet the end.
 */
static bool ends_late(const struct nc_message *message)
{
	size_t rest = message->total - message->at;

	if (message->spec->skip && rest > LATE_MAX)
		return false;
	if (message->spec->flags & NC_SEND_CLOSE)
		return true;
	return message->spec->flags & NC_SEND_MORE && rest > SEGMENT_MIN;
}

/* Or one could leave between a spliced piece and the next. */
static bool wants_cork(const struct nc_sending *sending)
{
	const struct nc_message *message = &sending->message;

	return ends_late(message) ||
	       (!nc_message_holds_back(message) && sending->classes[NC_METHOD_SPLICE] &&
		message->range + 1 < message->spec->range_count);
}

static void cork(struct nc_transmit *transmit, struct nc_sending *sending)
{
	if (sending->message.at < sending->message.total && !sending->alone && wants_cork(sending))
		sending->message.push = nc_cork_set(&transmit->corks, sending->socket);
}

void nc_transmit_begin(struct nc_transmit *transmit, int socket, const struct nc_message *message)
{
	/* Beside MSG_MORE, since others may lift it before this message is sent. */
	if (message->at < message->total && ends_late(message))
		(void)nc_cork_set(&transmit->corks, socket);
}

int nc_transmit_end(struct nc_transmit *transmit, int socket, unsigned flags, bool closed)
{
	if (flags & NC_SEND_CLOSE) {
		/* The FIN takes what the cork holds back with it. */
		if (!closed && shutdown(socket, SHUT_WR) < 0)
			return -errno;
		nc_cork_forget(&transmit->corks, socket);
	} else if (!(flags & NC_SEND_MORE)) {
		nc_cork_lift(&transmit->corks, socket);
	} else if (!nc_socket_has_room(socket)) {
		/* Whoever waits for room before the next message must not wait for it. */
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
	else if (message->at == message->spec->skip && message->at < message->total)
		counter = &sending->counts->full;
	else if (message->at < message->total)
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
 * The socket takes no more: what is held back, by the cork or for the bytes
 * that were to follow, is not the end.  It counts as unsent, too, and where a
 * segment is larger than the bound of that, as the 64 KB of a loopback are,
 * nobody would hear of room until the system has waited for 200 ms.
 */
static void ends_short(struct nc_transmit *transmit, const struct nc_sending *sending)
{
	nc_cork_lift(&transmit->corks, sending->socket);
	if (!sending->pushed)
		nc_cork_push(sending->socket);
	resume_keep(transmit, sending);
}

ssize_t nc_transmit_send(struct nc_transmit *transmit, int socket, const struct NC_send *spec)
{
	struct nc_view views[NC_RANGES_MAX];
	struct nc_sending sending = {.socket = socket,
				     .counts = nc_transmit_counts(transmit),
				     .patient = nc_ring_waits(&transmit->zerocopy.ring),
				     .zerocopy = &transmit->zerocopy,
				     .routes = &transmit->routes};
	struct nc_message *message = &sending.message;
	int result = nc_message_open(message, transmit->index, spec, views, true);
	unsigned weight;

	if (result)
		return result;
	weight = resume(transmit, &sending) ? 1 : consider(transmit, &sending);
	memcpy(sending.decided, sending.classes, sizeof(sending.decided));
	cork(transmit, &sending);
	result = send_all(&sending);
	if (result >= 0 && message->at == message->total)
		result = nc_transmit_end(transmit, socket, spec->flags, sending.closed);
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

/* --- for people ------------------------------------------------------------- */

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

	for (unsigned i = 0; i < NC_TRANSMIT_SHARDS; i++) {
		struct nc_transmit_counts *counts = &transmit->counts[i];

		for (unsigned reason = 0; reason < NC_REASONS; reason++)
			*reasons[reason] += atomic_load_explicit(&counts->reasons[reason],
								 memory_order_relaxed);
		stat->zerocopy_kept += atomic_load_explicit(&counts->kept, memory_order_relaxed);
		stat->sends_partial += atomic_load_explicit(&counts->partial, memory_order_relaxed);
		stat->sends_full += atomic_load_explicit(&counts->full, memory_order_relaxed);
		stat->sends_failed += atomic_load_explicit(&counts->failed, memory_order_relaxed);
	}
	stat->copies_avoided =
		stat->sends[NC_METHOD_SPLICE] + stat->zerocopy_kept + stat->sends[NC_METHOD_KERNEL];
	snprintf(stat->uring, sizeof(stat->uring), "%s", transmit->zerocopy.ring.why);
	snprintf(stat->kernel, sizeof(stat->kernel), "%s", transmit->index->device.why);
}

int nc_transmit_routes(struct nc_transmit *transmit, struct NC_route *routes, unsigned count)
{
	if (count && !routes)
		return -EINVAL;
	return (int)nc_routes_tell(&transmit->routes, routes, count,
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
	/* Units that nobody could send from the module should not be laid there. */
	if (!error && strcmp(address, "*") == 0)
		atomic_store_explicit(&index->other_routes,
				      method != NC_ROUTE_LEARN && method != NC_METHOD_KERNEL,
				      memory_order_relaxed);
	return error;
}

void nc_transmit_init(struct nc_transmit *transmit, struct nc_index *index)
{
	*transmit = (struct nc_transmit){
		.index = index, .local_splice = LOCAL_SPLICE, .unsent_limit = index->unsent_limit};
	nc_routes_init(&transmit->routes);
	nc_zerocopy_init(&transmit->zerocopy, index);
}

void nc_transmit_fini(struct nc_transmit *transmit)
{
	nc_zerocopy_fini(&transmit->zerocopy);
	nc_routes_fini(&transmit->routes);
}
