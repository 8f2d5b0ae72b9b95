/* SPDX-License-Identifier: MIT */
/*
 * test-put.c - units made from memory in one call: their bytes, who may use them, how
 * long they stay, and that a refused call leaves nothing behind.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/types.h>
#include <nabc-uapi.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device.h"
#include "guest.h"

enum { MOST = 3000001 };

static struct device device;
static unsigned char bytes[MOST], got[MOST];

static int put(int fd, struct nabc_put call)
{
	return ioctl(fd, NABC_IOC_PUT, &call);
}

static void test_bytes(void)
{
	static const uint64_t sizes[] = {1,	4095,  4096,  4097,   10240,
					 32768, 32769, 65537, 102400, MOST};
	struct nabc_stat stat;
	uint64_t id, last = 0;

	must(device.info.features & NABC_FEATURE_PUT);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		guest_fill(bytes, i, 0, sizes[i]);
		must(nabc_put(device.fd, bytes, sizes[i], &id) == 0);
		must(id > last);
		last = id;
		/* From now on the unit has its own copy. */
		memset(bytes, 0xee, sizes[i]);
		must(nabc_copy(device.fd, id, 0, sizes[i], got) == 0);
		must(guest_holds(got, i, 0, sizes[i]));
		must_fail(nabc_copy(device.fd, id, sizes[i], 1, got), ERANGE);
		must_fail(nabc_insert(device.fd, id, 0, 0, 0), EROFS);
		must(nabc_stat(device.fd, id, &stat) == 0);
		must(stat.state == NABC_STATE_CACHED && stat.size == sizes[i] && stat.flags == 0);
		must(stat.memory >= sizes[i] && stat.grants == 0 && stat.linger == 0);
		must(stat.maker_pid == (unsigned int)getpid() && stat.maker_uid == getuid());
		must(nabc_destroy(device.fd, id) == 0);
		must_fail(nabc_copy(device.fd, id, 0, 1, got), ENOENT);
	}
	guest_tested("bytes of all sizes");
}

static void test_sums(void)
{
	struct nabc_put call = {
		.size = 2, .data = (uintptr_t)("\1\2"), .linger = 1, .flags = NABC_INSERT_SUMS};
	struct nabc_stat stat;

	must(ioctl(device.fd, NABC_IOC_PUT, &call) == 0);
	must(nabc_stat(device.fd, call.id, &stat) == 0);
	must(stat.flags == NABC_UNIT_SUMMED && stat.linger == 1);
	must(nabc_sum(device.fd, call.id, 0, 2) == 0x0102);
	must(nabc_destroy(device.fd, call.id) == 0);
	guest_tested("sums at once");
}

static void test_send(void)
{
	struct guest_pair pair = guest_connect(AF_INET);
	uint64_t id;

	guest_fill(bytes, 7, 0, 20000);
	must(nabc_put(device.fd, bytes, 20000, &id) == 0);
	device_send(&device, pair.near, id, 0, 20000, NABC_SEND_DESTROY);
	/* The next unit must not reuse pages of bytes in flight. */
	guest_fill(bytes, 8, 0, 20000);
	for (int i = 0; i < 20; i++) {
		uint64_t other;

		must(nabc_put(device.fd, bytes, 20000, &other) == 0);
		must(nabc_destroy(device.fd, other) == 0);
	}
	must(guest_receive(pair.far, 7, 0, 20000));
	must_fail(nabc_destroy(device.fd, id), ENOENT);
	guest_disconnect(&pair);
	guest_tested("send");
}

/* Another process, of a user and a group, which may or may not copy the unit. */
struct other {
	uint64_t id;
	uid_t uid;
	gid_t gid;
	int copy, destroy; /* expected errno, or 0 */
	int go;		   /* read before it begins */
};

static int trying(void *context)
{
	struct other *other = context;
	int fd = open(NABC_DEVICE, O_RDWR | O_CLOEXEC);
	char ten[10];

	must(fd >= 0);
	must(setgroups(0, NULL) == 0);
	must(setresgid(other->gid, other->gid, other->gid) == 0);
	must(setresuid(other->uid, other->uid, other->uid) == 0);
	must(read(other->go, &other->id, sizeof(other->id)) == sizeof(other->id));
	if (other->copy) {
		must_fail(nabc_copy(fd, other->id, 0, 10, ten), other->copy);
	} else {
		must(nabc_copy(fd, other->id, 0, 10, ten) == 0);
		must(guest_holds(ten, 1, 0, 10));
	}
	if (other->destroy)
		must_fail(nabc_destroy(fd, other->id), other->destroy);
	else
		must(nabc_destroy(fd, other->id) == 0);
	return 0;
}

