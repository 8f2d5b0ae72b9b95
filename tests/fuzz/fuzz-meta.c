/* SPDX-License-Identifier: MIT */
/*
 * fuzz-meta.c - the variables of a request that programs get (sweet/program/meta.c): for
 * any input of the client, each has a name of its own, which no other field can
 * produce, and fits or is refused.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/slice.h"
#include "program/meta.h"

#include "fuzz.h"
#include "head.h"

#define ROOM 32768

static const struct meta_context context = {
	.script_name = "/cgi",
	.path_info = "/rest",
	.remote_addr = "192.0.2.1",
	.remote_port = 40000,
	.remote_user = "user",
	.server_addr = "2001:db8::1",
	.server_port = 80,
	.software = "SWEET",
	.document_root = "/srv",
	.script_filename = "/srv/cgi",
	.request_scheme = "http",
	.local_addr = "192.0.2.2",
	.redirect_status = 200,
	.server_pid = 1,
};

static bool is_same_name(const char *a, const char *b)
{
	size_t length = (size_t)(strchr(a, '=') - a);

	return strncmp(a, b, length + 1) == 0;
}

static void check_name(const char *at)
{
	size_t length = strcspn(at, "=");

	MUST(length > 0 && at[length] == '=');
	for (size_t i = 0; i < length; i++)
		MUST((at[i] >= 'A' && at[i] <= 'Z') || (at[i] >= '0' && at[i] <= '9') ||
		     at[i] == '_');
	/* A field of the client is never taken for another variable. */
	MUST(strncmp(at, "HTTP_PROXY=", 11) != 0);
	MUST(strncmp(at, "HTTP_AUTHORIZATION=", 19) != 0);
}

static void check_block(const char *block, size_t length)
{
	MUST(length > 0 && block[length - 1] == '\0');
	for (const char *at = block; at < block + length; at += strlen(at) + 1) {
		check_name(at);
		for (const char *other = block; other < at; other += strlen(other) + 1)
			MUST(!is_same_name(at, other));
	}
	MUST(strcmp(meta_find((struct slice){block, length}, "GATEWAY_INTERFACE").at, "CGI/1.1") ==
	     0);
	MUST(strcmp(meta_find((struct slice){block, length}, "REMOTE_ADDR").at, "192.0.2.1") == 0);
	MUST(strcmp(meta_find((struct slice){block, length}, "REMOTE_USER").at, "user") == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char block[ROOM];
	struct head head;
	long length;
	char *tight;

	if (size > ROOM / 4 || !head_open(&head, "GET ", data, size, "\r\n\r\n"))
		return -1;
	length = meta_write(&head.request, &context, block, sizeof(block));
	MUST(length > 0 && length <= ROOM);
	check_block(block, (size_t)length);
	/* In memory of exactly that size the result is the same, in less it is refused. */
	tight = malloc((size_t)length);
	MUST(tight && meta_write(&head.request, &context, tight, (size_t)length) == length);
	MUST(memcmp(tight, block, (size_t)length) == 0);
	for (long less = length - 1; less >= 0; less -= 1 + less / 8)
		MUST(meta_write(&head.request, &context, tight, (size_t)less) == -1);
	free(tight);
	head_close(&head);
	return 0;
}
