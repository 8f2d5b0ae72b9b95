/* SPDX-License-Identifier: MIT */
/*
 * replacement.c - the table of the policies, one source each; see replacement.h.
 */
#include <errno.h>
#include <stdlib.h>

#include "policy/replacement-internal.h"
#include "policy/replacement.h"

static const struct nc_replacement_policy *const policies[] = {
	[NC_POLICY_DEFAULT] = &nc_replacement_gdsf,
	[NC_POLICY_SIEVE] = &nc_replacement_sieve,
	[NC_POLICY_LRU] = &nc_replacement_lru,
	[NC_POLICY_GDSF] = &nc_replacement_gdsf,
};

static const struct nc_replacement_policy *find(enum NC_policy policy)
{
	return (size_t)policy < sizeof(policies) / sizeof(policies[0]) ? policies[policy] : NULL;
}

int nc_replacement_init(struct nc_replacement *order, enum NC_policy policy)
{
	*order = (struct nc_replacement){.policy = find(policy)};
	return order->policy ? 0 : -EINVAL;
}

void nc_replacement_fini(struct nc_replacement *order)
{
	free(order->heap);
	*order = (struct nc_replacement){.policy = order->policy};
}

const char *nc_replacement_name(enum NC_policy policy)
{
	const struct nc_replacement_policy *found = find(policy);

	return found ? found->name : NULL;
}
