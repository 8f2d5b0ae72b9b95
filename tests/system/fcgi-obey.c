/* SPDX-License-Identifier: MIT */
/*
 * fcgi-obey.c - a program of libfcgi that does what QUERY_STRING says, "NAME" or "NAME=NUMBER":
 * test_fcgi_preload.py compiles it, and compares what it answers as a worker with what it answers by
 * FastCGI.
 */
#include <errno.h>
#include <fcgiapp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TYPE "Content-Type: text/plain\r\n"
#define LETTERS "abcdefghijklmnopqrstuvwxyz\n"

static FCGX_Request request;

static void fill(char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		text[i] = LETTERS[i % (sizeof(LETTERS) - 1)];
}

/* The whole page by one call. */
static void once(long length)
{
	char *text = malloc((size_t)length + 1);

	fill(text, (size_t)length);
	FCGX_FPrintF(request.out, TYPE "Content-Length: %ld\r\n\r\n", length);
	FCGX_PutStr(text, (int)length, request.out);
	free(text);
}

static void bytes(long length)
{
	const char *head = TYPE "\n";

	while (*head)
		FCGX_PutChar(*head++, request.out);
	for (long i = 0; i < length; i++)
		FCGX_PutChar(LETTERS[(size_t)i % (sizeof(LETTERS) - 1)], request.out);
}

static void lines(long count)
{
	FCGX_PutS("Status: 201 Made\r\nX-One: 1\r\nx-two:2\r\n\r\n", request.out);
	FCGX_FFlush(request.out);
	for (long i = 0; i < count; i++) {
		FCGX_FPrintF(request.out, "line %ld of %s\n", i, "many");
		FCGX_FFlush(request.out);
	}
}

/* In memory that the stream shows, as programs do that know the structure. */
static void in_place(long length)
{
	FCGX_PutS(TYPE "\r\n", request.out);
	while (length) {
		FCGX_Stream *out = request.out;
		long room;

		if (out->wrNext == out->stop)
			out->emptyBuffProc(out, 0);
		room = out->stop - out->wrNext;
		room = room < length ? room : length;
		if (out->isClosed || !room)
			return;
		memset(out->wrNext, 'p', (size_t)room);
		out->wrNext += room;
		length -= room;
	}
}

static void text(long unused)
{
	(void)unused;
	FCGX_PutS("this is no head", request.out);
}

static void none(long unused)
{
	(void)unused;
}

static void head(long status)
{
	FCGX_FPrintF(request.out, "Status: %ld\r\nX-Head: alone\r\n\r\n", status);
}

static void redirect(long unused)
{
	(void)unused;
	FCGX_PutS("Location: http://example.org/\r\n\r\nmoved", request.out);
}

/* Announces more, or less, than it sends. */
static void announce(long length)
{
	FCGX_FPrintF(request.out, TYPE "Content-Length: %ld\r\n\r\n0123456789", length);
}

static void echo(long unused)
{
	char buffer[1000];
	int got;

	(void)unused;
	FCGX_PutS(TYPE "\r\n", request.out);
	while ((got = FCGX_GetStr(buffer, sizeof(buffer), request.in)) > 0)
		FCGX_PutStr(buffer, got, request.out);
}

static void read_lines(long unused)
{
	char line[100];
	unsigned count = 0;

	(void)unused;
	FCGX_PutS(TYPE "\r\n", request.out);
	for (; FCGX_GetLine(line, sizeof(line), request.in); count++) {
		int c = FCGX_GetChar(request.in);

		if (c != EOF && FCGX_UnGetChar('#', request.in) == EOF)
			FCGX_PutS("?", request.out);
		FCGX_PutS(line, request.out);
	}
	FCGX_FPrintF(request.out, "%u lines\n", count);
}

/* The rest of the body is not read. */
static void part(long length)
{
	FCGX_PutS(TYPE "\r\n", request.out);
	while (length--)
		FCGX_PutChar(FCGX_GetChar(request.in), request.out);
}

static void variables(long unused)
{
	(void)unused;
	FCGX_PutS(TYPE "\r\n", request.out);
	for (char **at = request.envp; *at; at++)
		FCGX_FPrintF(request.out, "%s\n", *at);
}

static void own_number(long unused)
{
	(void)unused;
	FCGX_FPrintF(request.out, TYPE "\r\n%d", (int)getpid());
}

static void complain(long number)
{
	FCGX_FPrintF(request.err, "complaint %ld\n", number);
	FCGX_PutS(TYPE "\r\ncomplained", request.out);
}

/* In the middle of a response that has begun, or of one that has not. */
static void leave(long length)
{
	FCGX_PutS(TYPE "\r\n", request.out);
	in_place(length);
	exit(3);
}

/* A child of the program has all calls, and answers nothing. */
static void fork_one(long unused)
{
	int status = -1;
	pid_t child;

	(void)unused;
	FCGX_PutS(TYPE "\r\n", request.out);
	child = fork();
	if (child == 0) {
		FCGX_Request other;
		bool refused = FCGX_PutS("from the child", request.out) == EOF &&
			       FCGX_FFlush(request.out) == EOF && FCGX_GetChar(request.in) == EOF;

		FCGX_Finish_r(&request);
		FCGX_InitRequest(&other, 0, 0);
		refused &= FCGX_Accept_r(&other) == -EACCES;
		_exit(refused ? 0 : 1);
	}
	waitpid(child, &status, 0);
	FCGX_FPrintF(request.out, "%d from the parent", status);
}

/* Until the client has left. */
static void endless(long unused)
{
	(void)unused;
	FCGX_PutS(TYPE "\r\n", request.out);
	while (FCGX_PutS(LETTERS, request.out) != EOF && FCGX_FFlush(request.out) != EOF)
		;
	fprintf(stderr, "the client has left\n");
}

static const struct {
	const char *name;
	void (*run)(long number);
} orders[] = {
	{"once", once},
	{"bytes", bytes},
	{"lines", lines},
	{"in-place", in_place},
	{"text", text},
	{"none", none},
	{"head", head},
	{"redirect", redirect},
	{"announce", announce},
	{"echo", echo},
	{"read-lines", read_lines},
	{"part", part},
	{"variables", variables},
	{"pid", own_number},
	{"complain", complain},
	{"leave", leave},
	{"fork", fork_one},
	{"endless", endless},
};

static void obey(const char *query)
{
	size_t length = strcspn(query, "=");

	for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++)
		if (strlen(orders[i].name) == length && strncmp(query, orders[i].name, length) == 0)
			orders[i].run(query[length] ? atol(query + length + 1) : 0);
}

int main(void)
{
	if (FCGX_IsCGI() || FCGX_Init() || FCGX_InitRequest(&request, 0, 0))
		return 1;
	while (FCGX_Accept_r(&request) >= 0) {
		const char *query = FCGX_GetParam("QUERY_STRING", request.envp);

		obey(query ? query : "");
		FCGX_Finish_r(&request);
	}
	return 0;
}
