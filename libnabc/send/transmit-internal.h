/* SPDX-License-Identifier: MIT */
/* transmit-internal.h - shared by the parts of transmit.h, for transmit*.c only. */
#ifndef NC_TRANSMIT_INTERNAL_H
#define NC_TRANSMIT_INTERNAL_H

#include <stdbool.h>

struct nc_sending;
struct nc_transmit;

/* Selects the methods that may be tried; returns how many messages this one represents. */
unsigned nc_transmit_consider(struct nc_transmit *transmit, struct nc_sending *sending);

/* Whether the message continues with the decision made at its beginning. */
bool nc_transmit_resume(struct nc_transmit *transmit, struct nc_sending *sending);

/* Keeps the decision for the call that continues the message, unless the module may send. */
void nc_transmit_resume_keep(struct nc_transmit *transmit, const struct nc_sending *sending);

#endif