/* Two processes exist before the unit: a grant to a process is for the second. */
static void try_two(uint32_t principal, uint32_t who, uint32_t rights, struct other third,
		    struct other meant)
{
	struct nabc_put call = {.size = 100,
				.data = (uintptr_t)bytes,
				.principal = principal,
				.who = who,
				.rights = rights};
	struct other others[2] = {third, meant};
	pid_t children[2];
	int go[2][2];

	for (int i = 0; i < 2; i++) {
		must(pipe2(go[i], O_CLOEXEC) == 0);
		others[i].go = go[i][0];
		children[i] = guest_fork(trying, &others[i]);
	}
	if (principal == NABC_PRINCIPAL_PROCESS)
		call.who = (uint32_t)children[1];
	guest_fill(bytes, 1, 0, 100);
	must(ioctl(device.fd, NABC_IOC_PUT, &call) == 0);
	for (int i = 0; i < 2; i++) {
		must(write(go[i][1], &call.id, sizeof(call.id)) == sizeof(call.id));
		guest_join(children[i]);
		close(go[i][0]);
		close(go[i][1]);
	}
	if (meant.destroy)
		must(nabc_destroy(device.fd, call.id) == 0);
	must_fail(nabc_destroy(device.fd, call.id), ENOENT);
}

static void test_grant(void)
{
	const struct other none = {.uid = 1001, .gid = 51, .copy = EACCES, .destroy = EACCES};
	struct other may = {.uid = 1000, .gid = 50, .destroy = EACCES};

	try_two(NABC_PRINCIPAL_USER, 1000, NABC_RIGHT_SEND, none, may);
	try_two(NABC_PRINCIPAL_GROUP, 50, NABC_RIGHT_SEND, none, may);
	try_two(NABC_PRINCIPAL_PROCESS, 0, NABC_RIGHT_SEND, none, may);
	may.destroy = 0;
	try_two(NABC_PRINCIPAL_PROCESS, 0, NABC_RIGHT_SEND | NABC_RIGHT_DESTROY, none, may);
	may.copy = EACCES;
	try_two(NABC_PRINCIPAL_USER, 1000, NABC_RIGHT_DESTROY, none, may);
	/* To nobody. */
	try_two(0, 0, 0, none, none);
	guest_tested("grants, to others and not to third ones");
}

static int making(void *context)
{
	int ends = *(int *)context;
	struct device own;
	struct nabc_put call = {.size = 5000,
				.data = (uintptr_t)bytes,
				.principal = NABC_PRINCIPAL_USER,
				.who = 0,
				.rights = NABC_RIGHT_SEND};
	uint64_t ids[2];

	device_open(&own);
	guest_fill(bytes, 4, 0, 5000);
	for (int i = 0; i < 2; i++) {
		call.linger = i ? 700 : 0;
		must(ioctl(own.fd, NABC_IOC_PUT, &call) == 0);
		ids[i] = call.id;
	}
	must(write(ends, ids, sizeof(ids)) == sizeof(ids));
	return 0;
}

static void test_linger(void)
{
	uint64_t ids[2];
	int ends[2];

	must(pipe2(ends, O_CLOEXEC) == 0);
	guest_join(guest_fork(making, &ends[1]));
	must(read(ends[0], ids, sizeof(ids)) == sizeof(ids));
	must_fail(nabc_copy(device.fd, ids[0], 0, 1, got), ENOENT);
	must(nabc_copy(device.fd, ids[1], 0, 5000, got) == 0);
	must(guest_holds(got, 4, 0, 5000));
	must(device_wait(device.fd, GAUGE(units), 0));
	close(ends[0]);
	close(ends[1]);
	guest_tested("linger");
}

