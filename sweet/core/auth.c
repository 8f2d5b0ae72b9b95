/* SPDX-License-Identifier: MIT */
/*
 * auth.c - see auth.h: a check, from the Authorization field to its result.
 *
 * auth_ask() and auth_done() run on the thread of the check's loop, auth_work() on a thread of the
 * authenticator.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include <glib.h>

#include "auth/htpasswd.h"
#include "base/clock.h"
#include "base/container.h"
#include "base/list.h"
#include "core/auth-check.h"
#include "core/auth-internal.h"
#include "core/auth.h"
#include "event/client-limit.h"
#include "event/loop.h"
#include "event/thread-pool.h"

/* Failures that a client may have at once; then one each interval. */
#define FAILURES 20
#define FAILURE_NS (2 * AUTH_SECOND_NS)

/* --- opening and closing ---------------------------------------------------------- */

struct authenticator *authenticator_open(struct client_limits *limits)
{
	struct authenticator *authenticator = g_new0(struct authenticator, 1);

	authenticator->limits = limits;
	authenticator->failures = rate_new("failures of authentication", 1, FAILURES);
	if (!authenticator->failures ||
	    getrandom(authenticator->salt, AUTH_DIGEST, 0) != AUTH_DIGEST) {
		rate_free(authenticator->failures);
		g_free(authenticator);
		return NULL;
	}
	authenticator->failures->interval_ns = FAILURE_NS;
	authenticator->failures->burst_ns = (FAILURES - 1) * FAILURE_NS;
	for (unsigned i = 0; i < AUTH_CHECKS_MAX; i++)
		authenticator->clients[i] = &authenticator->memory[i];
	pthread_mutex_init(&authenticator->lock, NULL);
	return authenticator;
}

static void leave(struct auth_check *check)
{
	struct authenticator *authenticator = check->auth->authenticator;

	pthread_mutex_lock(&authenticator->lock);
	list_remove(&check->listed);
	pthread_mutex_unlock(&authenticator->lock);
	explicit_bzero(check->password, sizeof(check->password));
	auth_release(check->auth);
}

void authenticator_close(struct authenticator *authenticator)
{
	struct auth_check *check;
	struct auth *auth;
	struct list followers;

	if (!authenticator)
		return;
	thread_pool_close(authenticator->thread_pool);
	while ((auth = list_take(&authenticator->refreshes, struct auth, refreshing)))
		auth_release(auth);
	while ((check = list_first(&authenticator->checks, struct auth_check, listed)) ||
	       (check = list_first(&authenticator->ended, struct auth_check, listed))) {
		auth_end_followers_locked(authenticator, check, &followers); /* no thread is left */
		leave(check);
		check->answer = AUTH_BUSY;
		check->answered(check);
	}
	rate_free(authenticator->failures);
	pthread_mutex_destroy(&authenticator->lock);
	explicit_bzero(authenticator, sizeof(*authenticator));
	g_free(authenticator);
}

bool auth_open_threads(struct authenticator *authenticator)
{
	bool good;

	pthread_mutex_lock(&authenticator->lock);
	if (!authenticator->thread_pool)
		authenticator->thread_pool = thread_pool_open_low(AUTH_THREADS + 1, AUTH_THREADS);
	good = authenticator->thread_pool != NULL;
	pthread_mutex_unlock(&authenticator->lock);
	return good;
}

/* --- checking ------------------------------------------------------------------------ */

/* The result, on the thread of the check's loop. */
static void auth_done(struct job *job)
{
	struct auth_check *check = container_of(job, struct auth_check, job);
	struct authenticator *authenticator = check->auth->authenticator;

	/* A check that was not carried out does not count as a failure. */
	if (check->answer != AUTH_NO && check->taken)
		client_limits_put_back(authenticator->limits, authenticator->failures,
				       &check->client);
	leave(check);
	check->answered(check);
}

static void auth_ended(struct loop_task *task)
{
	struct auth_check *check = container_of(task, struct auth_check, job.task);

	auth_done(&check->job);
}

/* Reports the result of a check that has no thread. */
static void end(struct auth_check *check)
{
	check->job.task.run = auth_ended;
	loop_queue(check->loop, &check->job.task);
}

static void end_all(struct list *checks)
{
	struct auth_check *check;

	while ((check = list_take(checks, struct auth_check, later)))
		end(check);
}

