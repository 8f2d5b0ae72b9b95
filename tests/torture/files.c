/* SPDX-License-Identifier: MIT */
/*
 * files.c - creates the files for the stage "bytes" and changes them, each time to the
 * next version: "files FOLDER BOARD PER-SECOND SEED". Some are replaced by rename(2),
 * others written in place, by one write, or truncated before that.  A shared mapped
 * file contains the possible versions: `most` is raised before a change, `least` after
 * it.  Prints "files: ready" when all exist; SIGTERM stops it.  One thread.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "content.h"

static struct content_board *board;
static char buffer[8 << 20];
static volatile sig_atomic_t over;

static void on_end(int number)
{
	(void)number;
	over = 1;
}

static struct content_board *map_board(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	void *mapped;

	if (fd < 0 || ftruncate(fd, sizeof(struct content_board)) < 0)
		err(1, "%s", path);
	mapped =
		mmap(NULL, sizeof(struct content_board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (mapped == MAP_FAILED)
		err(1, "%s", path);
	close(fd);
	return mapped;
}

static void put(const char *name, int flags, size_t length)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0644);

	if (fd < 0 || write(fd, buffer, length) != (ssize_t)length || close(fd) < 0)
		err(1, "%s", name);
}

/* Written completely with another name, then renamed. */
static void replace(const char *name, size_t length)
{
	put("new", O_TRUNC, length);
	if (rename("new", name) < 0)
		err(1, "rename to %s", name);
}

static void change(char kind, unsigned number, uint64_t random)
{
	struct content_state *state = content_state(board, kind, number);
	uint32_t version = atomic_load(&state->most) + 1;
	size_t length = content_size(kind, number, version);
	char name[32];

	snprintf(name, sizeof(name), "%c/%u", kind, number);
	content_fill(content_key(kind, number), version, 0, buffer, length);
	atomic_store(&state->most, version);
	if (kind == CONTENT_WRITTEN)
		put(name, random % 8 ? 0 : O_TRUNC, length);
	else
		replace(name, length);
	atomic_store(&state->least, version);
	atomic_fetch_add(&board->changes, 1);
}

static void make_all(void)
{
	for (const char *kind = CONTENT_FILE_KINDS; *kind; kind++) {
		char folder[2] = {*kind, '\0'};

		if (mkdir(folder, 0755) < 0)
			err(1, "%s", folder);
		for (unsigned i = 0; i < CONTENT_DOCUMENTS; i++)
			change(*kind, i, 0);
	}
}

int main(int argc, char **argv)
{
	struct sigaction ending = {.sa_handler = on_end};
	uint64_t random;
	double rate;

	if (argc != 5 || (rate = strtod(argv[3], NULL)) <= 0)
		errx(2, "usage: files FOLDER BOARD PER-SECOND SEED");
	random = strtoull(argv[4], NULL, 10);
	sigaction(SIGTERM, &ending, NULL);
	board = map_board(argv[2]);
	if (chdir(argv[1]) < 0)
		err(1, "%s", argv[1]);
	make_all();
	puts("files: ready");
	fflush(stdout);
	while (!over) {
		struct timespec pause = {.tv_nsec = (long)(1e9 / rate)};
		uint64_t drawn = content_next(&random);

		change(drawn & 1 ? CONTENT_RENAMED : CONTENT_WRITTEN, content_draw(drawn >> 1),
		       drawn >> 40);
		nanosleep(&pause, NULL);
	}
	printf("files: changes=%llu\n", (unsigned long long)atomic_load(&board->changes));
	return 0;
}
