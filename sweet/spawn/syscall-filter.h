/* SPDX-License-Identifier: MIT */
/*
 * syscall-filter.h - system calls that no program needs which answers requests,
 * and which are how programs get out of what confines them.  They fail with
 * EPERM in a process that has the filter, and in all that it starts.
 */
#ifndef SWEET_SYSCALL_FILTER_H
#define SWEET_SYSCALL_FILTER_H

#include <linux/filter.h>

/* For PR_SET_SECCOMP, after PR_SET_NO_NEW_PRIVS.  NULL with errno: not on this machine or kernel. */
const struct sock_fprog *syscall_filter(void);

#endif
