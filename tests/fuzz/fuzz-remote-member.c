/* SPDX-License-Identifier: MIT */
/*
 * fuzz-remote-member.c - a member that writes arbitrary descriptions of its units
 * (libnabc/cache/remote-member.c): what the owner holds is in that member's memory,
 * and stays as it was at the first hold, whatever is written afterwards.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/fragment.h"
#include "cache/remote-member.h"
#include "store/unit.h"

#include "fuzz.h"
#include "stranger.h"

#define HOLDS 32u

struct hold {
	uint32_t slot;
	unsigned generation;
	struct nc_unit *unit;
	struct nc_layout layout; /* at the first hold */
	uint64_t at;
};

static struct hold holds[HOLDS];
static unsigned held;
static unsigned named[STRANGER_SLOTS]; /* generation */

static uint64_t choose(struct input *input, uint64_t low)
{
	static const uint64_t odd[] = {0, 1, 64, 4096, 8192, 61440, 65536, UINT64_MAX};
	unsigned choice = (unsigned)input_number(input, 1);

	if (choice == 255)
		return input_number(input, 8);
	return choice < 8 ? odd[choice] : low * (choice % 16);
}

static void publish(struct input *input, uint32_t slot)
{
	struct nc_unit_shared *entry = stranger_entry(slot);
	unsigned state = (unsigned)input_number(input, 1);

	atomic_store(&entry->at, choose(input, STRANGER_PAGE));
	atomic_store(&entry->size, choose(input, 1000));
	atomic_store(&entry->fraglen, choose(input, 1024));
	named[slot] += state >> 6;
	atomic_store(&entry->word,
		     nc_shared_word(named[slot], state % 8 > 5 ? NC_SHARED_LIVE : state % 8));
}

static void take_hold(uint32_t slot, unsigned generation, bool unlinked)
{
	struct hold *hold = &holds[held];

	if (held == HOLDS ||
	    nc_remote_member_hold(stranger, slot, generation, unlinked, &hold->unit))
		return;
	stranger_check(hold->unit);
	hold->slot = slot;
	hold->generation = generation;
	hold->layout = hold->unit->layout;
	hold->at = hold->unit->at;
	/* Already held: it is still the same unit. */
	for (unsigned i = 0; i < held; i++)
		if (holds[i].slot == slot)
			MUST(holds[i].generation == generation && holds[i].at == hold->at);
	held++;
}

static void release_hold(unsigned which)
{
	struct hold *hold = &holds[which % held];

	MUST(hold->unit->at == hold->at &&
	     memcmp(&hold->unit->layout, &hold->layout, sizeof(hold->layout)) == 0);
	stranger_check(hold->unit);
	MUST(nc_remote_member_release(stranger, hold->slot, hold->generation) == 0);
	*hold = holds[--held];
}

static void list(void)
{
	struct nc_unit_description description;
	unsigned generation;

	for (uint32_t slot = 0; nc_remote_member_next(stranger, &slot, &generation, &description);
	     slot++)
		MUST(slot < STRANGER_SLOTS && description.layout.size > 0 &&
		     (description.kernel ||
		      description.layout.extent <= STRANGER_SIZE - stranger_first));
}

/* The member exits; another one attaches once nothing of the first one is held. */
static void detach(void)
{
	uint32_t before = stranger->generation;

	nc_remote_member_detach(stranger);
	while (held)
		release_hold(0);
	MUST(!stranger->store && stranger->generation > before);
	if (!nc_remote_member_vacant(stranger)) {
		nc_remote_member_free(stranger);
		stranger = nc_remote_member_create(7, 1);
		MUST(stranger);
	}
	stranger_admit();
	for (unsigned i = 0; i < STRANGER_SLOTS; i++)
		named[i] = stranger->generation;
}

static void act(struct input *input)
{
	unsigned choice = (unsigned)input_number(input, 1);
	uint32_t slot = choice % 8;
	size_t words;

	switch (choice >> 3 & 7) {
	case 0:
	case 1:
		publish(input, slot);
		break;
	case 2:
	case 3:
		take_hold(slot + (choice >> 7) * 100, named[slot] - (choice >> 6 & 1),
			  choice >> 5 & 1);
		break;
	case 4:
		if (held)
			release_hold(slot);
		break;
	case 5:
		(void)nc_remote_member_destroy(stranger, slot, named[slot] - (choice >> 6 & 1));
		break;
	case 6:
		/* Any word of the table. */
		words = input_number(input, 1) % (STRANGER_SLOTS * 4);
		atomic_store((&stranger_entry((uint32_t)words / 4)->word) + words % 4,
			     input_number(input, 8));
		break;
	default:
		list();
		if (choice >> 6 == 3)
			detach();
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};

	stranger_open();
	held = 0;
	for (unsigned i = 0; i < STRANGER_SLOTS; i++)
		named[i] = 1;
	while (input.left)
		act(&input);
	while (held)
		release_hold(0);
	MUST(stranger->held == 0);
	nc_remote_member_free(stranger);
	return 0;
}
