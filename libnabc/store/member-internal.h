/* SPDX-License-Identifier: MIT */
/*
 * member-internal.h - what the parts of member.h share: for member*.c alone.
 */
#ifndef NC_MEMBER_INTERNAL_H
#define NC_MEMBER_INTERNAL_H

#include "store/member.h"

/* Unlocks growing.  The collector may have found this thread here and left. */
void nc_member_leave_growing_locked(struct nc_member *member);

#endif
