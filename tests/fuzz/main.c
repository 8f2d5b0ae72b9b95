/* SPDX-License-Identifier: MIT */
/*
 * main.c - runs a fuzz target without a fuzzer: on the given files and folders, on
 * standard input for "-", or on the target's corpus.  Thus each make check runs every
 * stored input, with any compiler and under any checker; and fuzzers that start a
 * program for an input can use it unchanged.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz.h"

#define INPUT_MAX ((size_t)1 << 20)

static unsigned inputs;

static void run_stream(FILE *stream)
{
	uint8_t *all = malloc(INPUT_MAX), *input;
	size_t length;

	MUST(all);
	length = fread(all, 1, INPUT_MAX, stream);
	/* In a block of exactly its size, so that checkers know its end. */
	input = (uint8_t *)exact_copy(all, length);
	free(all);
	(void)LLVMFuzzerTestOneInput(input, length);
	free(input);
	inputs++;
}

static void fail(const char *path)
{
	fprintf(stderr, "%s: %s\n", path, strerror(errno));
	exit(EXIT_FAILURE);
}

static void run_path(const char *path);

static int is_input(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static void run_folder(const char *path)
{
	struct dirent **entries;
	int count = scandir(path, &entries, is_input, alphasort);

	if (count < 0)
		fail(path);
	for (int i = 0; i < count; i++) {
		char name[4096];

		snprintf(name, sizeof(name), "%s/%s", path, entries[i]->d_name);
		run_path(name);
		free(entries[i]);
	}
	free(entries);
}

static void run_path(const char *path)
{
	struct stat found;
	FILE *stream;

	if (strcmp(path, "-") == 0) {
		run_stream(stdin);
		return;
	}
	if (stat(path, &found) < 0)
		fail(path);
	if (S_ISDIR(found.st_mode)) {
		run_folder(path);
		return;
	}
	/* The last line shows the input of a failure. */
	printf("%s\n", path);
	fflush(stdout);
	stream = fopen(path, "rb");
	if (!stream)
		fail(path);
	run_stream(stream);
	fclose(stream);
}

/* The corpus of fuzz-NAME is the folder NAME; differential targets use the same inputs. */
static void run_corpus(const char *program)
{
	const char *srcdir = getenv("srcdir"), *slash = strrchr(program, '/');
	const char *name = strstr(slash ? slash : program, "fuzz-");
	const char *differential = name ? strstr(name, "-differential") : NULL;
	char path[4096];

	if (!name) {
		fprintf(stderr, "%s: name inputs, or - for standard input\n", program);
		exit(EXIT_FAILURE);
	}
	name += strlen("fuzz-");
	snprintf(path, sizeof(path), "%s/tests/fuzz/corpus/%.*s", srcdir ? srcdir : ".",
		 (int)(differential ? (size_t)(differential - name) : strlen(name)), name);
	run_path(path);
}

int main(int argc, char **argv)
{
	signal(SIGPIPE, SIG_IGN);
	if (argc < 2)
		run_corpus(argv[0]);
	for (int i = 1; i < argc; i++)
		run_path(argv[i]);
	printf("%u inputs\n", inputs);
	return inputs ? EXIT_SUCCESS : EXIT_FAILURE;
}
