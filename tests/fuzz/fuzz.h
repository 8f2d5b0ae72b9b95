/* SPDX-License-Identifier: MIT */
/*
 * fuzz.h - shared by the fuzz targets: their entry, a way to fail, and an input that
 * is consumed from its front.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A target: checks one input.  Returns 0; -1: useless, not to be kept. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Must hold for any input; it exists in every build. */
#define MUST(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);  \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

struct input {
	const uint8_t *at;
	size_t left;
};

/* Returns the next bytes as a number, the first one lowest; missing bytes are 0. */
static inline uint64_t input_number(struct input *input, unsigned bytes)
{
	uint64_t number = 0;

	for (unsigned i = 0; i < bytes && input->left; i++, input->left--)
		number |= (uint64_t)*input->at++ << 8 * i;
	return number;
}

/* Returns the available next bytes, up to length. */
static inline const uint8_t *input_bytes(struct input *input, size_t *length)
{
	const uint8_t *bytes = input->at;

	if (*length > input->left)
		*length = input->left;
	input->at += *length;
	input->left -= *length;
	return bytes;
}

/* Returns a copy of exactly that size, so that a read beyond is detected; the caller frees it. */
static inline char *exact_copy(const void *bytes, size_t length)
{
	char *copy = malloc(length ? length : 1);

	MUST(copy);
	if (length)
		memcpy(copy, bytes, length);
	return copy;
}

#endif
