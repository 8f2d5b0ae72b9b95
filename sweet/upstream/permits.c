/* SPDX-License-Identifier: MIT */
/*
 * permits.c - see permits.h.
 *
 * While no loop waits, connections change between idle and used without the lock.
 * A loop that makes one idle first increments its idle counter, then checks for
 * waiting loops; a loop that starts to wait first enters the list, then checks for
 * idle connections.  Both are sequentially consistent, so at least one of them sees
 * the other.
 *
 * Only one loop with idle connections is asked at a time, and it asks the next one
 * if it could not help, because the connection may have been used meanwhile.  A
 * loop that was skipped hands over by itself the connections that become idle
 * later.
 */
#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <glib.h>

#include "base/list.h"
#include "upstream/permits.h"

static unsigned share_of(unsigned limit, uint64_t number, unsigned users)
{
	return (unsigned)MAX(1, limit * (number + 1) / users - limit * number / users);
}

/* Sets the shares of all users, before there are others, or with the lock held. */
static void set_shares(struct permits *permits, unsigned place)
{
	for (unsigned i = 0; i < permits->user_count; i++)
		permits->users[i].parts[place].share =
			share_of(permits->places[place].limit, i, permits->user_count);
}

void permits_init(struct permits *permits, unsigned users, unsigned places, unsigned total)
{
	memset(permits, 0, sizeof(*permits));
	pthread_mutex_init(&permits->lock, NULL);
	permits->place_count = places;
	permits->user_count = users;
	permits->places = g_new0(struct permit_place, places);
	for (unsigned i = 0; i < places; i++)
		permits->places[i] = (struct permit_place){.limit = total, .free = (int)total};
	permits->users = g_new0(struct permit_user, users);
	for (unsigned i = 0; i < users; i++) {
		permits->users[i].permits = permits;
		permits->users[i].number = i;
		permits->users[i].parts = g_new0(struct permit_part, places);
	}
	for (unsigned i = 0; i < places; i++)
		set_shares(permits, i);
}

void permits_clear(struct permits *permits)
{
	for (unsigned i = 0; i < permits->user_count; i++)
		g_free(permits->users[i].parts);
	g_free(permits->users);
	g_free(permits->places);
	pthread_mutex_destroy(&permits->lock);
}

/* Valid on the user's own loop, which learns of a grant later; or under the lock. */
static bool in_list(const struct permit_user *user)
{
	return atomic_load_explicit(&user->waits, memory_order_relaxed);
}

/* --- with the lock held --------------------------------------------------------------- */

static struct permit_user *first_locked(const struct permits *permits)
{
	return list_first(&permits->line, struct permit_user, node);
}

static void post_locked(struct permit_user *user)
{
	if (user->posted || user->permits->closed)
		return;
	user->posted = true;
	loop_post(user->loop, &user->news);
}

static void enter_locked(struct permit_user *user)
{
	struct permits *permits = user->permits;

	atomic_store_explicit(&user->waits, true, memory_order_relaxed);
	list_append(&permits->line, &user->node);
	atomic_fetch_add_explicit(&permits->waiting, 1, memory_order_seq_cst);
}

static void leave_locked(struct permit_user *user)
{
	struct permits *permits = user->permits;

	if (!in_list(user))
		return;
	list_remove(&user->node);
	atomic_store_explicit(&user->waits, false, memory_order_relaxed);
	atomic_fetch_sub_explicit(&permits->waiting, 1, memory_order_seq_cst);
}

static void grant_locked(struct permit_user *user, unsigned place)
{
	leave_locked(user);
	user->parts[place].held++;
	user->parts[place].granted++;
	post_locked(user);
}

static bool has_free_locked(const struct permits *permits, unsigned place)
{
	return permits->places[place].free > 0 && !permits->places[place].shut;
}

