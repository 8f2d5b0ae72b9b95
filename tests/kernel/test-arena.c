/* SPDX-License-Identifier: MIT */
/*
 * test-arena.c - the mapping: what may be mapped, what is visible where, and that no
 * access to the bytes of a unit remains after its insert.
 */
#include <errno.h>
#include <fcntl.h>
#include <nabc-uapi.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device.h"
#include "guest.h"

static struct device device;
static sigjmp_buf back;
static volatile sig_atomic_t caught;

static void catch (int signal)
{
	caught = signal;
	siglongjmp(back, 1);
}

/* Returns the signal that reading a byte raises, 0 for none; the same for writing. */
static int reading(const volatile unsigned char *byte)
{
	caught = 0;
	if (sigsetjmp(back, 1) == 0)
		(void)*byte;
	return caught;
}

static int writing(volatile unsigned char *byte)
{
	caught = 0;
	if (sigsetjmp(back, 1) == 0)
		*byte = 1;
	return caught;
}

static long map(size_t length, int protection, int flags, off_t offset)
{
	void *at = mmap(NULL, length, protection, flags, device.fd, offset);

	if (at == MAP_FAILED)
		return -1;
	munmap(at, length);
	return 0;
}

static void test_map(void)
{
	const int both = PROT_READ | PROT_WRITE;
	size_t size = device.info.arena_size, page = device.info.page_size;

	must_fail(map(page, both, MAP_PRIVATE, 0), EINVAL);
	must_fail(map(page, PROT_READ, MAP_PRIVATE, 0), EINVAL);
	must_fail(map(page, both, MAP_SHARED, (off_t)page), EINVAL);
	must_fail(map(size + page, both, MAP_SHARED, 0), EINVAL);
	must_fail(map(page, both | PROT_EXEC, MAP_SHARED, 0), EINVAL);
	must(mprotect(device.arena, size, both | PROT_EXEC) == -1);
	guest_tested("what may not be mapped");
}

static void test_faults(void)
{
	unsigned char *bytes;
	uint64_t id = device_alloc(&device, 100000, &bytes);

	/* The unit's last page is complete; the following page is inaccessible. */
	must(writing(bytes) == 0 && writing(bytes + 99999) == 0);
	must(nabc_insert(device.fd, id, 0, 0, 0) == 0);
	must(reading(bytes) == SIGBUS && writing(bytes + 99999) == SIGBUS);
	must(nabc_destroy(device.fd, id) == 0);
	must(reading(bytes) == SIGBUS);
	must(reading(device.arena + device.info.arena_size - 1) == SIGBUS);
	id = device_alloc(&device, 5000, &bytes);
	must(writing(bytes) == 0);
	must(nabc_destroy(device.fd, id) == 0);
	must(writing(bytes) == SIGBUS);
	guest_tested("units inserted, destroyed and never made give SIGBUS");
}

static int look(void *context)
{
	/* Not inherited. */
	return reading(context) == SIGSEGV ? 0 : 1;
}

static int use(void *context)
{
	struct nabc_info info;
	uint64_t id;

	(void)context;
	must_fail(ioctl(device.fd, NABC_IOC_INFO, &info), EPERM);
	must_fail(nabc_alloc(device.fd, 100, &id), EPERM);
	must(mmap(NULL, 4096, PROT_READ, MAP_SHARED, device.fd, 0) == MAP_FAILED && errno == EPERM);
	return 0;
}

static void test_fork(void)
{
	unsigned char *bytes;
	uint64_t id = device_alloc(&device, 100, &bytes);

	*bytes = 1;
	guest_join(guest_fork(look, bytes));
	guest_join(guest_fork(use, NULL));
	must(*bytes == 1);
	must(nabc_destroy(device.fd, id) == 0);
	guest_tested("a child inherits neither mapping nor calls");
}

