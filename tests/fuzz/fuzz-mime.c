/* SPDX-License-Identifier: MIT */
/*
 * fuzz-mime.c - a file of content types (sweet/http/mime.c): for any file, a type can
 * be sent in a header line.  The input is the file, a zero byte, and the name of a
 * requested file.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/syntax.h"
#include "http/mime.h"

#include "fuzz.h"

static void check_type(const char *type)
{
	const char *at = type;

	while (syntax_is_token(*at))
		at++;
	MUST(at > type && *at == '/');
	type = ++at;
	while (syntax_is_token(*at))
		at++;
	MUST(at > type && (!*at || strcmp(at, "; charset=utf-8") == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *zero = size ? memchr(data, '\0', size) : NULL;
	size_t length = zero ? (size_t)(zero - data) : size;
	char path[64], *name;
	int fd = memfd_create("types", MFD_CLOEXEC);
	struct mime *mime, *again;

	MUST(fd >= 0 && write(fd, data, length) == (ssize_t)length);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	mime = mime_open(&(struct mime_options){.path = path, .charset = "utf-8"});
	again = mime_open(&(struct mime_options){.path = path, .charset = "utf-8"});
	MUST(mime_equal(mime, again));
	name = strndup(zero ? (const char *)zero + 1 : "", size - length - !!zero);
	MUST(name);
	check_type(mime_type(mime, name));
	check_type(mime_type(mime, "a.html"));
	free(name);
	mime_close(mime);
	mime_close(again);
	close(fd);
	return 0;
}
