/* SPDX-License-Identifier: MIT */
/* random.h - random numbers that two processes, or two caches, do not have in common. */
#ifndef NC_RANDOM_H
#define NC_RANDOM_H

#include <stdint.h>

/* Never waits and never fails; not for secrets. */
uint64_t nc_random(void);

#endif
