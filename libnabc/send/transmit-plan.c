/* SPDX-License-Identifier: MIT */
/*
 * transmit-plan.c - selects which methods may send a message; see transmit.h.
 *
 * This is decided once, from its sizes and its route, and only if it matters: most
 * messages are small and are just copied.
 */

#include <nabc-worker.h>
#include <nabc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/ring.h"
#include "os/socket.h"
#include "send/choice.h"
#include "send/epoch.h"
#include "send/kernel.h"
#include "send/message.h"
#include "send/method.h"
#include "send/route.h"
#include "send/transmit-internal.h"
#include "send/transmit.h"
#include "send/zerocopy.h"
#include "store/store.h"

/* One in this many small messages is counted in its route, with the weight of all of them. */
#define SMALL_SAMPLE 64u

/*
 * Measured with SWEET, 64 connections over loopback: limiting the unsent bytes to
 * 16 KiB saves a third of the server's CPU time for 256 KiB, a quarter for 512 KiB.
 * For 1 MiB it gives 30 % more throughput with 20 % less CPU time of both ends
 * together; but the server's share grows, since without a limit arriving
 * acknowledgements do part of its work, on loopback in the client's CPU time.  8
 * and 32 KiB are no better, 64 to 512 KiB worse than no limit.
 *
 * These figures are for lent pages.  A copy is made once, and is cheapest in one
 * call: with the limit, 1 MiB costs twice the CPU time.
 *
 * Between machines, the kernel continues to send while the program does other work:
 * a pacing timer or an acknowledgement takes up to 64 KiB at a time, and if it then
 * finds no more data, the connection counts as limited by the program.  Over a link
 * of 1 Gbit/s and 100 ms, limits of 16 to 256 KiB kept BBR, which discards such
 * samples, in its startup phase permanently, at 2.9 times the rate of the link: one
 * packet in eight was lost, with a tenth less throughput and three times the CPU
 * time.  From 512 KiB on there was no such effect; the program is woken when half
 * of the limit has been sent.
 */
#define UNSENT_NEAR ((size_t)16 << 10)
#define UNSENT_FAR ((size_t)1 << 20)
#define UNSENT_MIN ((size_t)128 << 10)

static _Thread_local unsigned ticks;

/* Of the calling thread: how it sends within this machine. */
static _Thread_local struct nc_epoch epoch;

/* Classes from which a method is tried first, before any is measured. */
#define SPLICED_FROM (NC_ROUTE_ALL_CLASSES << 2)

/* The sizes of a message's pieces, as bits of classes. */
struct survey {
	unsigned lasting;  /* in memory that is never written again */
	unsigned recycled; /* in other memory */
	unsigned kernel;   /* in the module, small ones too */
	bool others;	   /* some are not in the module */
	bool small;	   /* some of these are always copied */
};

static struct survey survey(const struct nc_sending *sending)
{
	const struct nc_message *message = &sending->message;
	struct survey sizes = {0};

	for (unsigned i = message->range; i < message->spec->range_count; i++) {
		size_t length = nc_message_share(message, i);
		unsigned bit = 1u << nc_route_class(length);

		if (nc_kernel_has(nc_sending_unit(sending, i))) {
			sizes.kernel |= bit;
			continue;
		}
		sizes.others |= length > 0;
		if (length < NC_ROUTE_CLASS_MIN || !nc_sending_gapless(sending, i)) {
			sizes.small |= length > 0;
			continue;
		}
		*(nc_unit_spliceable(nc_sending_unit(sending, i)) ? &sizes.lasting
								  : &sizes.recycled) |= bit;
	}
	return sizes;
}

/* Checks the conditions for splicing that do not depend on the route. */
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

/* Offered for all sizes, since every other method must copy these units first. */
static void offer_kernel(struct nc_sending *sending, const struct survey *sizes)
{
	const struct NC_send *spec = sending->message.spec;

	if (!sizes->kernel)
		return;
	if (sending->route.kernel_refused) {
		nc_sending_count(sending, NC_KERNEL_REFUSED);
		return;
	}
	sending->classes[NC_METHOD_KERNEL] = NC_ROUTE_ALL_CLASSES;
	sending->any = true;
	sending->alone = !sizes->others && spec->flags & NC_SEND_CLOSE && !spec->text_count &&
			 !nc_message_is_cut(&sending->message);
}

#define BIT(method) (1u << (method))

