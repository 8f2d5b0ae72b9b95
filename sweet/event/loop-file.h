/* SPDX-License-Identifier: MIT */
/*
 * loop-file.h - what a loop sends of a file.
 */
#ifndef SWEET_LOOP_FILE_H
#define SWEET_LOOP_FILE_H

#include <stddef.h>
#include <stdint.h>

/* A range of a file; length 0: none. */
struct loop_file {
	int fd;
	uint64_t offset; /* bytes */
	size_t length;	 /* bytes */
};

#endif
