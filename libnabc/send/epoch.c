/* SPDX-License-Identifier: MIT */
/* epoch.c - see epoch.h. */
#include "send/epoch.h"

/* A measured epoch takes at least that CPU time, so that an interrupt does not matter. */
#define LEAST_NS UINT64_C(2000000)

/* An epoch that does not settle, or is too short for its time, ends unmeasured. */
#define MESSAGES_MAX 1024u

/* One message in this many, at most, may be of another kind; a few are always permitted. */
#define OTHERS_SHARE 8u
#define OTHERS_FEW 8u

static void begin(struct nc_epoch *epoch, struct nc_choice *choice, unsigned candidates,
		  unsigned first)
{
	struct nc_pick pick = nc_choice_pick(choice, candidates, first);

	*epoch = (struct nc_epoch){.choice = choice, .way = pick.way, .measure = pick.measure};
}

/* Ends the epoch if that is due; then its cost is known. */
static bool ends(const struct nc_epoch *epoch, struct nc_choice *choice, uint64_t (*cpu_ns)(void))
{
	uint64_t ns;

	if (epoch->messages == MESSAGES_MAX)
		return true;
	if (epoch->settled < NC_EPOCH_SETTLE + NC_EPOCH_LEAST ||
	    (epoch->settled - NC_EPOCH_SETTLE) % NC_EPOCH_LEAST)
		return false;
	if (!epoch->measure)
		return true;
	ns = cpu_ns() - epoch->began;
	if (ns < LEAST_NS)
		return false;
	nc_choice_measured(choice, epoch->way, ns, epoch->bytes, epoch->bytes);
	return true;
}

/* Whether the thread sends so much else that its CPU time says nothing. */
static bool is_mixed(const struct nc_epoch *epoch)
{
	return epoch->others > OTHERS_FEW + epoch->messages / OTHERS_SHARE;
}

unsigned nc_epoch_way(struct nc_epoch *epoch, struct nc_choice *choice, unsigned candidates,
		      unsigned first, size_t bytes, uint64_t (*cpu_ns)(void))
{
	if (epoch->choice && epoch->choice != choice) {
		epoch->others++;
		if (!is_mixed(epoch))
			return nc_choice_best(choice, candidates, first);
	}
	if (epoch->choice != choice || ends(epoch, choice, cpu_ns))
		begin(epoch, choice, candidates, first);
	if (epoch->settled == NC_EPOCH_SETTLE) {
		epoch->bytes = 0;
		epoch->began = epoch->measure ? cpu_ns() : 0;
	}
	epoch->messages++;
	epoch->settled++;
	epoch->bytes += bytes;
	return epoch->way;
}

void nc_epoch_continues(struct nc_epoch *epoch, const struct nc_choice *choice, unsigned way)
{
	if (epoch->choice == choice && way != epoch->way)
		epoch->settled = 0;
}
