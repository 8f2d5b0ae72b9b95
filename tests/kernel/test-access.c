/* SPDX-License-Identifier: MIT */
/*
 * test-access.c - who may open the device, and who may do what with which unit: the
 * creator, other users, grantees by process, pidfd, user and group, after revoking,
 * after exec, and when a pid is reused.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <nabc-uapi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device.h"
#include "guest.h"

/* What another process tries. */
struct attempt {
	uint64_t id;
	uid_t uid;
	gid_t gid, group;  /* effective, supplementary */
	int copy, destroy; /* expected errno; 0: it works; -1: not tried */
	int go;		   /* read before it begins */
};

static struct device device;

static int attempting(void *context)
{
	struct attempt *attempt = context;
	char bytes[10], byte;
	struct nabc_stat stat;
	int fd = open(NABC_DEVICE, O_RDWR | O_CLOEXEC);

	/* The device is opened before the change of user, as if by its group. */
	must(fd >= 0);
	must(setgroups(attempt->group ? 1 : 0, &attempt->group) == 0);
	must(setresgid(attempt->gid, attempt->gid, attempt->gid) == 0);
	must(setresuid(attempt->uid, attempt->uid, attempt->uid) == 0);
	if (attempt->go >= 0)
		must(read(attempt->go, &byte, 1) == 1);
	if (attempt->copy == 0) {
		must(nabc_copy(fd, attempt->id, 0, 10, bytes) == 0);
		must(guest_holds(bytes, 1, 0, 10));
		must(nabc_hold(fd, attempt->id) == 0);
		must(nabc_release(fd, attempt->id) == 0);
		must(nabc_sum(fd, attempt->id, 0, 10) >= 0);
		must(nabc_stat(fd, attempt->id, &stat) == 0);
		must(stat.rights & NABC_RIGHT_SEND);
	} else if (attempt->copy > 0) {
		must_fail(nabc_copy(fd, attempt->id, 0, 10, bytes), attempt->copy);
		must_fail(nabc_hold(fd, attempt->id), attempt->copy);
		must_fail(nabc_sum(fd, attempt->id, 0, 10), attempt->copy);
	}
	/* Another's unit can never be granted. */
	must_fail(nabc_grant(fd, attempt->id, NABC_PRINCIPAL_USER, attempt->uid, NABC_RIGHT_SEND),
		  EACCES);
	must_fail(nabc_revoke(fd, attempt->id, NABC_PRINCIPAL_USER, attempt->uid), EACCES);
	must_fail(nabc_insert(fd, attempt->id, 0, 0, 0), EACCES);
	if (attempt->destroy == 0)
		must(nabc_destroy(fd, attempt->id) == 0);
	else if (attempt->destroy > 0)
		must_fail(nabc_destroy(fd, attempt->id), attempt->destroy);
	return 0;
}

static void try(struct attempt attempt)
{
	attempt.go = -1;
	guest_join(guest_fork(attempting, &attempt));
}

static void test_node(void)
{
	struct stat node;

	must(stat(NABC_DEVICE, &node) == 0);
	must(S_ISCHR(node.st_mode));
	must((node.st_mode & 07777) == 0660);
	must(node.st_uid == 0);
	guest_tested("the node's mode");
}

static int opening(void *context)
{
	(void)context;
	must(setgroups(0, NULL) == 0);
	must(setresgid(1000, 1000, 1000) == 0 && setresuid(1000, 1000, 1000) == 0);
	must_fail(open(NABC_DEVICE, O_RDWR), EACCES);
	must_fail(open(NABC_DEVICE, O_RDONLY), EACCES);
	return 0;
}

static void test_strangers(void)
{
	uint64_t id = device_unit(&device, 1, 100);

	guest_join(guest_fork(opening, NULL));
	/* Not even root, nor the same user: only processes with a grant. */
	try((struct attempt){
		.id = id, .uid = 1000, .gid = 1000, .copy = EACCES, .destroy = EACCES});
	try((struct attempt){.id = id, .copy = EACCES, .destroy = EACCES});
	must(nabc_destroy(device.fd, id) == 0);
	guest_tested("strangers");
}

