/* SPDX-License-Identifier: MIT */
/* test-memory-limit.c - unit tests of memory-limit.c, with files like those of the kernel. */
#include <glib.h>
#include <glib/gstdio.h>
#include <stdint.h>
#include <string.h>

#include "process/memory-limit.h"

#include "suite.h"

#define MIB ((uint64_t)1 << 20)
#define MOUNT_2 "30 23 0:26 %s /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
#define MOUNT_1 "35 31 0:32 %s /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
#define OTHERS                                                                                     \
	"23 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw\n"                                \
	"32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"                              \
	"broken\n1 2 3\n"

static char root[] = "/tmp/test-memory-limit-XXXXXX";

static void set_up(void)
{
	ck_assert_ptr_nonnull(g_mkdtemp(root));
}

static void remove_tree(const char *path)
{
	GDir *dir = g_dir_open(path, 0, NULL);
	const char *name;

	while (dir && (name = g_dir_read_name(dir))) {
		char *inside = g_build_filename(path, name, NULL);

		remove_tree(inside);
		g_free(inside);
	}
	if (dir)
		g_dir_close(dir);
	(void)g_remove(path);
}

static void tear_down(void)
{
	remove_tree(root);
}

static void put(const char *name, const char *text)
{
	char *path = g_build_filename(root, name, NULL), *folder = g_path_get_dirname(path);

	ck_assert_int_eq(g_mkdir_with_parents(folder, 0755), 0);
	ck_assert(g_file_set_contents(path, text, -1, NULL));
	g_free(folder);
	g_free(path);
}

/* A machine of 8 GiB with that hierarchy mounted from `top` on, and the process in that group. */
static void machine(const char *mount, const char *top, const char *groups)
{
	char *line = g_strdup_printf(strcmp(mount, MOUNT_1) == 0 ? MOUNT_1 : MOUNT_2, top);
	char *text = g_strconcat(OTHERS, line, NULL);

	put("proc/meminfo", "MemTotal:        8388608 kB\nMemFree:          100 kB\n");
	put("proc/self/mountinfo", text);
	put("proc/self/cgroup", groups);
	g_free(text);
	g_free(line);
}

static uint64_t found(const char *what)
{
	struct memory_limit limit;

	memory_limit_find(&limit, root);
	ck_assert_msg(strcmp(limit.what, what) == 0, "%s, not %s", limit.what, what);
	return limit.bytes;
}

START_TEST(test_machine)
{
	struct memory_limit limit;

	/* Nothing is known. */
	memory_limit_find(&limit, root);
	ck_assert(limit.bytes == UINT64_MAX);
	ck_assert_uint_eq(memory_limit_cache(&limit), 256 * MIB);
	machine(MOUNT_2, "/", "0::/\n");
	ck_assert_uint_eq(found("this machine"), 8192 * MIB);
	/* The machine of the tests has some memory. */
	memory_limit_find(&limit, "");
	ck_assert(limit.bytes > 16 * MIB && limit.bytes < UINT64_MAX);
}
END_TEST

START_TEST(test_version_2)
{
	machine(MOUNT_2, "/", "0::/a/b/c\n");
	put("sys/fs/cgroup/a/b/c/memory.max", "max\n");
	ck_assert_uint_eq(found("this machine"), 8192 * MIB);
	/* Limits of outer groups count, too. */
	put("sys/fs/cgroup/a/b/memory.max", "134217728\n");
	ck_assert_uint_eq(found("/sys/fs/cgroup/a/b/memory.max"), 128 * MIB);
	put("sys/fs/cgroup/a/memory.max", "1073741824\n");
	ck_assert_uint_eq(found("/sys/fs/cgroup/a/b/memory.max"), 128 * MIB);
	put("sys/fs/cgroup/a/b/c/memory.high", "67108864\n");
	ck_assert_uint_eq(found("/sys/fs/cgroup/a/b/c/memory.high"), 64 * MIB);
	put("sys/fs/cgroup/memory.max", "33554432\n");
	ck_assert_uint_eq(found("/sys/fs/cgroup/memory.max"), 32 * MIB);
	/* Those of other groups do not. */
	put("sys/fs/cgroup/a/x/memory.max", "1048576\n");
	ck_assert_uint_eq(found("/sys/fs/cgroup/memory.max"), 32 * MIB);
}
END_TEST

