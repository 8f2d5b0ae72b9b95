/* SPDX-License-Identifier: MIT */
/*
 * syscall-filter.h - refuses system calls that programs that answer requests do not
 * need, and that attackers use to escape a sandbox.  They fail with EPERM in a
 * process that has the filter, and in its children.
 */
#ifndef SWEET_SYSCALL_FILTER_H
#define SWEET_SYSCALL_FILTER_H

#include <linux/filter.h>

/*
 * For PR_SET_SECCOMP, after PR_SET_NO_NEW_PRIVS.  Returns NULL with errno if the
 * machine or kernel does not support it.
 */
const struct sock_fprog *syscall_filter(void);

#endif
