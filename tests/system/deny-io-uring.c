/* SPDX-License-Identifier: MIT */
/*
 * deny-io-uring.c - runs a program for which io_uring is unavailable.
 *
 *	deny-io-uring ENOSYS|EPERM PROGRAM [ARGUMENT...]
 *
 * io_uring_setup fails with that error in the program and in all its child processes:
 * ENOSYS as on a kernel without it, EPERM as in a container.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int refuse(unsigned error)
{
	struct sock_filter program[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {.len = sizeof(program) / sizeof(program[0]), .filter = program};

	/* Without it only root may filter. */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

int main(int argc, char **argv)
{
	unsigned error = 0;

	if (argc >= 3 && strcmp(argv[1], "ENOSYS") == 0)
		error = ENOSYS;
	if (argc >= 3 && strcmp(argv[1], "EPERM") == 0)
		error = EPERM;
	if (!error) {
		fprintf(stderr, "usage: deny-io-uring ENOSYS|EPERM PROGRAM [ARGUMENT...]\n");
		return EXIT_FAILURE;
	}
	if (refuse(error) < 0)
		perror("deny-io-uring: seccomp");
	else
		execvp(argv[2], argv + 2);
	perror(argv[2]);
	return EXIT_FAILURE;
}
