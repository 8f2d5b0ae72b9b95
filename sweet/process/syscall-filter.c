/* SPDX-License-Identifier: MIT */
/*
 * syscall-filter.c - see syscall-filter.h.
 *
 * A list of refused calls, not of permitted ones: programs may be in any language,
 * and libraries use new calls with each release.  Calls that are not listed are
 * restricted by other means: users, capabilities, no_new_privs, file modes.
 *
 * The kernel evaluates the filter once for each call number (Linux 5.11), so the
 * length of the list costs nothing, except for the calls whose arguments are
 * checked, at the end.
 */
#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "process/filter-program.h"
#include "process/syscall-filter.h"

#ifdef FILTER_MACHINE

#define NAMESPACES                                                                                 \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |             \
	 CLONE_NEWPID | CLONE_NEWNET)
#define X32 0x40000000u /* call numbers of another ABI of x86-64 */

#define REFUSE(number) UNLESS(number, 1), FAIL(EPERM)

/* Newer than some C libraries; the numbers are the same on every machine. */
#ifndef SYS_quotactl_fd
#define SYS_quotactl_fd 443
#endif
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif

static struct sock_filter program[] = {
	FILTER_BEGIN,
#ifdef __x86_64__
	BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32, 0, 1),
	FAIL(EPERM),
#endif
	/* Access to other processes, such as the server. */
	REFUSE(SYS_ptrace),
	REFUSE(SYS_process_vm_readv),
	REFUSE(SYS_process_vm_writev),
	REFUSE(SYS_pidfd_getfd),
	REFUSE(SYS_kcmp),
	REFUSE(SYS_process_madvise),
	REFUSE(SYS_move_pages),
	REFUSE(SYS_migrate_pages),
	/* Changes of namespaces and mounts. */
	REFUSE(SYS_unshare),
	REFUSE(SYS_setns),
	REFUSE(SYS_chroot),
	REFUSE(SYS_pivot_root),
	REFUSE(SYS_mount),
	REFUSE(SYS_umount2),
	REFUSE(SYS_open_tree),
	REFUSE(SYS_move_mount),
	REFUSE(SYS_fsopen),
	REFUSE(SYS_fsconfig),
	REFUSE(SYS_fsmount),
	REFUSE(SYS_fspick),
	REFUSE(SYS_mount_setattr),
	/* Access to files without their folders' permissions. */
	REFUSE(SYS_name_to_handle_at),
	REFUSE(SYS_open_by_handle_at),
	REFUSE(SYS_fanotify_init),
	/* Control of the machine. */
	REFUSE(SYS_reboot),
	REFUSE(SYS_kexec_load),
#ifdef SYS_kexec_file_load
	REFUSE(SYS_kexec_file_load),
#endif
	REFUSE(SYS_init_module),
	REFUSE(SYS_finit_module),
	REFUSE(SYS_delete_module),
	REFUSE(SYS_swapon),
	REFUSE(SYS_swapoff),
	REFUSE(SYS_acct),
	REFUSE(SYS_quotactl),
	REFUSE(SYS_quotactl_fd),
	REFUSE(SYS_syslog),
	REFUSE(SYS_sethostname),
	REFUSE(SYS_setdomainname),
	REFUSE(SYS_settimeofday),
	REFUSE(SYS_clock_settime),
	REFUSE(SYS_clock_adjtime),
	REFUSE(SYS_adjtimex),
	REFUSE(SYS_vhangup),
#ifdef SYS_iopl
	REFUSE(SYS_iopl),
	REFUSE(SYS_ioperm),
	REFUSE(SYS_modify_ldt),
#endif
	/* Large parts of the kernel, with a history of vulnerabilities. */
	REFUSE(SYS_bpf),
	REFUSE(SYS_perf_event_open),
	REFUSE(SYS_userfaultfd),
	REFUSE(SYS_io_uring_setup),
	REFUSE(SYS_io_uring_enter),
	REFUSE(SYS_io_uring_register),
	REFUSE(SYS_add_key),
	REFUSE(SYS_request_key),
	REFUSE(SYS_keyctl),
	/*
	 * The filter cannot read its flags, which are in memory; C libraries fall
	 * back to clone().
	 */
	UNLESS(SYS_clone3, 1),
	FAIL(ENOSYS),
	UNLESS(SYS_clone, 4),
	LOAD(ARGUMENT(0)),
	UNLESS_ANY(NAMESPACES, 1),
	FAIL(EPERM),
	RETURN(SECCOMP_RET_ALLOW),
	/* Writing input to another terminal user's session. */
	UNLESS(SYS_ioctl, 5),
	LOAD(ARGUMENT(1)),
	IF(TIOCSTI, 2),
	IF(TIOCLINUX, 1),
	RETURN(SECCOMP_RET_ALLOW),
	FAIL(EPERM),
	/*
	 * Only common socket families; of netlink, only NETLINK_ROUTE, which
	 * reports addresses.
	 */
	UNLESS(SYS_socketpair, 4),
	LOAD(ARGUMENT(0)),
	UNLESS(AF_UNIX, 1), /* of the common ones, no other has pairs */
	RETURN(SECCOMP_RET_ALLOW),
	FAIL(EAFNOSUPPORT),
	UNLESS(SYS_socket, 8),
	LOAD(ARGUMENT(0)),
	IF(AF_UNIX, 5),
	IF(AF_INET, 4),
	IF(AF_INET6, 3),
	UNLESS(AF_NETLINK, 3),
	LOAD(ARGUMENT(2)),
	UNLESS(0 /* NETLINK_ROUTE */, 1),
	RETURN(SECCOMP_RET_ALLOW),
	/* All other families and protocols arrive here, and all other calls. */
	LOAD(offsetof(struct seccomp_data, nr)),
	UNLESS(SYS_socket, 1),
	FAIL(EAFNOSUPPORT),
	RETURN(SECCOMP_RET_ALLOW),
};

const struct sock_fprog *syscall_filter(void)
{
	static const struct sock_fprog filter = {.len = sizeof(program) / sizeof(program[0]),
						 .filter = program};

	return filter_is_supported() ? &filter : NULL;
}

#else

const struct sock_fprog *syscall_filter(void)
{
	errno = ENOSYS;
	return NULL;
}

#endif
