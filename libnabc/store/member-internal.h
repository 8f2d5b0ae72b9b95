/* SPDX-License-Identifier: MIT */
/* member-internal.h - shared by the parts of member.h, for member*.c only. */
#ifndef NC_MEMBER_INTERNAL_H
#define NC_MEMBER_INTERNAL_H

struct nc_member;

/*
 * Unlocks growing, and wakes the collector if it has work: it skips a step while
 * growing is locked.
 */
void nc_member_leave_growing_locked(struct nc_member *member);

#endif
