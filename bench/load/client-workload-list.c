/* SPDX-License-Identifier: MIT */
/*
 * client-workload-list.c - a list that all clients together request in order, or from
 * which each one draws; as fast as the server responds.
 */
#include <stdint.h>
#include <stdlib.h>

#include "client-requests.h"
#include "client-workload.h"

struct in_order {
	struct workload workload;
	const struct requests *requests;
	uint32_t at;
};

static void in_order_next(struct workload *workload, uint32_t client, struct step *step)
{
	struct in_order *list = (struct in_order *)workload;
	const struct requests *requests = list->requests;

	(void)client;
	*step = (struct step){.request = &requests->made[requests->order[list->at]]};
	if (++list->at == requests->count)
		list->at = 0;
}

static void in_order_close(struct workload *workload)
{
	free(workload);
}

struct workload *workload_in_order(const struct requests *requests)
{
	static const struct workload_kind kind = {in_order_next, in_order_close};
	struct in_order *list = malloc(sizeof(*list));

	if (!list)
		return NULL;
	*list = (struct in_order){.workload.kind = &kind, .requests = requests};
	return &list->workload;
}

struct shuffled {
	struct workload workload;
	const struct requests *requests;
	uint64_t states[]; /* of each client's generator */
};

/* splitmix64: good from any state, so that the sequences of neighbours differ. */
static uint64_t next_number(uint64_t *state)
{
	uint64_t mixed = *state += 0x9e3779b97f4a7c15ull;

	mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9ull;
	mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebull;
	return mixed ^ mixed >> 31;
}

static void shuffled_next(struct workload *workload, uint32_t client, struct step *step)
{
	struct shuffled *list = (struct shuffled *)workload;
	const struct requests *requests = list->requests;
	uint64_t number = next_number(&list->states[client]) >> 32;
	uint32_t at = (uint32_t)(number * requests->count >> 32);

	*step = (struct step){.request = &requests->made[requests->order[at]]};
}

static void shuffled_close(struct workload *workload)
{
	free(workload);
}

struct workload *workload_shuffled(const struct requests *requests, uint32_t clients, uint64_t seed)
{
	static const struct workload_kind kind = {shuffled_next, shuffled_close};
	struct shuffled *list = malloc(sizeof(*list) + clients * sizeof(list->states[0]));

	if (!list)
		return NULL;
	list->workload.kind = &kind;
	list->requests = requests;
	for (uint32_t i = 0; i < clients; i++)
		list->states[i] = next_number(&seed);
	return &list->workload;
}