/* Starts the next check on the thread of a check that is done. */
static void pass_on(struct authenticator *authenticator, struct auth_check *check)
{
	struct auth_check *next;
	struct list followers;

	pthread_mutex_lock(&authenticator->lock);
	auth_remove_check_locked(authenticator, check);
	auth_end_followers_locked(authenticator, check, &followers);
	authenticator->working--;
	next = auth_next_locked(authenticator);
	pthread_mutex_unlock(&authenticator->lock);
	if (next)
		thread_pool_submit(authenticator->thread_pool, &next->job);
	end_all(&followers);
}

static void auth_work(struct job *job)
{
	struct auth_check *check = container_of(job, struct auth_check, job);
	struct auth *auth = check->auth;
	struct htpasswd *users;
	const char *hash;

	if (check->refresh)
		auth_refresh(auth);
	users = auth_hold_users(auth);
	hash = htpasswd_find(users, check->user);
	check->answer = AUTH_NO;
	if (hash && auth_is_remembered(auth->authenticator, hash, check, clock_monotonic_ns())) {
		check->answer = AUTH_YES;
	} else if (hash && auth_verify(auth, hash, check)) {
		auth_remember(auth->authenticator, hash, check, clock_monotonic_ns());
		check->answer = AUTH_YES;
	} else if (!hash && htpasswd_any(users)) {
		/* Takes the same time, so that the time does not reveal whether the user exists. */
		(void)htpasswd_verify(htpasswd_any(users), check->password);
	}
	htpasswd_release(users);
	pass_on(auth->authenticator, check);
}

/* --- asking --------------------------------------------------------------------------- */

