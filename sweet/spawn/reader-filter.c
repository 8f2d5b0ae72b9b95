/* SPDX-License-Identifier: MIT */
/*
 * reader-filter.c - see reader-filter.h.
 *
 * A list of permitted calls, since the program is known: that of the C library and of GLib to read the
 * configuration, with the names of users, and to open files.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "process/filter-program.h"
#include "process/privileges.h"
#include "spawn/reader-filter.h"

#ifdef FILTER_MACHINE

#define ALLOW(number) UNLESS(number, 1), RETURN(SECCOMP_RET_ALLOW)

#define WRITING (O_ACCMODE | O_CREAT | O_TRUNC)
/* flags: the argument that they are. */
#define ALLOW_READING(number, flags)                                                               \
	UNLESS(number, 4), LOAD(ARGUMENT(flags)), UNLESS_ANY(WRITING, 1), FAIL(EPERM),             \
		RETURN(SECCOMP_RET_ALLOW)

static struct sock_filter program[] = {
	FILTER_BEGIN,
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

	if (!filter_is_supported())
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
	const uint64_t kept = UINT64_C(1) << CAP_DAC_READ_SEARCH | UINT64_C(1) << CAP_SETUID |
			      UINT64_C(1) << CAP_SETGID;
	int error = privileges_limit(kept, 0);

	return error ? error : enter_filter();
}
