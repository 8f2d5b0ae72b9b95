/* SPDX-License-Identifier: MIT */
/*
 * transmit-internal.h - what the parts of transmit.h share: for transmit*.c alone.
 */
#ifndef NC_TRANSMIT_INTERNAL_H
#define NC_TRANSMIT_INTERNAL_H

#include "send/transmit.h"

/* Fills in what may be tried; returns of how many messages this one is the sample. */
unsigned nc_transmit_consider(struct nc_transmit *transmit, struct nc_sending *sending);

/* Whether the message goes on as was decided at its beginning. */
bool nc_transmit_resume(struct nc_transmit *transmit, struct nc_sending *sending);

/* For the call that goes on with it; what the module sends is asked for each time. */
void nc_transmit_resume_keep(struct nc_transmit *transmit, const struct nc_sending *sending);

#endif