/* Decodes user and password of the field. */
static bool read_field(struct slice field, struct auth_check *check)
{
	char encoded[(HTPASSWD_USER_MAX + 1 + AUTH_PASSWORD_MAX + 2) / 3 * 4 + 1];
	guchar decoded[sizeof(encoded)];
	gint state = 0;
	guint save = 0;
	size_t length, user;
	const guchar *colon;

	if (field.length < 6 || strncasecmp(field.at, "Basic ", 6) != 0)
		return false;
	field.at += 6;
	field.length -= 6;
	while (field.length && *field.at == ' ') {
		field.at++;
		field.length--;
	}
	if (field.length >= sizeof(encoded) || field.length % 4 != 0)
		return false;
	memcpy(encoded, field.at, field.length);
	encoded[field.length] = '\0';
	/* The decoder would skip invalid characters. */
	length =
		strspn(encoded, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/");
	if (length + strspn(encoded + length, "=") != field.length || field.length - length > 2)
		return false;
	length = g_base64_decode_step(encoded, field.length, decoded, &state, &save);
	colon = memchr(decoded, ':', length);
	if (!colon || memchr(decoded, '\0', length))
		return false;
	user = (size_t)(colon - decoded);
	if (user > HTPASSWD_USER_MAX || length - user - 1 > AUTH_PASSWORD_MAX)
		return false;
	memcpy(check->user, decoded, user);
	check->user[user] = '\0';
	memcpy(check->password, colon + 1, length - user - 1);
	check->password[length - user - 1] = '\0';
	explicit_bzero(encoded, sizeof(encoded));
	explicit_bzero(decoded, sizeof(decoded));
	return true;
}

/* A check that is dropped, with those that follow it. */
static void drop(struct auth_check *check, struct list *followers)
{
	if (check->refresh)
		atomic_store(&check->auth->looked_ns, 0);
	end(check);
	end_all(followers);
}

/* Returns AUTH_BUSY if the queue is full, and no client has a larger share than this one. */
static enum auth_answer enter_locked(struct authenticator *authenticator, struct auth_check *check,
				     struct auth_check **victim)
{
	struct auth_client *client = auth_find_client_locked(authenticator, &check->client);

	if (client && authenticator->check_count == AUTH_CHECKS_MAX)
		*victim = auth_make_place_locked(authenticator, client->checks);
	/* There are as many clients as checks: if no client is free, no check is free. */
	if (client && authenticator->check_count < AUTH_CHECKS_MAX) {
		auth_add_waiting_locked(authenticator, client, check);
		list_prepend(&authenticator->checks, &check->listed);
		return AUTH_LATER;
	}
	if (client && client->checks == 0)
		authenticator->client_count--; /* the newest is the last */
	return AUTH_BUSY;
}

/* Counted before the result is known; else many checks at once would pass the limit. */
static enum auth_answer count(struct auth_check *check, const struct sockaddr *client, uint64_t now)
{
	const struct authenticator *authenticator = check->auth->authenticator;
	uint64_t wait =
		client_limits_take(authenticator->limits, authenticator->failures, client, now);

	check->wait_s = (unsigned)((wait + AUTH_SECOND_NS - 1) / AUTH_SECOND_NS);
	check->taken = wait == 0;
	/* A client that is refused must not use up the check of the file. */
	check->refresh = check->taken && auth_is_due(check->auth, now);
	return wait ? AUTH_WAIT : AUTH_LATER;
}

/* Queues the check; the result may arrive as soon as that is done. */
static enum auth_answer submit(struct auth_check *check, const struct sockaddr *client,
			       uint64_t now)
{
	struct authenticator *authenticator = check->auth->authenticator;
	struct auth_check *same, *victim = NULL, *next = NULL;
	struct list followers = {0};
	enum auth_answer answer = AUTH_LATER;

	pthread_mutex_lock(&authenticator->lock);
	same = auth_find_same_locked(authenticator, check);
	if (same) {
		list_append(&same->followers, &check->later);
	} else {
		answer = count(check, client, now);
		if (answer == AUTH_LATER)
			answer = enter_locked(authenticator, check, &victim);
		if (answer == AUTH_LATER)
			next = auth_next_locked(authenticator);
	}
	if (victim) {
		victim->answer = AUTH_BUSY;
		auth_end_followers_locked(authenticator, victim, &followers);
	}
	pthread_mutex_unlock(&authenticator->lock);
	if (victim)
		drop(victim, &followers);
	if (next)
		thread_pool_submit(authenticator->thread_pool, &next->job);
	return answer;
}

static bool is_remembered(struct auth *auth, const struct auth_check *check, uint64_t now)
{
	struct htpasswd *users = auth_hold_users(auth);
	const char *hash = htpasswd_find(users, check->user);
	bool remembered = hash && auth_is_remembered(auth->authenticator, hash, check, now);

	htpasswd_release(users);
	return remembered;
}

/* The result is known, or there is none. */
static enum auth_answer answer_now(struct auth_check *check, enum auth_answer answer)
{
	explicit_bzero(check->password, sizeof(check->password));
	return check->answer = answer;
}

enum auth_answer auth_ask(struct auth *auth, struct auth_check *check,
			  const struct sockaddr *client, struct slice field)
{
	uint64_t now = clock_monotonic_ns();
	enum auth_answer answer;

	check->user[0] = '\0';
	check->wait_s = 0;
	check->taken = check->refresh = check->queued = false;
	check->answer = AUTH_NO;
	if (!read_field(field, check))
		return AUTH_NO;
	if (is_remembered(auth, check, now)) {
		if (auth_is_due(auth, now))
			auth_refresh_beside(auth, check->loop);
		return answer_now(check, AUTH_YES);
	}
	check->auth = auth_hold(auth);
	check->of = NULL;
	check->followers = (struct list){0};
	check->client = client_address(client);
	/* Clients take turns before they get here. */
	check->job = (struct job){
		.work = auth_work, .done = auth_done, .loop = check->loop, .class = JOB_SLOW};
	answer = submit(check, client, now);
	if (answer == AUTH_LATER)
		return AUTH_LATER;
	if (answer == AUTH_BUSY && check->refresh)
		atomic_store(&auth->looked_ns, 0);
	if (answer == AUTH_BUSY && check->taken)
		client_limits_put_back(auth->authenticator->limits, auth->authenticator->failures,
				       &check->client);
	auth_release(auth);
	return answer_now(check, answer);
}

void auth_leave(struct auth_check *check)
{
	struct authenticator *authenticator = check->auth->authenticator;
	struct list none = {0};
	bool removed;

	pthread_mutex_lock(&authenticator->lock);
	/* Its followers still need the result, and a follower costs nothing. */
	removed = check->queued && list_is_empty(&check->followers);
	if (removed) {
		auth_unqueue_locked(authenticator, check);
		check->answer = AUTH_BUSY;
	}
	pthread_mutex_unlock(&authenticator->lock);
	if (removed)
		drop(check, &none);
}

size_t auth_challenge(const char *realm, char *out, size_t out_size)
{
	static const char before[] = "WWW-Authenticate: Basic realm=\"";
	static const char behind[] = "\", charset=\"UTF-8\"\r\n";
	size_t length = sizeof(before) - 1;

	if (out_size < sizeof(before) + sizeof(behind) + 2 * strlen(realm))
		return 0;
	memcpy(out, before, length);
	for (; *realm; realm++) {
		if (*realm == '"' || *realm == '\\')
			out[length++] = '\\';
		/* A control character is not permitted in a field. */
		out[length++] = (unsigned char)*realm < ' ' || *realm == 0x7f ? ' ' : *realm;
	}
	memcpy(out + length, behind, sizeof(behind) - 1);
	return length + sizeof(behind) - 1;
}
