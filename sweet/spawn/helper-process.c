/* SPDX-License-Identifier: MIT */
/*
 * helper-process.c - see helper-process.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "spawn/helper-process.h"
#include "process/privileges.h"
#include "spawn/spawner-wire.h"

#define LEFT_OPEN 4 /* 0, 1, 2, and 3, which is reserved */

/* Closes everything but standard error and the channels, which get other numbers. */
static bool close_descriptors(const int *channels, unsigned count, int *own)
{
	unsigned lowest = LEFT_OPEN + count;
	int null, copies[SPAWNER_CHANNELS_MAX];

	/* First move them away from their later numbers. */
	for (unsigned i = 0; i < count; i++) {
		copies[i] = fcntl(channels[i], F_DUPFD_CLOEXEC, (int)lowest);
		if (copies[i] < 0)
			return false;
	}
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0)
		return false;
	for (unsigned i = 0; i < count; i++)
		own[i] = copies[i];
	if (fcntl(STDERR_FILENO, F_GETFD) < 0)
		dup2(null, STDERR_FILENO);
	dup2(null, STDIN_FILENO);
	dup2(STDERR_FILENO, STDOUT_FILENO);
	dup3(null, STDERR_FILENO + 1, O_CLOEXEC);
	for (unsigned i = 0; i < count; i++) {
		if (dup3(copies[i], LEFT_OPEN + (int)i, O_CLOEXEC) < 0)
			return false;
		own[i] = LEFT_OPEN + (int)i;
	}
	if (syscall(SYS_close_range, lowest, ~0u, 0) < 0)
		for (int fd = (int)lowest; fd < 65536; fd++)
			close(fd);
	return true;
}

int helper_process_enter(const char *name, const int *channels, unsigned count, int *own)
{
	sigset_t all;
	int error;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	/* Programs would inherit ignored signals. */
	for (int i = 1; i < NSIG; i++)
		if (i != SIGKILL && i != SIGSTOP)
			(void)signal(i, SIG_DFL);
	memcpy(own, channels, count * sizeof(*own));
	if (!close_descriptors(channels, count, own))
		return -errno;
	(void)prctl(PR_SET_NAME, name, 0, 0, 0);
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	error = privileges_trim();
	return error ? error : privileges_seal();
}
