/* SPDX-License-Identifier: MIT */
/*
 * fuzz.h - what the fuzz targets share: their entry, a way to fail, and an
 * input that is taken apart from its front.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a target is: looks at one input.  0; -1: of no use, not to be kept. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What must hold whatever the input is; there is no build without it. */
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

/* The next bytes as a number, the first one lowest; what is not there is 0. */
static inline uint64_t input_number(struct input *input, unsigned bytes)
{
	uint64_t number = 0;

	for (unsigned i = 0; i < bytes && input->left; i++, input->left--)
		number |= (uint64_t)*input->at++ << 8 * i;
	return number;
}

/* As many of the next bytes as there are, up to length. */
static inline const uint8_t *input_bytes(struct input *input, size_t *length)
{
	const uint8_t *bytes = input->at;

	if (*length > input->left)
		*length = input->left;
	input->at += *length;
	input->left -= *length;
	return bytes;
}

/* A copy of just that size, so that a byte read behind it is seen; to be freed. */
static inline char *exact_copy(const void *bytes, size_t length)
{
	char *copy = malloc(length ? length : 1);

	MUST(copy);
	if (length)
		memcpy(copy, bytes, length);
	return copy;
}

#endif
