/* SPDX-License-Identifier: MIT */
/*
 * log-output.h - where lines of logs are written, without waiting for those who read them.
 *
 * The reader of a pipe, a FIFO, a terminal or a socket may stop.  Then a write fails with -EAGAIN,
 * and the caller keeps its lines or loses them; nobody waits.  A file is written as usual.
 */
#ifndef SWEET_LOG_OUTPUT_H
#define SWEET_LOG_OUTPUT_H

#include <stddef.h>
#include <stdint.h>

enum log_way {
	LOG_WAY_FILE,
	LOG_WAY_NONBLOCKING, /* the descriptor is */
	LOG_WAY_SOCKET,
	LOG_WAY_POLLED /* others may use the same open file: its flags must not be changed */
};

struct log_output {
	int fd; /* -1: none */
	enum log_way way;
};

/* Opens a file or FIFO to append to.  Returns the descriptor, or what user_open() returns. */
int log_output_open(const char *path);

/*
 * Returns a descriptor of standard output or error, which is not the caller's; after the first call,
 * it needs no new descriptor.
 */
int log_output_standard(int fd);

struct log_output log_output_of(int fd);

/*
 * Writes lines.  Returns 0, or -errno (-EAGAIN: it cannot be written now) and how much was written:
 * if possible, whole lines.
 */
int log_output_write(const struct log_output *output, const char *data, size_t length,
		     size_t *done);

/* Counts lines of any log that were lost; any thread. */
void log_output_lose(uint64_t lines);
uint64_t log_output_lost(void);

#endif