START_TEST(test_version_1)
{
	machine(MOUNT_1, "/", "9:name=systemd:/z\n4:cpu,memory:/a/b\n0::/\n");
	put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
	put("sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
	put("sys/fs/cgroup/cpu/a/b/memory.limit_in_bytes", "1\n");
	ck_assert_uint_eq(found("this machine"), 8192 * MIB);
	put("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "134217728\n");
	ck_assert_uint_eq(found("/sys/fs/cgroup/memory/a/memory.limit_in_bytes"), 128 * MIB);
	put("sys/fs/cgroup/memory/a/b/memory.stat",
	    "cache 7\nhierarchical_memory_limit 67108864\nhierarchical_memsw_limit 5\n");
	ck_assert_uint_eq(found("/sys/fs/cgroup/memory/a/b/memory.stat"), 64 * MIB);
}
END_TEST

/* A container sees a part of the hierarchy, or its own group as the root. */
START_TEST(test_containers)
{
	static const struct {
		const char *top, *groups;
	} cases[] = {{"/docker/1", "0::/docker/1\n"},
		     {"/docker/1", "0::/docker/1/\n"},
		     {"/", "0::/\n"},
		     {"/docker/1", "0::/docker/12/x\n"},
		     {"/docker/1", "0::/elsewhere\n"},
		     {"/", "0::/../outside\n"}};

	put("sys/fs/cgroup/memory.max", "134217728\n");
	put("sys/fs/outside/memory.max", "1\n");
	for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
		machine(MOUNT_2, cases[i].top, cases[i].groups);
		ck_assert_uint_eq(found("/sys/fs/cgroup/memory.max"), 128 * MIB);
	}
	machine(MOUNT_2, "/docker/1", "0::/docker/1/in side\n");
	put("sys/fs/cgroup/in side/memory.max", "67108864\n");
	ck_assert_uint_eq(found("/sys/fs/cgroup/in side/memory.max"), 64 * MIB);
	/* A blank in the path of a mount. */
	put("proc/self/mountinfo", "30 23 0:26 / /my\\040groups rw - cgroup2 cgroup2 rw\n");
	put("proc/self/cgroup", "0::/\n");
	put("my groups/memory.max", "33554432\n");
	ck_assert_uint_eq(found("/my groups/memory.max"), 32 * MIB);
}
END_TEST

START_TEST(test_nonsense)
{
	static const char *const values[] = {
		"", "\n", "-1\n", "12x\n", " 5\n", "0x10\n", "99999999999999999999999\n"};

	machine(MOUNT_2, "/", "0::/a\nx\n:\n5:\n");
	for (unsigned i = 0; i < G_N_ELEMENTS(values); i++) {
		put("sys/fs/cgroup/a/memory.max", values[i]);
		ck_assert_uint_eq(found("this machine"), 8192 * MIB);
	}
	put("proc/meminfo", "MemTotal: lots\n");
	ck_assert(found("this machine") == UINT64_MAX);
}
END_TEST

START_TEST(test_cache)
{
	static const struct {
		uint64_t memory, cache;
	} cases[] = {{8192 * MIB, 256 * MIB},
		     {1024 * MIB, 256 * MIB},
		     {1023 * MIB, 255 * MIB},
		     {128 * MIB, 32 * MIB},
		     {130 * MIB + 1, 32 * MIB},
		     {2 * MIB, MIB},
		     {0, MIB}};
	char text[MEMORY_TEXT_MAX];

	for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
		struct memory_limit limit = {.bytes = cases[i].memory};

		ck_assert_uint_eq(memory_limit_cache(&limit), cases[i].cache);
	}
	ck_assert_str_eq(memory_text(128 * MIB, text), "128M");
	ck_assert_str_eq(memory_text(128 * MIB + 4096, text), "128M");
	ck_assert_str_eq(memory_text(MIB - 1, text), "1023K");
}
END_TEST

START_TEST(test_connections)
{
	static const struct {
		uint64_t memory;
		unsigned count;
	} cases[] = {{128 * MIB, 1024},
		     {1024 * MIB, 8192},
		     {MIB, 64},
		     {0, 64},
		     {UINT64_MAX, MEMORY_LIMIT_CONNECTIONS_MOST}};

	for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
		struct memory_limit limit = {.bytes = cases[i].memory};

		ck_assert_uint_eq(memory_limit_connections(&limit), cases[i].count);
	}
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, test_machine);
	tcase_add_test(tcase, test_version_2);
	tcase_add_test(tcase, test_version_1);
	tcase_add_test(tcase, test_containers);
	tcase_add_test(tcase, test_nonsense);
	tcase_add_test(tcase, test_cache);
	tcase_add_test(tcase, test_connections);
}

RUN_SUITE("memory-limit", fill)
