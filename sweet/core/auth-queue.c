/* SPDX-License-Identifier: MIT */
/*
 * auth-queue.c - the checks that wait for a thread: clients take turns, and share the queue fairly.
 * Everything runs under the authenticator's lock.
 */
#include <stdbool.h>
#include <string.h>

#include <glib.h>

#include "auth/htpasswd.h"
#include "base/list.h"
#include "core/auth-check.h"
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

	/* Those with a result, which has not been reported, are of no client any more. */
	list_each (struct auth_check, other, &authenticator->checks, listed)
		if (other->of && other->auth == check->auth &&
		    memcmp(&other->client, &check->client, sizeof(check->client)) == 0 &&
		    strcmp(other->user, check->user) == 0 && strlen(other->password) == length &&
		    htpasswd_equal(other->password, check->password, length))
			return other;
	return NULL;
}

void auth_end_followers_locked(struct authenticator *authenticator, struct auth_check *check,
			       struct list *followers)
{
	list_move(followers, &check->followers);
	list_each (struct auth_check, one, followers, later) {
		one->answer = check->answer;
		list_append(&authenticator->ended, &one->listed);
	}
}

void auth_add_waiting_locked(struct authenticator *authenticator, struct auth_client *client,
			     struct auth_check *check)
{
	check->of = client;
	check->queued = true;
	client->checks++;
	authenticator->check_count++;
	if (list_is_empty(&client->queued))
		list_append(&authenticator->turns, &client->turn);
	list_append(&client->queued, &check->later);
}

struct auth_check *auth_next_locked(struct authenticator *authenticator)
{
	struct auth_client *client = list_first(&authenticator->turns, struct auth_client, turn);
	struct auth_check *check;

	if (!client || authenticator->working == AUTH_THREADS)
		return NULL;
	check = list_take(&client->queued, struct auth_check, later);
	list_remove(&client->turn);
	if (!list_is_empty(&client->queued))
		list_append(&authenticator->turns, &client->turn);
	check->queued = false;
	authenticator->working++;
	return check;
}

void auth_unqueue_locked(struct authenticator *authenticator, struct auth_check *check)
{
	struct auth_client *client = check->of;

	list_remove(&check->later);
	if (list_is_empty(&client->queued))
		list_remove(&client->turn);
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

		if (!list_is_empty(&client->queued) && client->checks > checks + 1 &&
		    (!most || client->checks > most->checks))
			most = client;
	}
	victim = most ? list_last(&most->queued, struct auth_check, later) : NULL;
	if (victim)
		auth_unqueue_locked(authenticator, victim);
	return victim;
}
