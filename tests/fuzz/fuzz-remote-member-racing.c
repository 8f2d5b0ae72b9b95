/* SPDX-License-Identifier: MIT */
/*
 * fuzz-remote-member-racing.c - the same member as in fuzz-remote-member.c, which
 * writes to its table at the very moment when the owner reads it.  The input is what
 * it writes: a place, how, and a word, repeatedly.
 */
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/fragment.h"
#include "cache/remote-member.h"
#include "store/unit.h"

#include "fuzz.h"
#include "racer.h"
#include "stranger.h"

#define ROUNDS 40u

/* Words that are almost valid, so that some are accepted. */
static uint64_t word_of(struct input *input, unsigned place, unsigned how)
{
	uint64_t number = input_number(input, how & 4 ? 8 : 1);

	if (how & 4)
		return number;
	switch (place % 4) {
	case 0:
		return nc_shared_word(1 + number % 4,
				      how & 8 ? (unsigned)(number >> 4 & 7) : NC_SHARED_LIVE);
	case 1:
		return STRANGER_PAGE * (number % 20);
	case 2:
		return number * 256;
	default:
		return how & 8 ? number : 1024 * (1 + number % 4);
	}
}

static void use(uint32_t slot, unsigned generation, bool destroy)
{
	struct nc_unit *unit;
	struct nc_layout layout;
	uint64_t at;

	if (nc_remote_member_hold(stranger, slot, generation, false, &unit))
		return;
	layout = unit->layout;
	at = unit->at;
	stranger_check(unit);
	sched_yield();
	MUST(unit->at == at && memcmp(&unit->layout, &layout, sizeof(layout)) == 0);
	if (destroy)
		(void)nc_remote_member_destroy(stranger, slot, generation);
	stranger_check(unit);
	MUST(nc_remote_member_release(stranger, slot, generation) == 0);
}

static void list(void)
{
	struct nc_unit_description description;
	unsigned generation;

	for (uint32_t slot = 0; nc_remote_member_next(stranger, &slot, &generation, &description);
	     slot++)
		MUST(description.layout.size > 0 &&
		     (description.kernel ||
		      description.layout.extent <= STRANGER_SIZE - stranger_first));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};

	stranger_open();
	while (input.left) {
		unsigned place = (unsigned)input_number(&input, 1) % (STRANGER_SLOTS * 4);
		unsigned how = (unsigned)input_number(&input, 1);

		racer_add((&stranger_entry(place / 4)->word) + place % 4,
			  word_of(&input, place, how));
	}
	racer_start();
	for (unsigned i = 0; i < ROUNDS; i++) {
		use(i % STRANGER_SLOTS, 1 + i % 4, i % 5 == 0);
		if (i % 8 == 0)
			list();
	}
	racer_stop();
	MUST(stranger->held == 0);
	nc_remote_member_free(stranger);
	return 0;
}