/*
 * Returns the method that is tried first.  Through a network card, zero-copy costs half of what
 * splicing costs, and a third to two thirds of a copy.  On a loopback the kernel copies after
 * all, the receiver copies lent pages one by one, and copying bytes that are in the CPU caches
 * costs no more.
 */
static enum NC_method first_guess(const struct nc_transmit *transmit,
				  const struct nc_route_use *route, unsigned class,
				  unsigned candidates)
{
	const unsigned bit = BIT(class);

	if (candidates & BIT(NC_METHOD_ZEROCOPY) && !route->local &&
	    bit & NC_ROUTE_ALL_CLASSES << NC_ZEROCOPY_CLASS_MIN)
		return NC_METHOD_ZEROCOPY;
	if (candidates & BIT(NC_METHOD_SPLICE) &&
	    bit & (route->local ? NC_ROUTE_ALL_CLASSES << nc_route_class(transmit->local_splice)
				: SPLICED_FROM))
		return NC_METHOD_SPLICE;
	return NC_METHOD_COPY;
}

enum NC_method nc_transmit_prefers(const struct nc_transmit *transmit,
				   const struct nc_route_use *route, bool lasting, unsigned class,
				   unsigned candidates)
{
	const struct nc_choice *choice = nc_route_choice(route, lasting, class);
	enum NC_method first = first_guess(transmit, route, class, candidates);

	if (nc_route_reads(route->route))
		return NC_METHOD_COPY;
	return choice ? nc_choice_best(choice, candidates, first) : first;
}

bool nc_transmit_settled(const struct nc_route_use *route, bool lasting, unsigned class,
			 enum NC_method method)
{
	struct nc_choice *choice = nc_route_choice(route, lasting, class);
	unsigned candidates = BIT(NC_METHOD_COPY) | BIT(NC_METHOD_ZEROCOPY);

	if (lasting)
		candidates |= BIT(NC_METHOD_SPLICE);
	return choice && !route->local && !nc_route_reads(route->route) &&
	       nc_choice_settled(choice, candidates, method);
}

/* Pieces in one kind of memory, and how they may be sent. */
struct offer {
	bool lasting;
	bool alone; /* the message has no other pieces: it says what such ones cost */
	unsigned classes, candidates;
};

/*
 * Picks a method for a class of pieces.  Within this machine, calls do not say what a method costs:
 * of a copy of 1 MB, 0.25 ms of 0.47 are spent when acknowledgements arrive.
 */
static struct nc_pick pick_one(const struct nc_transmit *transmit, struct nc_sending *sending,
			       const struct offer *offer, unsigned class)
{
	struct nc_choice *choice = nc_route_choice(&sending->route, offer->lasting, class);
	const unsigned candidates = offer->candidates;
	enum NC_method first = first_guess(transmit, &sending->route, class, candidates);
	unsigned way;

	if (choice && !sending->route.local)
		return nc_choice_pick(choice, candidates, first);
	if (!choice || !(candidates & (candidates - 1)))
		return (struct nc_pick){.way = first};
	if (offer->alone)
		way = nc_epoch_way(&epoch, choice, candidates, first,
				   sending->message.total - sending->message.at, transmit->cpu_ns);
	else
		way = nc_choice_best(choice, candidates, first);
	if (first == NC_METHOD_SPLICE && way != first)
		nc_sending_count(sending, NC_SPLICE_LEARNT);
	return (struct nc_pick){.way = way};
}

/* Picks a method for each class of pieces.  Returns those not picked. */
static unsigned pick(const struct nc_transmit *transmit, struct nc_sending *sending,
		     const struct offer *offer)
{
	unsigned picked = offer->classes ? 0 : offer->candidates;

	for (unsigned class = 1; class < NC_ROUTE_CLASSES; class ++) {
		struct nc_pick pick;

		if (!(offer->classes & BIT(class)))
			continue;
		pick = pick_one(transmit, sending, offer, class);
		picked |= BIT(pick.way);
		if (pick.way != NC_METHOD_COPY)
			sending->classes[pick.way] |= (unsigned char)BIT(class);
		sending->way = pick.way;
		sending->class = class;
		sending->measured =
			pick.measure && offer->alone
				? nc_route_choice(&sending->route, offer->lasting, class)
				: NULL;
	}
	return offer->candidates & ~picked;
}

