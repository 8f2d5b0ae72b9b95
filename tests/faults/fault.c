/* SPDX-License-Identifier: MIT */
/*
 * fault.c - makes the calls of a program fail, as a plan says (fault.h).
 *
 *	FAULT_PLAN=file LD_PRELOAD=fault.so PROGRAM
 *
 * It wraps the functions of libc, and those of liburing, whose own system calls do
 * not use libc: a submission to a ring that must fail becomes a no-op with that
 * result.  Allocations of GLib do not fail, since GLib would abort.  Programs that
 * this one executes are not affected; forked children are.
 */
#include "fault-internal.h"
#include "fault.h"

#include <elf.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

struct fault_plan *fault_plan;
__thread bool fault_inside;

static uintptr_t glib_start, glib_end;

/* --- the caller --------------------------------------------------------- */

static void remember_caller(void)
{
	void *frames[FAULT_FRAMES_MAX];
	int i, count;

	fault_inside = true;
	count = backtrace(frames, FAULT_FRAMES_MAX);
	fault_inside = false;
	for (i = 0; i < count; i++)
		fault_plan->frames[i] = (uintptr_t)frames[i];
	fault_plan->frame_count = count > 0 ? (uint64_t)count : 0;
}

bool fault_is_glib(uintptr_t address)
{
	return address >= glib_start && address < glib_end;
}

/* Returns whether GLib allocates, itself or through libc: a failure would abort. */
static bool is_for_glib(void)
{
	uint64_t i;

	for (i = 0; i < fault_plan->frame_count; i++)
		if (fault_is_glib((uintptr_t)fault_plan->frames[i]))
			return true;
	return false;
}

/* Returns whether a descriptor can have this error at all: impossible errors prove nothing. */
static bool fits(int fd, int error, size_t length)
{
	struct stat stat;
	int type = 0;
	socklen_t size = sizeof(type);
	bool fit = true;

	fault_inside = true;
	if (fstat(fd, &stat) < 0)
		fit = true;
	else if (S_ISREG(stat.st_mode))
		fit = error == EINTR || error == EIO || error == ENOSPC || error == FAULT_SHORT;
	else if (S_ISSOCK(stat.st_mode) && getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
		 type == SOCK_STREAM)
		fit = error != EIO && error != ENOSPC && error != FAULT_CUT;
	else if (S_ISSOCK(stat.st_mode))
		/* Messages: complete, or not at all; their peers belong to this program. */
		fit = error == EINTR || error == EAGAIN || error == ENOMEM || error == ENOBUFS ||
		      error == FAULT_CUT;
	else if (S_ISFIFO(stat.st_mode) && length > sizeof(uint64_t))
		fit = error == EINTR || error == EAGAIN || error == FAULT_SHORT;
	else
		/* Doorbells, timers, signals: never refused for long. */
		fit = error == EINTR || error == FAULT_LOST;
	fault_inside = false;
	return fit;
}

int fault_met_on(enum fault_kind kind, int fd, size_t length)
{
	struct fault_plan *plan = fault_plan;
	uint64_t number, at;
	int error;

	if (!plan || fault_inside)
		return 0;
	number = atomic_fetch_add(&plan->kinds[kind].calls, 1);
	if (atomic_load(&plan->kind) != (uint64_t)kind)
		return 0;
	at = atomic_load(&plan->at);
	if (number < at || number - at >= atomic_load(&plan->times))
		return 0;
	error = (int)atomic_load(&plan->error);
	if (fd >= 0 && !fits(fd, error, length))
		return 0;
	remember_caller();
	if (kind <= FAULT_aligned_alloc && is_for_glib())
		return 0;
	atomic_fetch_add(&plan->fired, 1);
	return error;
}

int fault_met(enum fault_kind kind)
{
	return fault_met_on(kind, -1, 0);
}

int fault_met_error_on(enum fault_kind kind, int fd, size_t length)
{
	int error = fault_met_on(kind, fd, length);

	if (error > 0)
		errno = error;
	return error;
}