/* No reference to a page may survive an insert. */
static void test_pins(void)
{
	struct iovec piece, got;
	unsigned char *bytes;
	char buffer[100], path[] = "/proc/self/mem";
	uint64_t id = device_alloc(&device, 8192, &bytes);
	int ends[2], memory;

	guest_fill(bytes, 4, 0, 8192);
	must(pipe(ends) == 0);
	piece = (struct iovec){bytes, 4096};
	must(vmsplice(ends[1], &piece, 1, 0) == -1);
	got = (struct iovec){buffer, sizeof(buffer)};
	piece.iov_len = sizeof(buffer);
	must_fail(process_vm_readv(getpid(), &got, 1, &piece, 1, 0), EFAULT);
	must(process_vm_writev(getpid(), &got, 1, &piece, 1, 0) == -1);
	memory = open(path, O_RDWR);
	must(memory >= 0);
	must(pread(memory, buffer, sizeof(buffer), (off_t)(uintptr_t)bytes) == -1);
	close(memory);
	/* Copying into and out of it pins nothing. */
	must(write(ends[1], bytes, 100) == 100);
	must(read(ends[0], bytes + 4096, 100) == 100);
	must(guest_holds(bytes + 4096, 4, 0, 100));
	close(ends[0]);
	close(ends[1]);
	must(nabc_destroy(device.fd, id) == 0);
	guest_tested("vmsplice, process_vm_readv and /proc/self/mem are refused");
}

static void test_split(void)
{
	size_t half = device.info.arena_size / 2;
	void *moved;

	must(munmap(device.arena, device.info.page_size) == -1 && errno == EINVAL);
	must(munmap(device.arena + half, half) == -1);
	must(mprotect(device.arena, device.info.page_size, PROT_NONE) == -1);
	must(madvise(device.arena, half, MADV_DOFORK) == -1);
	moved = mremap(device.arena, device.info.arena_size, 2 * device.info.arena_size,
		       MREMAP_MAYMOVE);
	must(moved == MAP_FAILED);
	guest_tested("the mapping is one piece");
}

/* Moved as a whole or mapped twice: insert affects every mapping. */
static void test_second(void)
{
	unsigned char *second =
		mmap(NULL, device.info.arena_size, PROT_READ, MAP_SHARED, device.fd, 0);
	unsigned char *bytes;
	uint64_t id;

	/* One mapping per process: more may be refused. */
	if (second == MAP_FAILED) {
		guest_tested("one mapping only");
		return;
	}
	id = device_alloc(&device, 100, &bytes);
	bytes[1] = 7;
	must(second[bytes - device.arena + 1] == 7);
	must(writing(second + (bytes - device.arena)) == SIGSEGV);
	must(nabc_insert(device.fd, id, 0, 0, 0) == 0);
	must(reading(second + (bytes - device.arena)) == SIGBUS && reading(bytes) == SIGBUS);
	must(munmap(second, device.info.arena_size) == 0);
	must(nabc_destroy(device.fd, id) == 0);
	guest_tested("a second mapping");
}

/* Another open file has an arena of its own. */
static void test_files(void)
{
	struct device other;
	unsigned char *bytes, *others;
	uint64_t id = device_alloc(&device, 100, &bytes), foreign;

	device_open(&other);
	foreign = device_alloc(&other, 100, &others);
	*bytes = 1;
	*others = 2;
	must(*bytes == 1 && *others == 2);
	/* Of the same process, but this file cannot fill it. */
	must_fail(nabc_insert(other.fd, id, 0, 0, 0), ENOENT);
	must(nabc_destroy(other.fd, foreign) == 0);
	device_close(&other);
	must(*bytes == 1);
	must(nabc_destroy(device.fd, id) == 0);
	guest_tested("two files");
}

int main(void)
{
	struct sigaction action = {.sa_handler = catch};

	sigaction(SIGBUS, &action, NULL);
	sigaction(SIGSEGV, &action, NULL);
	device_open(&device);
	test_map();
	test_faults();
	test_fork();
	test_pins();
	test_split();
	test_second();
	test_files();
	device_close(&device);
	return 0;
}
