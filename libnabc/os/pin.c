/* SPDX-License-Identifier: MIT */
/* pin.c - locks memory by mlock2(2) or mlock(2); see pin.h. */
#include <errno.h>
#include <nabc.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/diagnostics.h"
#include "os/pin.h"

#define MIB ((size_t)1 << 20)

static int lock_on_fault(void *base, size_t size, bool filled)
{
	/* Without the flag the pages become present now. */
	if (mlock2(base, size, filled ? 0 : MLOCK_ONFAULT) == 0)
		return 0;
	/* The C library replaces ENOSYS by EINVAL. */
	return errno == EINVAL ? -ENOSYS : -errno;
}

static int lock_all(void *base, size_t size, bool filled)
{
	(void)filled;
	return mlock(base, size) < 0 ? -errno : 0;
}

const struct nc_pin_method nc_pin_methods[] = {
	{"mlock2", lock_on_fault},
	{"mlock", lock_all},
	{NULL, NULL},
};

void nc_pin_init(struct nc_pin *pin, const struct nc_pin_method *methods,
		 struct nc_diagnostics *diagnostics, size_t memory, size_t member_quota)
{
	*pin = (struct nc_pin){.methods = methods,
			       .diagnostics = diagnostics,
			       .member_quota = member_quota,
			       .expected = memory};
}

void nc_pin_expect_member(struct nc_pin *pin, size_t size)
{
	atomic_fetch_add_explicit(&pin->expected, size + pin->member_quota, memory_order_relaxed);
}

void nc_pin_forget_member(struct nc_pin *pin, size_t size)
{
	atomic_fetch_sub_explicit(&pin->expected, size + pin->member_quota, memory_order_relaxed);
}

struct figure {
	char text[32];
};

/* Whole MiB, if that loses nothing. */
static struct figure figure(uint64_t bytes)
{
	struct figure figure;
	bool large = bytes && bytes % MIB == 0;

	snprintf(figure.text, sizeof(figure.text), "%llu %s",
		 (unsigned long long)(large ? bytes / MIB : (bytes + 1023) / 1024),
		 large ? "MiB" : "KiB");
	return figure;
}

/* Says what is locked, what is not, and the limit to raise, or another reason. */
static void report(struct nc_pin *pin, int error)
{
	uint64_t locked = atomic_load_explicit(&pin->locked, memory_order_relaxed);
	uint64_t unlocked = atomic_load_explicit(&pin->unlocked, memory_order_relaxed);
	size_t expected = atomic_load_explicit(&pin->expected, memory_order_relaxed);
	struct rlimit limit = {.rlim_cur = RLIM_INFINITY};

	(void)getrlimit(RLIMIT_MEMLOCK, &limit);
	expected = (expected + MIB - 1) / MIB * MIB;
	if ((error == -EPERM || error == -ENOMEM) && limit.rlim_cur < expected)
		nc_diagnostics_report(
			pin->diagnostics, NC_DIAGNOSTIC_PIN,
			"%s of %s of memory are locked, the rest is not and may be swapped out: "
			"RLIMIT_MEMLOCK is %s; raise it to at least %s (ulimit -l, LimitMEMLOCK=)",
			figure(locked).text, figure(locked + unlocked).text,
			figure(limit.rlim_cur).text, figure(expected).text);
	else
		nc_diagnostics_report(
			pin->diagnostics, NC_DIAGNOSTIC_PIN,
			"%s of %s of memory are locked, the rest is not and may be swapped out: "
			"mlock2: %s",
			figure(locked).text, figure(locked + unlocked).text, strerror(-error));
}

/* Returns 0, or the error of the first method that the kernel has. */
static int lock(const struct nc_pin *pin, void *base, size_t size, bool filled)
{
	int error = -ENOSYS;

	for (const struct nc_pin_method *method = pin->methods; error == -ENOSYS && method->name;
	     method++)
		error = method->lock(base, size, filled);
	/* A failure to read pages leaves the lock in place; the counts would not agree. */
	if (error)
		(void)munlock(base, size);
	return error;
}

static void count(struct nc_pin *pin, bool locked, size_t size)
{
	atomic_fetch_add_explicit(locked ? &pin->locked : &pin->unlocked, size,
				  memory_order_relaxed);
}

bool nc_pin_lock(struct nc_pin *pin, void *base, size_t size, bool filled)
{
	int error = lock(pin, base, size, filled);

	count(pin, !error, size);
	if (error)
		report(pin, error);
	return !error;
}

bool nc_pin_lock_again(struct nc_pin *pin, void *base, size_t size, bool locked)
{
	nc_pin_closed(pin, size, locked);
	return nc_pin_lock(pin, base, size, true);
}

void nc_pin_closed(struct nc_pin *pin, size_t size, bool locked)
{
	atomic_fetch_sub_explicit(locked ? &pin->locked : &pin->unlocked, size,
				  memory_order_relaxed);
}
