/* SPDX-License-Identifier: MIT */
/*
 * test-syscall-filter.c - unit tests of syscall-filter.c: in a child with the filter,
 * calls that would be harmless if they were permitted.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process/syscall-filter.h"

#include "process-fixture.h"
#include "suite.h"

#define CANNOT 77 /* exit status: unavailable here */

static void enter(void)
{
	const struct sock_fprog *filter = syscall_filter();

	if (!filter && (errno == EINVAL || errno == ENOSYS))
		_exit(CANNOT);
	GOOD(filter);
	GOOD(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	GOOD(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filter) == 0);
}

/* Arguments are wrong on purpose: unfiltered, each fails with another error. */
static bool is_refused(long number, int expected)
{
	errno = 0;
	return syscall(number, -1L, -1L, -1L, -1L, -1L, -1L) == -1 && errno == expected;
}

static int refused(void)
{
	static const long numbers[] = {
		SYS_ptrace,
		SYS_process_vm_readv,
		SYS_process_vm_writev,
		SYS_unshare,
		SYS_setns,
		SYS_mount,
		SYS_umount2,
		SYS_pivot_root,
		SYS_chroot,
		SYS_kexec_load,
		SYS_init_module,
		SYS_finit_module,
		SYS_delete_module,
		SYS_settimeofday,
		SYS_clock_settime,
		SYS_adjtimex,
		SYS_swapon,
		SYS_bpf,
		SYS_userfaultfd,
		SYS_perf_event_open,
		SYS_io_uring_setup,
		SYS_add_key,
		SYS_keyctl,
		SYS_open_by_handle_at,
	};

	enter();
	for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (!is_refused(numbers[i], EPERM))
			return (int)i + 1;
	GOOD(ioctl(-1, TIOCSTI, "x") < 0 && errno == EPERM);
	return 0;
}

static bool has_socket(int family, int type, int protocol, int *error)
{
	int fd = socket(family, type, protocol);

	*error = errno;
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static int arguments(void)
{
	int error, pair[2];

	enter();
	GOOD(has_socket(AF_UNIX, SOCK_STREAM, 0, &error));
	GOOD(has_socket(AF_INET, SOCK_STREAM, 0, &error));
	GOOD(has_socket(AF_INET6, SOCK_DGRAM, 0, &error) || error == EAFNOSUPPORT);
	GOOD(has_socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE, &error));
	GOOD(!has_socket(AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT, &error));
	GOOD(error == EAFNOSUPPORT);
	GOOD(!has_socket(AF_PACKET, SOCK_RAW, 0, &error) && error == EAFNOSUPPORT);
	/* A pair makes two sockets of the family before the kernel asks whether it has pairs. */
	GOOD(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
	GOOD(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
	for (int family = 0; family < AF_MAX; family++)
		GOOD(family == AF_UNIX ||
		     (socketpair(family, SOCK_SEQPACKET, 0, pair) < 0 && errno == EAFNOSUPPORT));
	GOOD(socketpair(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE, pair) < 0 && errno == EAFNOSUPPORT);
	GOOD(ioctl(-1, FIONREAD, &error) < 0 && errno == EBADF);
	return 0;
}

static void *nothing(void *context)
{
	return context;
}

/* Calls that programs need. */
static int allowed(void)
{
	pthread_t thread;
	int fds[2], status;
	pid_t pid;

	enter();
	GOOD(pthread_create(&thread, NULL, nothing, NULL) == 0);
	GOOD(pthread_join(thread, NULL) == 0);
	GOOD(pipe(fds) == 0 && eventfd(0, EFD_CLOEXEC) >= 0);
	GOOD(memfd_create("x", MFD_CLOEXEC) >= 0);
	GOOD(open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0);
	pid = fork_alone();
	GOOD(pid >= 0);
	if (pid == 0) {
		/* Child processes are restricted as well, and so are programs that it becomes. */
		if (unshare(CLONE_NEWUTS) == 0 || errno != EPERM)
			_exit(1);
		execl("/bin/true", "true", NULL);
		_exit(1);
	}
	GOOD(waitpid(pid, &status, 0) == pid && status == 0);
	return 0;
}

static void run(int (*what)(void))
{
	pid_t pid = fork_alone();
	int status;

	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		_exit(what());
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFEXITED(status), "ended by signal %d", WTERMSIG(status));
	ck_assert_msg(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == CANNOT,
		      "%d: not refused, or refused", WEXITSTATUS(status));
}

START_TEST(test_refused)
{
	/* Valgrind itself reports unknown calls. */
	if (skip_without_pidfds("test_refused"))
		return;
	run(refused);
}
END_TEST

START_TEST(test_arguments)
{
	run(arguments);
}
END_TEST

START_TEST(test_allowed)
{
	run(allowed);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_refused);
	tcase_add_test(tcase, test_arguments);
	tcase_add_test(tcase, test_allowed);
}

RUN_SUITE("syscall-filter", fill)
