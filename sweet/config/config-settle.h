/* SPDX-License-Identifier: MIT */
/*
 * config-settle.h - from a draft to the configuration: every section takes
 * what it lacks from the one that it lies in, and only what counts in the end
 * is looked at.
 */
#ifndef SWEET_CONFIG_SETTLE_H
#define SWEET_CONFIG_SETTLE_H

#include "config/config-draft.h"
#include "config/configuration.h"

/* With the draft's errors told there; the configuration is good if there are none. */
struct config *config_settle(struct draft *draft);

#endif
