/* SPDX-License-Identifier: MIT */
/*
 * flow.c - see flow.h.
 */
#include <errno.h>
#include <stdlib.h>

#include <nabc-worker.h>

#include "wire/flow.h"

#define ROOM_FIRST 8u
#define TELL (NC_WORKER_WINDOW / 2) /* so a piece does not cost a record back */

void nc_flows_fini(struct nc_flows *flows)
{
	free(flows->all);
	*flows = (struct nc_flows){0};
}

struct nc_flow *nc_flows_find(struct nc_flows *flows, uint64_t tag)
{
	for (unsigned i = 0; i < flows->count; i++)
		if (flows->all[i].tag == tag)
			return &flows->all[i];
	return NULL;
}

/* NULL: no memory. */
static struct nc_flow *add(struct nc_flows *flows, uint64_t tag)
{
	if (flows->count == flows->room) {
		unsigned room = flows->room ? 2 * flows->room : ROOM_FIRST;
		struct nc_flow *all;

		all = realloc(flows->all, room * sizeof(*all));
		if (!all)
			return NULL;
		flows->all = all;
		flows->room = room;
	}
	flows->all[flows->count] = (struct nc_flow){.tag = tag};
	return &flows->all[flows->count++];
}

static void drop(struct nc_flows *flows, struct nc_flow *flow)
{
	flows->begun -= flow->begun;
	*flow = flows->all[--flows->count];
}

int nc_flows_open(struct nc_flows *flows, uint64_t tag, uint64_t number)
{
	struct nc_flow *flow = nc_flows_find(flows, tag);

	if (flow)
		return -EINVAL;
	flow = add(flows, tag);
	if (!flow)
		return -ENOMEM;
	flow->body = true;
	flow->number = number;
	return 0;
}

void nc_flows_close(struct nc_flows *flows, uint64_t tag)
{
	struct nc_flow *flow = nc_flows_find(flows, tag);

	if (flow)
		drop(flows, flow);
}

void nc_flows_withdraw(struct nc_flows *flows, uint64_t first, uint64_t last)
{
	/* The last one takes the place of one that is dropped. */
	for (unsigned i = flows->count; i-- > 0;) {
		struct nc_flow *flow = &flows->all[i];

		if (flow->body && flow->number >= first && flow->number <= last)
			drop(flows, flow);
	}
}

static int judge_taken(struct nc_flow *flow)
{
	if (!flow || flow->pieces == 0)
		return -EPROTO;
	flow->pieces--;
	return flow->broken ? NC_FLOW_DROP : NC_FLOW_PASS;
}

int nc_flows_judge(struct nc_flows *flows, const struct nc_wire_response *record)
{
	struct nc_flow *flow = nc_flows_find(flows, record->tag);
	bool more = record->flags & NC_RESPONSE_MORE, broken;

	if (record->flags & NC_RESPONSE_TAKEN)
		return judge_taken(flow);
	/* What was begun goes on by pieces, and nothing else does. */
	if (!(record->flags & NC_RESPONSE_ABORTED) &&
	    (flow && flow->begun) != !!(record->flags & NC_RESPONSE_PIECE))
		return -EPROTO;
	if (more && !(flow && flow->begun) && flows->begun == NC_WORKER_STREAMS_MAX)
		return -EPROTO;
	if (!flow && more) {
		flow = add(flows, record->tag);
		if (!flow)
			return -ENOMEM;
	}
	if (!flow)
		return NC_FLOW_PASS;
	broken = flow->broken;
	if (!more) {
		drop(flows, flow);
	} else {
		if (flow->unsent + flow->credit == NC_WORKER_WINDOW)
			return -EPROTO;
		flows->begun += !flow->begun;
		flow->begun = true;
		flow->unsent++;
	}
	return broken ? NC_FLOW_DROP : NC_FLOW_PASS;
}

void nc_flows_break(struct nc_flows *flows, uint64_t tag)
{
	struct nc_flow *flow = nc_flows_find(flows, tag);

	if (flow)
		flow->broken = true;
}

struct nc_flow *nc_flows_sent(struct nc_flows *flows, uint64_t tag)
{
	struct nc_flow *flow = nc_flows_find(flows, tag);

	if (!flow || flow->unsent == 0)
		return NULL;
	flow->unsent--;
	flow->credit++;
	return flow->credit >= TELL ? flow : NULL;
}