static void test_users(void)
{
	uint64_t id = device_unit(&device, 1, 100);

	must(nabc_grant(device.fd, id, NABC_PRINCIPAL_USER, 1000, NABC_RIGHT_SEND) == 0);
	try((struct attempt){.id = id, .uid = 1000, .gid = 5, .copy = 0, .destroy = EACCES});
	try((struct attempt){.id = id, .uid = 1001, .gid = 5, .copy = EACCES, .destroy = EACCES});
	/* A group is not a user. */
	try((struct attempt){
		.id = id, .uid = 1001, .gid = 1000, .copy = EACCES, .destroy = EACCES});
	must(nabc_revoke(device.fd, id, NABC_PRINCIPAL_USER, 1000) == 0);
	must_fail(nabc_revoke(device.fd, id, NABC_PRINCIPAL_USER, 1000), ENOENT);
	try((struct attempt){.id = id, .uid = 1000, .gid = 5, .copy = EACCES, .destroy = EACCES});

	must(nabc_grant(device.fd, id, NABC_PRINCIPAL_GROUP, 50, NABC_RIGHT_SEND) == 0);
	try((struct attempt){.id = id, .uid = 1000, .gid = 50, .copy = 0, .destroy = EACCES});
	try((struct attempt){
		.id = id, .uid = 1000, .gid = 5, .group = 50, .copy = 0, .destroy = EACCES});
	try((struct attempt){
		.id = id, .uid = 50, .gid = 5, .group = 51, .copy = EACCES, .destroy = EACCES});
	must(nabc_revoke(device.fd, id, NABC_PRINCIPAL_GROUP, 50) == 0);

	/* The last grant counts; the right to destroy does not include reading. */
	must(nabc_grant(device.fd, id, NABC_PRINCIPAL_USER, 1000, NABC_RIGHT_SEND) == 0);
	must(nabc_grant(device.fd, id, NABC_PRINCIPAL_USER, 1000, NABC_RIGHT_DESTROY) == 0);
	try((struct attempt){.id = id, .uid = 1000, .gid = 5, .copy = EACCES, .destroy = 0});
	must_fail(nabc_destroy(device.fd, id), ENOENT);
	guest_tested("users and groups");
}

/* A child that waits at a pipe; returns the end whose data lets it continue. */
static pid_t waiting(struct attempt attempt, int *go)
{
	int ends[2];
	pid_t child;

	must(pipe2(ends, O_CLOEXEC) == 0);
	attempt.go = ends[0];
	child = guest_fork(attempting, &attempt);
	close(ends[0]);
	*go = ends[1];
	return child;
}

static void let(pid_t child, int go)
{
	must(write(go, "", 1) == 1);
	close(go);
	guest_join(child);
}

static void test_processes(void)
{
	uint64_t id = device_unit(&device, 1, 100);
	struct attempt granted = {.id = id, .uid = 7, .gid = 7, .copy = 0, .destroy = EACCES};
	struct attempt other = {.id = id, .uid = 7, .gid = 7, .copy = EACCES, .destroy = EACCES};
	int go[2], pidfd;
	pid_t child[2];

	child[0] = waiting(granted, &go[0]);
	child[1] = waiting(other, &go[1]);
	must(nabc_grant(device.fd, id, NABC_PRINCIPAL_PROCESS, (uint32_t)child[0],
			NABC_RIGHT_SEND) == 0);
	let(child[0], go[0]);
	let(child[1], go[1]);

	granted.destroy = 0;
	child[0] = waiting(granted, &go[0]);
	pidfd = (int)syscall(SYS_pidfd_open, child[0], 0);
	must(pidfd >= 0);
	must(nabc_grant(device.fd, id, NABC_PRINCIPAL_PIDFD, (uint32_t)pidfd,
			NABC_RIGHT_SEND | NABC_RIGHT_DESTROY) == 0);
	let(child[0], go[0]);
	close(pidfd);
	must_fail(nabc_destroy(device.fd, id), ENOENT);
	guest_tested("processes by pid and pidfd");
}

/* The same pid, another process. */
static void test_pid_again(void)
{
	uint64_t id = device_unit(&device, 1, 100);
	struct attempt attempt = {.id = id, .uid = 7, .gid = 7, .copy = -1, .destroy = EACCES};
	int go, file = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
	pid_t first, again = -1;
	char number[20];

	must(file >= 0);
	first = waiting(attempt, &go);
	must(nabc_grant(device.fd, id, NABC_PRINCIPAL_PROCESS, (uint32_t)first, NABC_RIGHT_SEND) ==
	     0);
	let(first, go);
	attempt.copy = EACCES;
	for (int i = 0; i < 20 && again != first; i++) {
		int length = snprintf(number, sizeof(number), "%d", (int)first - 1);

		must(pwrite(file, number, (size_t)length, 0) == length);
		again = waiting(attempt, &go);
		let(again, go);
	}
	must(again == first);
	close(file);
	must(nabc_destroy(device.fd, id) == 0);
	guest_tested("a pid that comes again");
}