/* Arguments that are wrong. */
static void test_refused(void)
{
	const struct nabc_put good = {.size = 5000, .data = (uintptr_t)bytes};
	struct nabc_put call;

#define REFUSED(error, ...)                                                                        \
	do {                                                                                       \
		call = good;                                                                       \
		__VA_ARGS__;                                                                       \
		must_fail(put(device.fd, call), error);                                            \
	} while (0)
	REFUSED(EINVAL, call.size = 0);
	REFUSED(EINVAL, call.flags = 2);
	REFUSED(EINVAL, call.reserved = 1);
	REFUSED(EINVAL, call.linger = device.info.linger_max + 1);
	REFUSED(EINVAL, call.rights = NABC_RIGHT_SEND);
	REFUSED(EINVAL, call.who = 1);
	REFUSED(EINVAL, call.principal = NABC_PRINCIPAL_USER);
	REFUSED(EINVAL, call.principal = NABC_PRINCIPAL_USER, call.rights = 4);
	REFUSED(EINVAL, call.principal = 5, call.rights = NABC_RIGHT_SEND);
	REFUSED(EINVAL, call.principal = NABC_PRINCIPAL_USER, call.who = UINT32_MAX,
		call.rights = 1);
	REFUSED(EFBIG, call.size = device.info.unit_max + 1);
	REFUSED(EFBIG, call.size = UINT64_MAX);
	REFUSED(ESRCH, call.principal = NABC_PRINCIPAL_PROCESS, call.who = 4000000,
		call.rights = 1);
	REFUSED(EBADF, call.principal = NABC_PRINCIPAL_PIDFD, call.who = 9999, call.rights = 1);
	REFUSED(EBADF, call.principal = NABC_PRINCIPAL_PIDFD, call.who = (uint32_t)device.fd,
		call.rights = 1);
	REFUSED(EFAULT, call.data = 0);
	REFUSED(EFAULT, call.data = 0xffff888000000000u);
#undef REFUSED
	must_fail(ioctl(device.fd, NABC_IOC_PUT, NULL), EFAULT);
	guest_tested("what is refused");
}

/* Memory of which only a part is mapped; a result that cannot be written. */
static void test_faults(void)
{
	unsigned char *half =
		mmap(NULL, 200000, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct nabc_put *call =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t id;

	must(half != MAP_FAILED && call != MAP_FAILED);
	must(munmap(half + 4096 * 20, 200000 - 4096 * 20) == 0);
	must_fail(nabc_put(device.fd, half, 200000, &id), EFAULT);
	must_fail(nabc_put(device.fd, half, 4096 * 20 + 1, &id), EFAULT);
	must_fail(nabc_put(device.fd, half + 4096 * 20, 1, &id), EFAULT);
	must(nabc_put(device.fd, half, 4096 * 20, &id) == 0);
	must(nabc_destroy(device.fd, id) == 0);
	*call = (struct nabc_put){.size = 5000, .data = (uintptr_t)bytes};
	must(mprotect(call, 4096, PROT_READ) == 0);
	must_fail(ioctl(device.fd, NABC_IOC_PUT, call), EFAULT);
	munmap(call, 4096);
	munmap(half, 4096 * 20);
	guest_tested("memory that is not there");
}

/* As another user, to whom RLIMIT_MEMLOCK applies. */
static int locked_memory(void *context)
{
	const struct rlimit limit = {1 << 20, 1 << 20};
	uint64_t id, count = 0;
	struct device own;

	(void)context;
	must(setrlimit(RLIMIT_MEMLOCK, &limit) == 0);
	device_open(&own);
	must(setresuid(1000, 1000, 1000) == 0);
	must_fail(nabc_put(own.fd, bytes, 2 << 20, &id), ENOMEM);
	while (count < 100 && nabc_put(own.fd, bytes, 65536, &id) == 0)
		count++;
	must(errno == ENOMEM);
	must(count >= 14 && count <= 16);
	must(device_statistics(own.fd).file_charged <= 1 << 20);
	must(nabc_destroy(own.fd, id) == 0);
	must(nabc_put(own.fd, bytes, 65536, &id) == 0);
	return 0;
}

/* The machine's limit. */
static void test_limits(void)
{
	uint64_t ids[100], count = 0;

	guest_join(guest_fork(locked_memory, NULL));
	guest_run("echo 4 >/sys/module/nabc/parameters/memory_limit");
	while (count < 100 && nabc_put(device.fd, bytes, 1 << 20, &ids[count]) == 0)
		count++;
	must(errno == ENOSPC);
	must(count >= 1 && count <= 4);
	while (count)
		must(nabc_destroy(device.fd, ids[--count]) == 0);
	guest_run("echo 0 >/sys/module/nabc/parameters/memory_limit");
	guest_tested("RLIMIT_MEMLOCK, the machine's limit");
}

int main(void)
{
	device_open(&device);
	test_bytes();
	test_sums();
	test_send();
	test_grant();
	test_linger();
	test_refused();
	test_faults();
	test_limits();
	/* Refused calls have left nothing behind. */
	must(device_wait(device.fd, GAUGE(units), 0));
	must(device_statistics(device.fd).unit_memory == 0);
	must(device_statistics(device.fd).file_units == 0);
	device_close(&device);
	return 0;
}