int fault_met_error(enum fault_kind kind)
{
	return fault_met_error_on(kind, -1, 0);
}

/* What the kernel never does partly: messages, events. */
static bool can_be_short(int fd)
{
	struct stat stat;
	int type = 0;
	socklen_t length = sizeof(type);
	bool can = false;

	fault_inside = true;
	if (fstat(fd, &stat) == 0) {
		if (S_ISSOCK(stat.st_mode))
			can = getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0 &&
			      type == SOCK_STREAM;
		else
			can = S_ISREG(stat.st_mode) || S_ISFIFO(stat.st_mode);
	}
	fault_inside = false;
	return can;
}

size_t fault_cut(int error, int fd, size_t length)
{
	return error == FAULT_SHORT && length > 1 && can_be_short(fd) ? 1 : length;
}

const struct iovec *fault_cut_vector(int error, int fd, const struct iovec *vector, int *count,
				     struct iovec *one)
{
	int i;

	if (error != FAULT_SHORT || !can_be_short(fd))
		return vector;
	for (i = 0; i < *count; i++) {
		if (vector[i].iov_len == 0)
			continue;
		one->iov_base = vector[i].iov_base;
		one->iov_len = 1;
		*count = 1;
		return one;
	}
	return vector;
}

/* --- start -------------------------------------------------------------- */

static int find_glib(struct dl_phdr_info *info, size_t size, void *unused)
{
	int i;

	(void)size, (void)unused;
	if (info->dlpi_name[0] == '\0' && fault_plan && !fault_plan->base)
		fault_plan->base = info->dlpi_addr;
	if (!strstr(info->dlpi_name, "libglib-2"))
		return 0;
	for (i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];

		if (header->p_type != PT_LOAD || !(header->p_flags & PF_X))
			continue;
		glib_start = info->dlpi_addr + header->p_vaddr;
		glib_end = glib_start + header->p_memsz;
	}
	return 0;
}

static void name_kinds(struct fault_plan *plan)
{
	static const struct {
		const char *name;
		int32_t errors[FAULT_ERRORS_MAX];
	} kinds[] = {
#define FAULT_ONE(name, ...) {#name, {__VA_ARGS__}},
		FAULT_KINDS(FAULT_ONE)
#undef FAULT_ONE
	};
	unsigned i;

	for (i = 0; i < FAULT_KIND_COUNT; i++) {
		snprintf(plan->kinds[i].name, sizeof(plan->kinds[i].name), "%s", kinds[i].name);
		memcpy(plan->kinds[i].errors, kinds[i].errors, sizeof(kinds[i].errors));
	}
	plan->kind_count = FAULT_KIND_COUNT;
}

__attribute__((constructor)) static void start(void)
{
	const char *path = getenv("FAULT_PLAN");
	struct fault_plan *plan;
	struct stat stat;
	void *warm[1];
	int fd;

	fault_inside = true;
	unsetenv("LD_PRELOAD");
	unsetenv("FAULT_PLAN");
	(void)backtrace(warm, 1);
	fault_probe_ring();
	fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	if (fd < 0 || fstat(fd, &stat) < 0 || stat.st_size < (off_t)sizeof(*plan)) {
		fprintf(stderr, "fault: no plan, or too short a file, in $FAULT_PLAN\n");
		_exit(120);
	}
	plan = mmap(NULL, sizeof(*plan), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (plan == MAP_FAILED)
		_exit(120);
	if (atomic_load(&plan->magic) != FAULT_MAGIC) {
		name_kinds(plan);
		/* A fault that the driver has armed before stays armed. */
		if (atomic_load(&plan->times) == 0)
			atomic_store(&plan->kind, FAULT_NONE);
		atomic_store(&plan->magic, FAULT_MAGIC);
	}
	fault_plan = plan;
	dl_iterate_phdr(find_glib, NULL);
	fault_inside = false;
}
