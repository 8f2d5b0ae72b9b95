/* SPDX-License-Identifier: MIT */
/*
 * auth.c - see auth.h: a check, from the Authorization field to its result.
 *
 * auth_ask() and done() run on the thread of the check's loop, work() on a thread of the
 * authenticator.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <glib.h>

#include "base/clock.h"
#include "core/auth-internal.h"

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
	*check->link = check->next;
	if (check->next)
		check->next->link = check->link;
	pthread_mutex_unlock(&authenticator->lock);
	explicit_bzero(check->password, sizeof(check->password));
	auth_release(check->auth);
}

void authenticator_close(struct authenticator *authenticator)
{
	if (!authenticator)
		return;
	thread_pool_close(authenticator->thread_pool);
	while (authenticator->checks) {
		struct auth_check *check = authenticator->checks;

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
		authenticator->thread_pool = thread_pool_open(AUTH_THREADS);
	good = authenticator->thread_pool != NULL;
	pthread_mutex_unlock(&authenticator->lock);
	return good;
}

/* --- checking ------------------------------------------------------------------------ */

/* Starts the next check on the thread of a check that is done. */
static void pass_on(struct authenticator *authenticator, struct auth_check *check)
{
	struct auth_check *next;

	pthread_mutex_lock(&authenticator->lock);
	auth_remove_check_locked(authenticator, check);
	authenticator->working--;
	next = auth_next_locked(authenticator);
	pthread_mutex_unlock(&authenticator->lock);
	if (next)
		thread_pool_submit(authenticator->thread_pool, &next->job);
}

static void work(struct job *job)
{
	struct auth_check *check =
		(struct auth_check *)((char *)job - offsetof(struct auth_check, job));
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

static void done(struct job *job)
{
	struct auth_check *check =
		(struct auth_check *)((char *)job - offsetof(struct auth_check, job));
	struct authenticator *authenticator = check->auth->authenticator;

	/* A check that was not carried out does not count as a failure. */
	if (check->answer != AUTH_NO && check->taken)
		client_limits_put_back(authenticator->limits, authenticator->failures,
				       &check->client);
	leave(check);
	check->answered(check);
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

static void dropped(struct loop_task *task)
{
	struct auth_check *check =
		(struct auth_check *)((char *)task - offsetof(struct auth_check, job.task));

	done(&check->job);
}

/* A check that is dropped is reported on its own thread. */
static void drop(struct auth_check *check)
{
	check->answer = AUTH_BUSY;
	if (check->refresh)
		atomic_store(&check->auth->looked_ns, 0);
	check->job.task.run = dropped;
	loop_post(check->loop, &check->job.task);
}

/* Returns false if the queue is full, and no client has a larger share than this one. */
static bool enter(struct authenticator *authenticator, struct auth_check *check)
{
	struct auth_check *victim = NULL, *next = NULL;
	struct auth_client *client;
	bool room;

	pthread_mutex_lock(&authenticator->lock);
	client = auth_find_client_locked(authenticator, &check->client);
	if (client && authenticator->check_count == AUTH_CHECKS_MAX)
		victim = auth_make_place_locked(authenticator, client->checks);
	/* There are as many clients as checks: if no client is free, no check is free. */
	room = client && authenticator->check_count < AUTH_CHECKS_MAX;
	if (room) {
		auth_add_waiting_locked(authenticator, client, check);
		next = auth_next_locked(authenticator);
		check->next = authenticator->checks;
		check->link = &authenticator->checks;
		if (check->next)
			check->next->link = &check->next;
		authenticator->checks = check;
	} else if (client && client->checks == 0) {
		authenticator->client_count--; /* the newest is the last */
	}
	pthread_mutex_unlock(&authenticator->lock);
	if (victim)
		drop(victim);
	if (next)
		thread_pool_submit(authenticator->thread_pool, &next->job);
	return room;
}

/* Returns the result if no thread is needed; else AUTH_LATER. */
static enum auth_answer ask_here(struct auth *auth, struct auth_check *check,
				 const struct sockaddr *client)
{
	struct authenticator *authenticator = auth->authenticator;
	uint64_t now = clock_monotonic_ns(), wait;
	struct htpasswd *users = auth_hold_users(auth);
	const char *hash = htpasswd_find(users, check->user);
	bool remembered = hash && auth_is_remembered(authenticator, hash, check, now);

	htpasswd_release(users);
	if (remembered) {
		check->refresh = auth_is_due(auth, now);
		return check->refresh ? AUTH_LATER : AUTH_YES;
	}
	/* Counted before the result is known; else many checks at once would pass the limit. */
	wait = client_limits_take(authenticator->limits, authenticator->failures, client, now);
	check->wait_s = (unsigned)((wait + AUTH_SECOND_NS - 1) / AUTH_SECOND_NS);
	check->taken = wait == 0;
	/* A client that is refused must not use up the check of the file. */
	check->refresh = check->taken && auth_is_due(auth, now);
	return wait ? AUTH_WAIT : AUTH_LATER;
}

enum auth_answer auth_ask(struct auth *auth, struct auth_check *check,
			  const struct sockaddr *client, struct slice field)
{
	check->user[0] = '\0';
	check->wait_s = 0;
	check->taken = false;
	check->answer = AUTH_NO;
	if (!read_field(field, check))
		return AUTH_NO;
	check->answer = ask_here(auth, check, client);
	if (check->answer != AUTH_LATER) {
		explicit_bzero(check->password, sizeof(check->password));
		return check->answer;
	}
	check->auth = auth_hold(auth);
	check->client = client_address(client);
	check->job = (struct job){.work = work, .done = done, .loop = check->loop};
	/* The result may arrive as soon as the check is queued. */
	if (enter(auth->authenticator, check))
		return AUTH_LATER;
	check->answer = AUTH_BUSY;
	if (check->refresh)
		atomic_store(&auth->looked_ns, 0);
	if (check->taken)
		client_limits_put_back(auth->authenticator->limits, auth->authenticator->failures,
				       &check->client);
	explicit_bzero(check->password, sizeof(check->password));
	auth_release(auth);
	return AUTH_BUSY;
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