static void offer_learnt(const struct nc_transmit *transmit, struct nc_sending *sending,
			 const struct survey *sizes, bool sampled)
{
	const unsigned classes = sizes->lasting | sizes->recycled;
	const bool reads = nc_route_reads(sending->route.route);
	struct offer offer = {.candidates = BIT(NC_METHOD_COPY)};
	unsigned unused = reads && sizes->lasting ? BIT(NC_METHOD_SPLICE) : 0;

	offer_kernel(sending, sizes);
	if (!classes)
		return;
	if (sending->zerocopy->ring.usable && !sending->route.local) {
		if (!reads && nc_route_tries_zerocopy(&sending->route, sampled))
			offer.candidates |= BIT(NC_METHOD_ZEROCOPY);
		else if (sending->route.route)
			nc_sending_count(sending, NC_ZEROCOPY_LEARNT);
	}
	offer.alone = !(classes & (classes - 1)) && !(sizes->lasting && sizes->recycled) &&
		      !sizes->kernel && !sizes->small;
	offer.classes = sizes->recycled;
	unused |= pick(transmit, sending, &offer);
	if (sizes->lasting && !reads && may_splice(sending))
		offer.candidates |= BIT(NC_METHOD_SPLICE);
	offer.lasting = true;
	offer.classes = sizes->lasting;
	unused |= pick(transmit, sending, &offer);
	if (unused & BIT(NC_METHOD_SPLICE) && !sending->route.local)
		nc_sending_count(sending, NC_SPLICE_LEARNT);
	if (unused & BIT(NC_METHOD_ZEROCOPY))
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
 * With a limit below two segments (of a loopback at least), a call that waits for a
 * writable socket would not be woken while its own last partial segment is held
 * back for more, and no other call pushes that.
 */
#define UNSENT_WAITING ((size_t)128 << 10)

static size_t unsent_limit(const struct nc_transmit *transmit, const struct nc_route_use *route)
{
	if (transmit->unsent_limit)
		return transmit->unsent_limit;
	return route->local ? UNSENT_NEAR : UNSENT_FAR;
}

void nc_transmit_bound(struct nc_transmit *transmit, int socket, size_t left,
		       const struct nc_route_use *route)
{
	const size_t limit = unsent_limit(transmit, route);

	if (!route->unbounded || limit == SIZE_MAX || left < UNSENT_MIN)
		return;
	if (limit < UNSENT_WAITING && nc_socket_waits(socket))
		return;
	nc_socket_bound_unsent(socket, limit);
	nc_route_bounded(&transmit->routes, route, true);
}

/* Lifts the limit that an earlier message has set. */
static void unbound(struct nc_transmit *transmit, int socket, size_t left,
		    const struct nc_route_use *route)
{
	const size_t limit = unsent_limit(transmit, route);

	if (route->unbounded || limit == SIZE_MAX || left < UNSENT_MIN)
		return;
	nc_socket_unbound_unsent(socket, limit);
	nc_route_bounded(&transmit->routes, route, false);
}

unsigned nc_transmit_route(struct nc_transmit *transmit, int socket,
			   const struct nc_message *message, struct nc_route_use *route)
{
	unsigned weight = 1;

	if (message->end - message->at < NC_ROUTE_CLASS_MIN) {
		if (++ticks % SMALL_SAMPLE)
			return 0;
		weight = SMALL_SAMPLE;
	}
	/* If this is not a socket, the send reports that. */
	return nc_route_find(&transmit->routes, socket, message->spec->cookie, route) ? 0 : weight;
}

unsigned nc_transmit_consider(struct nc_transmit *transmit, struct nc_sending *sending)
{
	struct survey sizes = survey(sending);
	unsigned weight = 1;
	bool sampled;
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
	sampled = ticks % NC_ROUTE_SAMPLE == 0;
	/* If this is not a socket, the copy reports that. */
	if (nc_route_find(&transmit->routes, sending->socket, sending->message.spec->cookie,
			  &sending->route)) {
		offer_kernel(sending, &sizes);
		return 0;
	}
	fixed = nc_route_fixed(&sending->route);
	if (sending->message.spec->flags & NC_SEND_COPY)
		offer_kernel(sending, &sizes);
	else if (fixed == NC_ROUTE_LEARN)
		offer_learnt(transmit, sending, &sizes, sampled);
	else
		offer_fixed(sending, &sizes, fixed);
	/* Only for lent pages: a copy is cheapest in one call. */
	if ((sizes.lasting && sending->classes[NC_METHOD_SPLICE]) ||
	    (sizes.kernel && sending->classes[NC_METHOD_KERNEL]))
		nc_transmit_bound(transmit, sending->socket,
				  sending->message.total - sending->message.at, &sending->route);
	else if (sizes.lasting && sending->route.local && fixed == NC_ROUTE_LEARN)
		unbound(transmit, sending->socket, sending->message.total - sending->message.at,
			&sending->route);
	for (unsigned i = 0; i < NC_METHODS; i++)
		sending->any |= sending->classes[i] != 0;
	return weight;
}

/* --- continued messages ------------------------------------------------------- */

/*
 * A decision: hash that identifies the message << 31 | the route << 15 | measured <<
 * 14 | classes of zero-copy << 7 | classes of splice.
 */
#define RESUME_CLASSES NC_ROUTE_CLASSES
#define RESUME_MEASURED (2 * RESUME_CLASSES)
#define RESUME_ROUTE (RESUME_MEASURED + 1)
#define RESUME_MARK (RESUME_ROUTE + NC_ROUTE_NOTE_BITS)

/* Hashes the message's position, the unit that it began with, its flags and its limit's class. */
static uint64_t resume_mark(const struct nc_message *message)
{
	const struct NC_send *spec = message->spec;
	const uint64_t parts[] = {spec->ranges[0].id,
				  spec->ranges[0].offset,
				  spec->header_length,
				  message->at,
				  spec->flags & (NC_SEND_DONTWAIT | NC_SEND_COPY),
				  spec->limit ? nc_route_class(spec->limit) : NC_ROUTE_CLASSES};
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

void nc_transmit_resume_keep(struct nc_transmit *transmit, const struct nc_sending *sending)
{
	const unsigned char *classes = sending->decided;
	uint64_t note = nc_route_note(&transmit->routes, &sending->route);

	if (!note || !sending->message.spec->range_count || classes[NC_METHOD_KERNEL])
		return;
	/* Who finds the note finds the route made.  Pairs with the acquire in nc_transmit_resume(). */
	atomic_store_explicit(resume_of(transmit, sending->socket),
			      resume_mark(&sending->message) | note << RESUME_ROUTE |
				      (uint64_t)(sending->measured != NULL) << RESUME_MEASURED |
				      (uint64_t)classes[NC_METHOD_ZEROCOPY] << RESUME_CLASSES |
				      classes[NC_METHOD_SPLICE],
			      memory_order_release);
}

/* Sets class and way, and returns what learns their cost, if all pieces are of one class. */
static struct nc_choice *resume_choice(struct nc_sending *sending)
{
	const unsigned last = sending->message.spec->range_count - 1;
	const size_t length = nc_message_share(&sending->message, last);

	sending->class = nc_route_class(length);
	sending->way = nc_sending_may(sending, NC_METHOD_SPLICE, length)     ? NC_METHOD_SPLICE
		       : nc_sending_may(sending, NC_METHOD_ZEROCOPY, length) ? NC_METHOD_ZEROCOPY
									     : NC_METHOD_COPY;
	return nc_route_choice(&sending->route, nc_unit_spliceable(nc_sending_unit(sending, last)),
			       sending->class);
}

bool nc_transmit_resume(struct nc_transmit *transmit, struct nc_sending *sending)
{
	const struct nc_message *message = &sending->message;
	struct nc_choice *choice;
	uint64_t kept;
	bool measured;

	if (!message->at || !message->spec->range_count)
		return false;
	kept = atomic_load_explicit(resume_of(transmit, sending->socket), memory_order_acquire);
	if (kept >> RESUME_MARK << RESUME_MARK != resume_mark(message) ||
	    !nc_route_noted(&transmit->routes, (uint32_t)(kept >> RESUME_ROUTE), &sending->route))
		return false;
	sending->classes[NC_METHOD_SPLICE] = kept & NC_ROUTE_ALL_CLASSES;
	sending->classes[NC_METHOD_ZEROCOPY] = kept >> RESUME_CLASSES & NC_ROUTE_ALL_CLASSES;
	measured = kept >> RESUME_MEASURED & 1;
	choice = measured || sending->route.local ? resume_choice(sending) : NULL;
	if (measured)
		sending->measured = choice;
	else if (choice)
		nc_epoch_continues(&epoch, choice, sending->way);
	sending->any = sending->classes[NC_METHOD_SPLICE] || sending->classes[NC_METHOD_ZEROCOPY];
	return true;
}