static void test_bad(void)
{
	uint64_t id = device_unit(&device, 1, 100);
	struct nabc_grant call = {
		.id = id, .principal = NABC_PRINCIPAL_USER, .rights = 1, .flags = 1};

	must_fail(nabc_grant(device.fd, id, 0, 1, 1), EINVAL);
	must_fail(nabc_grant(device.fd, id, 5, 1, 1), EINVAL);
	must_fail(nabc_grant(device.fd, id, NABC_PRINCIPAL_USER, 1, 0), EINVAL);
	must_fail(nabc_grant(device.fd, id, NABC_PRINCIPAL_USER, 1, 4), EINVAL);
	must_fail(nabc_grant(device.fd, id, NABC_PRINCIPAL_USER, UINT32_MAX, 1), EINVAL);
	must_fail(nabc_grant(device.fd, id, NABC_PRINCIPAL_GROUP, UINT32_MAX, 1), EINVAL);
	must_fail(nabc_grant(device.fd, id, NABC_PRINCIPAL_PROCESS, 4000000, 1), ESRCH);
	must_fail(nabc_grant(device.fd, id, NABC_PRINCIPAL_PROCESS, UINT32_MAX, 1), ESRCH);
	must_fail(nabc_grant(device.fd, id, NABC_PRINCIPAL_PIDFD, 0, 1), EBADF);
	must_fail(nabc_grant(device.fd, id, NABC_PRINCIPAL_PIDFD, 5000, 1), EBADF);
	must_fail(nabc_grant(device.fd, id + 1000000, NABC_PRINCIPAL_USER, 1, 1), ENOENT);
	must_fail(ioctl(device.fd, NABC_IOC_GRANT, &call), EINVAL);
	must_fail(ioctl(device.fd, NABC_IOC_REVOKE, &call), EINVAL);
	must_fail(ioctl(device.fd, NABC_IOC_GRANT, NULL), EFAULT);
	must_fail(ioctl(device.fd, NABC_IOC_REVOKE, NULL), EFAULT);
	for (unsigned int i = 0; i < NABC_GRANTS_MAX; i++)
		must(nabc_grant(device.fd, id, NABC_PRINCIPAL_USER, 2000 + i, 1) == 0);
	must_fail(nabc_grant(device.fd, id, NABC_PRINCIPAL_USER, 5000, 1), ENOSPC);
	must(nabc_grant(device.fd, id, NABC_PRINCIPAL_USER, 2005, 2) == 0);
	must(nabc_revoke(device.fd, id, NABC_PRINCIPAL_USER, 2000) == 0);
	must(nabc_grant(device.fd, id, NABC_PRINCIPAL_USER, 5000, 1) == 0);
	must(nabc_destroy(device.fd, id) == 0);
	guest_tested("bad grants");
}

/* Passed on by fork, and by exec of this program itself. */
static int passed(void *context)
{
	char number[20], id[30];

	snprintf(number, sizeof(number), "%d", device.fd);
	snprintf(id, sizeof(id), "%llu", *(unsigned long long *)context);
	execl("/proc/self/exe", "test-access", number, id, NULL);
	return 1;
}

static int after_exec(char **arguments)
{
	int fd = atoi(arguments[1]);
	uint64_t id = strtoull(arguments[2], NULL, 10);
	struct nabc_statistics statistics;
	char bytes[10];

	must_fail(ioctl(fd, NABC_IOC_STATISTICS, &statistics), EPERM);
	must_fail(nabc_copy(fd, id, 0, 10, bytes), EPERM);
	must_fail(nabc_destroy(fd, id), EPERM);
	return 0;
}

/*
 * The same process executes another program: its file is no longer usable, and its
 * units end with the file.
 */
static int next_program(void *context)
{
	device_open(&device);
	must(fcntl(device.fd, F_SETFD, 0) == 0);
	*(uint64_t *)context = device_unit(&device, 1, 100);
	return passed(context);
}

static void test_passed(void)
{
	uint64_t id = device_unit(&device, 1, 100);

	must(fcntl(device.fd, F_SETFD, 0) == 0);
	guest_join(guest_fork(passed, &id));
	must(fcntl(device.fd, F_SETFD, FD_CLOEXEC) == 0);
	must(nabc_destroy(device.fd, id) == 0);
	guest_join(guest_fork(next_program, &id));
	guest_tested("a descriptor passed on serves nobody");
}

