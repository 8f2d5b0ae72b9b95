/* SPDX-License-Identifier: MIT */
/*
 * test-random.c - unit tests of random.c: no two numbers are equal, in no process, also
 * where the kernel refuses to give any.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/random.h"

#include "suite.h"

#define PROCESSES 4u
#define NUMBERS 500u

static void forbid(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getrandom, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};
	char byte;

	ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
	ck_assert_int_eq(syscall(SYS_getrandom, &byte, 1, 0), -1);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

START_TEST(test_all_differ)
{
	const size_t all = (size_t)PROCESSES * NUMBERS;
	uint64_t *numbers = mmap(NULL, all * sizeof(*numbers), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t ones = 0, zeros = 0;

	ck_assert_ptr_ne(numbers, MAP_FAILED);
	for (unsigned i = 0; i < PROCESSES; i++) {
		int status;
		pid_t pid = fork_alone();

		if (pid == 0) {
			if (_i)
				forbid();
			for (unsigned k = 0; k < NUMBERS; k++)
				numbers[i * NUMBERS + k] = nc_random();
			_exit(0);
		}
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		ck_assert_int_eq(status, 0);
	}
	qsort(numbers, all, sizeof(*numbers), by_value);
	for (size_t i = 0; i < all; i++) {
		ones |= numbers[i];
		zeros |= ~numbers[i];
		expect(i == 0 || numbers[i - 1] != numbers[i]);
	}
	ck_assert_uint_eq(ones, UINT64_MAX);
	ck_assert_uint_eq(zeros, UINT64_MAX);
	munmap(numbers, all * sizeof(*numbers));
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_loop_test(tcase, test_all_differ, 0, 2);
}

RUN_SUITE("random", fill)
