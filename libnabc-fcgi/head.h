/* SPDX-License-Identifier: MIT */
/*
 * head.h - the head that a program prints before its body: header lines, among them "Status:",
 * and an empty line (RFC 3875, section 6).
 */
#ifndef NABC_FCGI_HEAD_H
#define NABC_FCGI_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fcgi_head {
	int status;	   /* 200 to 599 */
	bool has_length;   /* Content-Length */
	uint64_t length;   /* of the body, as announced */
	char *lines;	   /* "Name: value\r\n", without Status; freed by the caller */
	size_t lines_size; /* bytes */
};

/*
 * Returns the bytes of a head at the beginning of data, its empty line included, or 0 if its end
 * has not come.  An earlier call has searched the first seen bytes.
 */
size_t fcgi_head_end(const unsigned char *data, size_t length, size_t seen);

/* Reads a complete head.  Returns NULL, or what is wrong with it; then there are no lines. */
const char *fcgi_head_parse(struct fcgi_head *head, const unsigned char *data, size_t length);

#endif