/*
 * Another file of the same process cannot access a unit that is being filled, and
 * cannot fill it afterwards.
 */
static void test_other_file(void)
{
	struct nabc_stat stat;
	struct device other;
	unsigned char *arena, byte;
	uint64_t id = device_alloc(&device, 100, &arena);
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	must(zero >= 0);
	device_open(&other);
	must_fail(nabc_read(other.fd, id, 0, 1, zero, -1), ENOENT);
	must_fail(nabc_insert(other.fd, id, 0, 0, 0), ENOENT);
	must_fail(nabc_copy(other.fd, id, 0, 1, &byte), ENOENT);
	must_fail(nabc_sum(other.fd, id, 0, 1), ENOENT);
	must_fail(nabc_stat(other.fd, id, &stat), ENOENT);
	must_fail(nabc_hold(other.fd, id), ENOENT);
	must_fail(nabc_release(other.fd, id), EINVAL);
	must_fail(nabc_grant(other.fd, id, NABC_PRINCIPAL_USER, 1, NABC_RIGHT_SEND), ENOENT);
	must_fail(nabc_revoke(other.fd, id, NABC_PRINCIPAL_USER, 1), ENOENT);
	must_fail(nabc_destroy(other.fd, id), ENOENT);

	must(nabc_insert(device.fd, id, 0, 0, 0) == 0);
	must_fail(nabc_read(other.fd, id, 0, 1, zero, -1), EACCES);
	must_fail(nabc_insert(other.fd, id, 0, 0, 0), EACCES);
	must(nabc_copy(other.fd, id, 0, 1, &byte) == 0);
	must(nabc_stat(other.fd, id, &stat) == 0);
	must(nabc_grant(other.fd, id, NABC_PRINCIPAL_USER, 1, NABC_RIGHT_SEND) == 0);
	must(nabc_revoke(other.fd, id, NABC_PRINCIPAL_USER, 1) == 0);

	/* After a hold its destruction is visible, but only as far as the grant permits. */
	must(nabc_hold(other.fd, id) == 0);
	must(nabc_destroy(other.fd, id) == 0);
	must(nabc_copy(other.fd, id, 0, 1, &byte) == 0);
	must(nabc_hold(other.fd, id) == 0);
	must_fail(nabc_destroy(other.fd, id), ENOENT);
	must_fail(nabc_insert(other.fd, id, 0, 0, 0), ENOENT);
	must_fail(nabc_grant(other.fd, id, NABC_PRINCIPAL_USER, 1, NABC_RIGHT_SEND), ENOENT);
	must_fail(nabc_copy(device.fd, id, 0, 1, &byte), ENOENT);
	device_close(&other);
	close(zero);
	guest_tested("two files of a process");
}

/* Units without a grant are not listed. */
static int listing(void *context)
{
	struct nabc_stat units[10];
	struct nabc_list call = {.units = (uintptr_t)units, .count = 10};
	int fd = open(NABC_DEVICE, O_RDWR | O_CLOEXEC);

	must(fd >= 0);
	must(setresuid(1000, 1000, 1000) == 0);
	must(ioctl(fd, NABC_IOC_LIST, &call) == 0);
	must(call.found == 1 && units[0].id == *(uint64_t *)context);
	must(units[0].rights == NABC_RIGHT_DESTROY);
	return 0;
}

static void test_listing(void)
{
	uint64_t first = device_unit(&device, 1, 100), second = device_unit(&device, 2, 100);

	must(nabc_grant(device.fd, second, NABC_PRINCIPAL_USER, 1000, NABC_RIGHT_DESTROY) == 0);
	guest_join(guest_fork(listing, &second));
	must(nabc_destroy(device.fd, first) == 0);
	must(nabc_destroy(device.fd, second) == 0);
	guest_tested("list shows what one has a right to");
}

/* A process whose next program gets rights, or none, from its first one. */
struct succession {
	uint64_t granted; /* to the first program */
	int told, go;
};

