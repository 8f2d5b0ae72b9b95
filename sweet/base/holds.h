/* SPDX-License-Identifier: MIT */
/* holds.h - releases holds whose values stay with others, who have counted holds of their own. */
#ifndef SWEET_HOLDS_H
#define SWEET_HOLDS_H

#include <nabc.h>

static inline void holds_release(const struct NC_hold *holds, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		struct NC_hold hold = holds[i];

		(void)NC_release(&hold);
	}
}

#endif
