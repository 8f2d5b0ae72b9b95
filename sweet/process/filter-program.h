/* SPDX-License-Identifier: MIT */
/*
 * filter-program.h - the words of seccomp's filter programs, for those who write one.
 *
 * FILTER_MACHINE is undefined on machines whose call numbers nobody has checked.
 */
#ifndef SWEET_FILTER_PROGRAM_H
#define SWEET_FILTER_PROGRAM_H

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>

#if defined(__x86_64__)
#define FILTER_MACHINE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define FILTER_MACHINE AUDIT_ARCH_AARCH64
#elif defined(__riscv) && __riscv_xlen == 64
#define FILTER_MACHINE AUDIT_ARCH_RISCV64
#endif

/* The lower half of an argument: all three machines are little-endian. */
#define ARGUMENT(n) offsetof(struct seccomp_data, args[n])
#define LOAD(offset) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (offset))
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, (what))
#define FAIL(error) RETURN(SECCOMP_RET_ERRNO | (error))
#define UNLESS(value, skipped) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, (skipped))
#define IF(value, skipped) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), (skipped), 0)
#define UNLESS_ANY(bits, skipped) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (bits), 0, (skipped))

/* What a program begins with; on another machine, the call numbers are different. */
#define FILTER_BEGIN                                                                               \
	LOAD(offsetof(struct seccomp_data, arch)), IF(FILTER_MACHINE, 1),                          \
		RETURN(SECCOMP_RET_KILL_PROCESS), LOAD(offsetof(struct seccomp_data, nr))

/* Whether the kernel has filters; if not, errno says so. */
static inline bool filter_is_supported(void)
{
	/* This call can only fail: with EFAULT if filters are supported. */
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) == 0 || errno == EFAULT;
}

#endif
