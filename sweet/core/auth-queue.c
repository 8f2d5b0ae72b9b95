/* SPDX-License-Identifier: MIT */
/*
 * auth-queue.c - the checks that wait for a thread: clients take turns, and share the queue fairly.
 * Everything runs under the authenticator's lock.
 */
#include <stdbool.h>
#include <string.h>

#include <glib.h>

#include "auth/htpasswd.h"
#include "core/auth-internal.h"
#include "core/auth.h"
#include "event/client-limit.h"

/* At most one client for each check. */
struct auth_client *auth_find_client_locked(struct authenticator *authenticator,
					    const struct client_address *address)
{
	struct auth_client *client;

	for (unsigned i = 0; i < authenticator->client_count; i++)
		if (memcmp(&authenticator->clients[i]->address, address, sizeof(*address)) == 0)
			return authenticator->clients[i];
	if (authenticator->client_count == AUTH_CHECKS_MAX)
		return NULL;
	client = authenticator->clients[authenticator->client_count++];
	*client = (struct auth_client){.address = *address};
	return client;
}

void auth_remove_check_locked(struct authenticator *authenticator, struct auth_check *check)
{
	struct auth_client *client = check->of;
	unsigned i = 0;

	check->of = NULL;
	authenticator->check_count--;
	if (--client->checks > 0)
		return;
	while (authenticator->clients[i] != client)
		i++;
	authenticator->clients[i] = authenticator->clients[--authenticator->client_count];
	authenticator->clients[authenticator->client_count] = client;
}

struct auth_check *auth_find_same_locked(const struct authenticator *authenticator,
					 const struct auth_check *check)
{
	const size_t length = strlen(check->password);
	struct auth_check *other;

	/* Those with a result, which has not been reported, are of no client any more. */
	for (other = authenticator->checks; other; other = other->next)
		if (other->of && other->auth == check->auth &&
		    memcmp(&other->client, &check->client, sizeof(check->client)) == 0 &&
		    strcmp(other->user, check->user) == 0 && strlen(other->password) == length &&
		    htpasswd_equal(other->password, check->password, length))
			break;
	return other;
}

void auth_list_locked(struct authenticator *authenticator, struct auth_check *check)
{
	check->next = authenticator->checks;
	check->link = &authenticator->checks;
	if (check->next)
		check->next->link = &check->next;
	authenticator->checks = check;
}

struct auth_check *auth_end_followers_locked(struct authenticator *authenticator,
					     struct auth_check *check)
{
	struct auth_check *first = check->followers;

	check->followers = NULL;
	for (struct auth_check *one = first; one; one = one->later) {
		one->answer = check->answer;
		auth_list_locked(authenticator, one);
	}
	return first;
}

static void add_turn_locked(struct authenticator *authenticator, struct auth_client *client)
{
	client->turn.data = client;
	g_queue_push_tail_link(&authenticator->turns, &client->turn);
}

static void remove_turn_locked(struct authenticator *authenticator, struct auth_client *client)
{
	g_queue_unlink(&authenticator->turns, &client->turn);
}

void auth_add_waiting_locked(struct authenticator *authenticator, struct auth_client *client,
			     struct auth_check *check)
{
	check->of = client;
	check->queued = true;
	check->later = NULL;
	client->checks++;
	authenticator->check_count++;
	if (client->first) {
		client->last->later = check;
	} else {
		client->first = check;
		add_turn_locked(authenticator, client);
	}
	client->last = check;
}

struct auth_check *auth_next_locked(struct authenticator *authenticator)
{
	struct auth_client *client = g_queue_peek_head(&authenticator->turns);
	struct auth_check *check;

	if (!client || authenticator->working == AUTH_THREADS)
		return NULL;
	check = client->first;
	client->first = check->later;
	remove_turn_locked(authenticator, client);
	if (client->first)
		add_turn_locked(authenticator, client);
	check->queued = false;
	authenticator->working++;
	return check;
}

void auth_unqueue_locked(struct authenticator *authenticator, struct auth_check *check)
{
	struct auth_client *client = check->of;
	struct auth_check *before = client->first;

	if (before == check) {
		client->first = check->later;
		if (!client->first)
			remove_turn_locked(authenticator, client);
	} else {
		while (before->later != check)
			before = before->later;
		before->later = check->later;
		if (client->last == check)
			client->last = before;
	}
	check->queued = false;
	auth_remove_check_locked(authenticator, check);
}

/*
 * Drops a check of the client with the most checks, in favour of a client that has
 * `checks`, if the shares are more equal afterwards.  Returns NULL if there is none.
 */
struct auth_check *auth_make_place_locked(struct authenticator *authenticator, unsigned checks)
{
	struct auth_client *most = NULL;
	struct auth_check *victim;

	for (unsigned i = 0; i < authenticator->client_count; i++) {
		struct auth_client *client = authenticator->clients[i];

		if (client->first && client->checks > checks + 1 &&
		    (!most || client->checks > most->checks))
			most = client;
	}
	victim = most ? most->last : NULL;
	if (victim)
		auth_unqueue_locked(authenticator, victim);
	return victim;
}
