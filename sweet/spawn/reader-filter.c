/* SPDX-License-Identifier: MIT */
/*
 * reader-filter.c - see reader-filter.h.
 *
 * A list of permitted calls, since the program is known: that of the C library and of GLib to read the
 * configuration, with the names of users, and to open files.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "spawn/reader-filter.h"

#if defined(__x86_64__)
#define MACHINE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define MACHINE AUDIT_ARCH_AARCH64
#elif defined(__riscv) && __riscv_xlen == 64
#define MACHINE AUDIT_ARCH_RISCV64
#endif

#ifdef MACHINE

#define LOAD(offset) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (offset))
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, (what))
#define FAIL(error) RETURN(SECCOMP_RET_ERRNO | (error))
#define UNLESS(value, skipped) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, (skipped))
#define UNLESS_ANY(bits, skipped) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (bits), 0, (skipped))
#define ALLOW(number) UNLESS(number, 1), RETURN(SECCOMP_RET_ALLOW)

#define WRITING (O_ACCMODE | O_CREAT | O_TRUNC)
/* The argument with the flags: its lower half, as all three machines are little-endian. */
#define ALLOW_READING(number, flags)                                                               \
	UNLESS(number, 4), LOAD(offsetof(struct seccomp_data, args[flags])),                       \
		UNLESS_ANY(WRITING, 1), FAIL(EPERM), RETURN(SECCOMP_RET_ALLOW)

static struct sock_filter program[] = {
	LOAD(offsetof(struct seccomp_data, arch)),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MACHINE, 1, 0),
	RETURN(SECCOMP_RET_KILL_PROCESS),
	LOAD(offsetof(struct seccomp_data, nr)),
	/* Files. */
	ALLOW_READING(SYS_openat, 2),
	ALLOW(SYS_read),
	ALLOW(SYS_readv),
	ALLOW(SYS_pread64),
	ALLOW(SYS_lseek),
	ALLOW(SYS_close),
	ALLOW(SYS_fcntl),
	ALLOW(SYS_fstat),
	ALLOW(SYS_newfstatat),
	ALLOW(SYS_statx),
	ALLOW(SYS_statfs),
	ALLOW(SYS_fstatfs),
	ALLOW(SYS_faccessat),
#ifdef SYS_faccessat2
	ALLOW(SYS_faccessat2),
#endif
	ALLOW(SYS_readlinkat),
	ALLOW(SYS_getdents64),
	ALLOW(SYS_getcwd),
#ifdef SYS_open /* what newer machines do not have */
	ALLOW_READING(SYS_open, 1),
	ALLOW(SYS_stat),
	ALLOW(SYS_lstat),
	ALLOW(SYS_access),
	ALLOW(SYS_readlink),
	ALLOW(SYS_poll),
#endif
	/* Messages to the server, and errors. */
	ALLOW(SYS_recvfrom),
	ALLOW(SYS_recvmsg),
	ALLOW(SYS_sendmsg),
	ALLOW(SYS_sendto),
	ALLOW(SYS_write),
	ALLOW(SYS_writev),
	ALLOW(SYS_ppoll),
	/* The rights of a user, for one open. */
	ALLOW(SYS_setfsuid),
	ALLOW(SYS_setfsgid),
	ALLOW(SYS_setgroups),
	ALLOW(SYS_getgroups),
	ALLOW(SYS_getuid),
	ALLOW(SYS_geteuid),
	ALLOW(SYS_getgid),
	ALLOW(SYS_getegid),
	/* Memory, time, and the process itself. */
	ALLOW(SYS_brk),
	ALLOW(SYS_mmap),
	ALLOW(SYS_mprotect),
	ALLOW(SYS_mremap),
	ALLOW(SYS_munmap),
	ALLOW(SYS_madvise),
	ALLOW(SYS_futex),
	ALLOW(SYS_getrandom),
	ALLOW(SYS_clock_gettime),
	ALLOW(SYS_gettimeofday),
	ALLOW(SYS_sigaltstack), /* the address sanitizer, before each call that does not return */
	ALLOW(SYS_getpid),
	ALLOW(SYS_gettid),
	ALLOW(SYS_uname),
	ALLOW(SYS_sysinfo),
	ALLOW(SYS_sched_getaffinity),
	ALLOW(SYS_rt_sigprocmask),
	ALLOW(SYS_rt_sigaction),
	ALLOW(SYS_rt_sigreturn),
	ALLOW(SYS_restart_syscall),
	ALLOW(SYS_exit),
	ALLOW(SYS_exit_group),
	FAIL(EPERM),
};

static int enter_filter(void)
{
	const struct sock_fprog filter = {.len = sizeof(program) / sizeof(program[0]),
					  .filter = program};

	/* This call can only fail: with EFAULT if filters are supported. */
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) < 0 && errno != EFAULT)
		return 0;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) < 0 ? -errno : 0;
}

#else

static int enter_filter(void)
{
	return 0;
}

#endif

int reader_filter_enter(void)
{
	const uint32_t kept = UINT32_C(1) << CAP_DAC_READ_SEARCH | UINT32_C(1) << CAP_SETUID |
			      UINT32_C(1) << CAP_SETGID;
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct now[2] = {{0}};

	/* No program gets any: without CAP_SETPCAP there are none that one could get. */
	for (int i = 0; prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0; i++)
		(void)prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
	if (syscall(SYS_capget, &header, now) < 0)
		return -errno;
	now[0].permitted &= kept;
	now[0].effective &= kept;
	now[1].permitted = now[1].effective = 0;
	now[0].inheritable = now[1].inheritable = 0;
	if (syscall(SYS_capset, &header, now) < 0)
		return -errno;
	return enter_filter();
}