static int first_program(void *context)
{
	struct succession *succession = context;
	char granted[30], left[30], told[20], go[20], bytes[10];
	unsigned char *arena;
	struct device own;
	uint64_t id;

	device_open(&own);
	id = device_alloc(&own, 100, &arena);
	must(nabc_grant(own.fd, id, NABC_PRINCIPAL_PROCESS, (uint32_t)getppid(),
			NABC_RIGHT_DESTROY) == 0);
	must(nabc_insert(own.fd, id, 0, own.info.linger_max, 0) == 0);
	must(write(succession->told, &id, sizeof(id)) == sizeof(id));
	must(read(succession->go, bytes, 1) == 1);
	must(nabc_copy(own.fd, succession->granted, 0, 10, bytes) == 0);
	snprintf(granted, sizeof(granted), "%llu", (unsigned long long)succession->granted);
	snprintf(left, sizeof(left), "%llu", (unsigned long long)id);
	snprintf(told, sizeof(told), "%d", succession->told);
	snprintf(go, sizeof(go), "%d", succession->go);
	execl("/proc/self/exe", "test-access", granted, left, told, go, NULL);
	return 1;
}

static void has_no_right(int fd, uint64_t id)
{
	struct nabc_stat stat;
	char bytes[10];

	must_fail(nabc_copy(fd, id, 0, 10, bytes), EACCES);
	must_fail(nabc_stat(fd, id, &stat), EACCES);
	must_fail(nabc_hold(fd, id), EACCES);
	must_fail(nabc_grant(fd, id, NABC_PRINCIPAL_USER, 1, NABC_RIGHT_SEND), EACCES);
	must_fail(nabc_destroy(fd, id), EACCES);
}

static int second_program(char **arguments)
{
	uint64_t granted = strtoull(arguments[1], NULL, 10);
	uint64_t left = strtoull(arguments[2], NULL, 10);
	int told = atoi(arguments[3]), go = atoi(arguments[4]);
	struct nabc_stat units[10];
	struct nabc_list list = {.units = (uintptr_t)units, .count = 10};
	char bytes[10];
	struct device own;

	device_open(&own);
	has_no_right(own.fd, left);
	has_no_right(own.fd, granted);
	must(ioctl(own.fd, NABC_IOC_LIST, &list) == 0);
	must(list.found == 0);
	must(write(told, &left, sizeof(left)) == sizeof(left));
	must(read(go, bytes, 1) == 1);
	must(nabc_copy(own.fd, granted, 0, 10, bytes) == 0);
	must(write(told, &left, sizeof(left)) == sizeof(left));
	must(read(go, bytes, 1) == 1);
	has_no_right(own.fd, granted);
	return 0;
}

/* After exec, a process has no right of its previous program; it can be granted its own. */
static void test_next_program(void)
{
	struct succession succession = {.granted = device_unit(&device, 1, 100)};
	struct nabc_stat stat;
	int told[2], go[2];
	pid_t child;
	uint64_t id;

	must(pipe(told) == 0);
	must(pipe(go) == 0);
	succession.told = told[1];
	succession.go = go[0];
	child = guest_fork(first_program, &succession);
	/* So that its failure ends the read. */
	close(told[1]);
	close(go[0]);
	must(read(told[0], &id, sizeof(id)) == sizeof(id));
	must(nabc_stat(device.fd, id, &stat) == 0);
	must(stat.maker_pid == (unsigned int)child);
	must(nabc_grant(device.fd, succession.granted, NABC_PRINCIPAL_PROCESS, (uint32_t)child,
			NABC_RIGHT_SEND) == 0);
	must(write(go[1], "", 1) == 1);

	must(read(told[0], &id, sizeof(id)) == sizeof(id));
	must(nabc_stat(device.fd, id, &stat) == 0);
	must(stat.maker_pid == 0);
	must(nabc_grant(device.fd, succession.granted, NABC_PRINCIPAL_PROCESS, (uint32_t)child,
			NABC_RIGHT_SEND) == 0);
	must(nabc_stat(device.fd, succession.granted, &stat) == 0);
	must(stat.grants == 1);
	must(write(go[1], "", 1) == 1);

	must(read(told[0], &id, sizeof(id)) == sizeof(id));
	must(nabc_revoke(device.fd, succession.granted, NABC_PRINCIPAL_PROCESS, (uint32_t)child) ==
	     0);
	must(write(go[1], "", 1) == 1);
	guest_join(child);
	close(told[0]);
	close(go[1]);
	must(nabc_destroy(device.fd, id) == 0);
	must(nabc_destroy(device.fd, succession.granted) == 0);
	guest_tested("the next program of a process has no right of the one before");
}

int main(int count, char **arguments)
{
	if (count == 3)
		return after_exec(arguments);
	if (count == 5)
		return second_program(arguments);
	test_node();
	device_open(&device);
	test_strangers();
	test_users();
	test_processes();
	test_pid_again();
	test_bad();
	test_passed();
	test_next_program();
	test_other_file();
	test_listing();
	device_close(&device);
	return 0;
}