static void give_locked(struct permit_user *user, unsigned place, bool others)
{
	struct permits *permits = user->permits;
	struct permit_user *to = first_locked(permits);

	assert(user->parts[place].held);
	user->parts[place].held--;
	permits->places[place].free++;
	if (others && to == user && list_next(&permits->line, user, node))
		to = list_next(&permits->line, user, node);
	if (to && !permits->closed && has_free_locked(permits, place)) {
		permits->places[place].free--;
		grant_locked(to, place);
	}
}

/* Grants what is free to those that wait. */
static void grant_all_locked(struct permits *permits, unsigned place)
{
	struct permit_user *first;

	while ((first = first_locked(permits)) && !permits->closed &&
	       has_free_locked(permits, place)) {
		permits->places[place].free--;
		grant_locked(first, place);
	}
}

/* Returns true if the user may get a connection that is idle on another loop. */
static bool may_ask(const struct permit_user *user, unsigned place)
{
	return !user->permits->places[place].shut &&
	       (user->urgent || user->parts[place].held < user->parts[place].share);
}

static bool has_stalled(const struct permit_user *user, uint64_t now_ms)
{
	uint64_t started_ms = atomic_load_explicit(&user->started_ms, memory_order_relaxed);

	/* Another thread's clock may be ahead of this one's. */
	return now_ms > started_ms && now_ms - started_ms > PERMIT_STALL_MS;
}

/* Asks the next loop, from that number on, that may have an idle connection. */
static void ask_locked(struct permits *permits, unsigned from)
{
	for (unsigned i = from; i < permits->user_count; i++) {
		struct permit_user *user = &permits->users[i];

		if (atomic_load_explicit(&user->idle, memory_order_seq_cst)) {
			post_locked(user);
			return;
		}
	}
}

static bool may_ask_anywhere(const struct permit_user *user)
{
	for (unsigned i = 0; i < user->permits->place_count; i++)
		if (may_ask(user, i))
			return true;
	return false;
}

/* Asks the next loop if a waiting user may still get a connection. */
static void ask_on_locked(struct permits *permits, unsigned from)
{
	list_each (const struct permit_user, user, &permits->line, node) {
		if (may_ask_anywhere(user)) {
			ask_locked(permits, from);
			return;
		}
	}
}

/* --- taking the lock ------------------------------------------------------------------ */

void permits_close(struct permits *permits)
{
	pthread_mutex_lock(&permits->lock);
	permits->closed = true;
	pthread_mutex_unlock(&permits->lock);
}

void permits_limit(struct permits *permits, unsigned place, const _Atomic unsigned *limit)
{
	struct permit_place *at = &permits->places[place];
	unsigned now;

	pthread_mutex_lock(&permits->lock);
	now = atomic_load_explicit(limit, memory_order_relaxed);
	at->free += (int)now - (int)at->limit;
	at->limit = now;
	set_shares(permits, place);
	grant_all_locked(permits, place);
	pthread_mutex_unlock(&permits->lock);
}

void permit_place_shut(struct permits *permits, unsigned place)
{
	struct permit_place *at = &permits->places[place];

	pthread_mutex_lock(&permits->lock);
	at->shut = true;
	/* A user that was granted one gets its news, finds none and waits again. */
	for (unsigned i = 0; i < permits->user_count; i++) {
		struct permit_part *part = &permits->users[i].parts[place];

		at->free += (int)part->granted;
		part->held -= part->granted;
		part->granted = 0;
	}
	pthread_mutex_unlock(&permits->lock);
}

void permit_place_open(struct permits *permits, unsigned place)
{
	pthread_mutex_lock(&permits->lock);
	permits->places[place].shut = false;
	grant_all_locked(permits, place);
	pthread_mutex_unlock(&permits->lock);
}
void permits_call_idle(struct permits *permits)
{
	pthread_mutex_lock(&permits->lock);
	for (unsigned i = 0; i < permits->user_count; i++)
		if (atomic_load_explicit(&permits->users[i].idle, memory_order_seq_cst))
			post_locked(&permits->users[i]);
	pthread_mutex_unlock(&permits->lock);
}

