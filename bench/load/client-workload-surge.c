/* SPDX-License-Identifier: MIT */
/*
 * client-workload-surge.c - users by SURGE's distributions: a page is some documents
 * in sequence, with active OFF times between them, and an inactive OFF time before the
 * next.  Each user is at a place of its own in one common circular sequence: each sees
 * the locality of the sequence, and all together request by Zipf's law at any time.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "client-requests.h"
#include "client-workload.h"
#include "surge.h"

struct user {
	struct surge surge;
	uint32_t at;   /* in the sequence */
	uint32_t left; /* embedded documents of the page */
	bool began;
};

struct users {
	struct workload workload;
	const struct requests *requests;
	uint32_t *sequence;
	uint32_t length;
	double scale; /* microseconds for a second */
	bool pages;
	struct user list[];
};

static void users_next(struct workload *workload, uint32_t client, struct step *step)
{
	struct users *users = (struct users *)workload;
	const struct requests *requests = users->requests;
	struct user *user = &users->list[client];
	double pause;

	*step = (struct step){.request =
				      &requests->made[requests->order[users->sequence[user->at]]]};
	if (++user->at == users->length)
		user->at = 0;
	if (user->left) {
		user->left--;
		pause = surge_active_off(&user->surge);
	} else {
		user->left = surge_embedded(&user->surge);
		pause = surge_inactive_off(&user->surge);
		step->leave = users->pages;
	}
	/* They do not all begin at the same time. */
	if (!user->began)
		pause *= surge_part(&user->surge);
	user->began = true;
	/* Longer than any load lasts. */
	pause *= users->scale;
	step->pause = pause < 1e15 ? (uint64_t)pause : (uint64_t)1e15;
}

static void users_close(struct workload *workload)
{
	free(((struct users *)workload)->sequence);
	free(workload);
}

struct workload *workload_surge(const struct requests *requests, uint32_t clients, uint64_t seed,
				double scale, bool pages)
{
	static const struct workload_kind kind = {users_next, users_close};
	struct users *users = calloc(1, sizeof(*users) + clients * sizeof(users->list[0]));
	struct surge surge = {seed};

	if (!users)
		return NULL;
	users->workload.kind = &kind;
	users->requests = requests;
	users->length = requests->count * SURGE_REPEAT;
	users->scale = scale * 1e6;
	users->pages = pages;
	users->sequence = calloc(users->length, sizeof(users->sequence[0]));
	if (!users->sequence ||
	    surge_sequence(users->sequence, users->length, requests->count, seed)) {
		users_close(&users->workload);
		return NULL;
	}
	for (uint32_t i = 0; i < clients; i++) {
		users->list[i].at = (uint32_t)(surge_part(&surge) * users->length);
		users->list[i].surge.state = seed + ((uint64_t)(i + 1) << 32);
	}
	return &users->workload;
}