bool permit_take(struct permit_user *user, unsigned place)
{
	struct permits *permits = user->permits;
	struct permit_part *part = &user->parts[place];
	bool taken = true;

	/* While it waits, no permit is free, and its task reports a grant. */
	if (in_list(user))
		return false;
	pthread_mutex_lock(&permits->lock);
	if (part->granted) {
		part->granted--;
	} else if (has_free_locked(permits, place)) {
		permits->places[place].free--;
		part->held++;
	} else {
		taken = false;
	}
	pthread_mutex_unlock(&permits->lock);
	return taken;
}

void permit_give(struct permit_user *user, unsigned place, bool others)
{
	pthread_mutex_lock(&user->permits->lock);
	give_locked(user, place, others);
	pthread_mutex_unlock(&user->permits->lock);
}

/* Returns true if one became free or was granted since the last check. */
static bool has_come_locked(struct permit_user *user)
{
	struct permits *permits = user->permits;

	for (unsigned i = 0; i < permits->place_count; i++) {
		if (user->parts[i].granted)
			return true;
		if (has_free_locked(permits, i) && !permits->closed) {
			permits->places[i].free--;
			grant_locked(user, i);
			return true;
		}
	}
	return false;
}

void permit_wait(struct permit_user *user, uint64_t now_ms)
{
	struct permits *permits = user->permits;

	if (in_list(user))
		return;
	pthread_mutex_lock(&permits->lock);
	if (!has_come_locked(user)) {
		permit_started(user, now_ms);
		enter_locked(user);
		if (may_ask_anywhere(user))
			ask_locked(permits, 0);
	}
	pthread_mutex_unlock(&permits->lock);
}

void permit_urge(struct permit_user *user)
{
	struct permits *permits = user->permits;

	pthread_mutex_lock(&permits->lock);
	user->urgent = true;
	if (in_list(user))
		ask_locked(permits, 0);
	pthread_mutex_unlock(&permits->lock);
}

void permit_wait_no_more(struct permit_user *user)
{
	pthread_mutex_lock(&user->permits->lock);
	leave_locked(user);
	user->urgent = false;
	pthread_mutex_unlock(&user->permits->lock);
}

bool permit_is_wanted(struct permit_user *user, unsigned place, bool busy, uint64_t now_ms)
{
	struct permits *permits = user->permits;
	bool wanted = false;
	unsigned waiting;

	/*
	 * In this order: removing a user from the list clears its flag first, then
	 * decrements the counter.
	 */
	waiting = atomic_load_explicit(&permits->waiting, memory_order_seq_cst);
	if (waiting <= in_list(user))
		return false;
	pthread_mutex_lock(&permits->lock);
	list_each (struct permit_user, at, &permits->line, node)
		wanted |= at != user && (busy ? has_stalled(at, now_ms) : may_ask(at, place));
	pthread_mutex_unlock(&permits->lock);
	return wanted;
}

void permit_news_begin(struct permit_user *user)
{
	pthread_mutex_lock(&user->permits->lock);
	user->posted = false;
	pthread_mutex_unlock(&user->permits->lock);
}

static void return_granted_locked(struct permit_user *user)
{
	for (unsigned i = 0; i < user->permits->place_count; i++)
		while (user->parts[i].granted) {
			user->parts[i].granted--;
			give_locked(user, i, true);
		}
}

void permit_news_end(struct permit_user *user)
{
	struct permits *permits = user->permits;

	pthread_mutex_lock(&permits->lock);
	return_granted_locked(user);
	ask_on_locked(permits, user->number + 1);
	pthread_mutex_unlock(&permits->lock);
}

void permit_user_gone(struct permit_user *user)
{
	struct permits *permits = user->permits;

	pthread_mutex_lock(&permits->lock);
	/* So that nothing is posted to it again. */
	user->posted = true;
	leave_locked(user);
	return_granted_locked(user);
	/* It may have been asked without reacting: ask the next one. */
	ask_on_locked(permits, user->number + 1);
	pthread_mutex_unlock(&permits->lock);
}
