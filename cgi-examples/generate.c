/* SPDX-License-Identifier: MIT */
/*
 * generate.c - the "data from thin air" worker of paper 002, section 4.4:
 * /generate?size=N answers with N bytes, filled anew for each request.
 *
 *	sweet --worker /generate=./generate
 *	curl 'http://127.0.0.1:8080/generate?size=100000'
 *
 * The body is written once, into this process's segment of the server's
 * cache; what goes back to the server is the status and the cache id.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nabc-worker.h>

#define LINE "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ-\n"

static char pattern[65536];

/* The value of size= in a query; -1: not there, or not a number. */
static long long wanted_size(const char *query)
{
	while (query && *query) {
		const char *next = strchr(query, '&');

		if (strncmp(query, "size=", 5) == 0) {
			char *end;
			long long size;

			if (query[5] < '0' || query[5] > '9')
				return -1;
			errno = 0;
			size = strtoll(query + 5, &end, 10);
			return errno || (*end && *end != '&') ? -1 : size;
		}
		query = next ? next + 1 : NULL;
	}
	return -1;
}

/* A unit of size bytes; its id, or 0 with errno. */
static size_t generate(size_t size)
{
	NC_handle unit;
	size_t id = 0;
	int error;

	if (NC_alloc(&unit, size, 0) < 0)
		return 0;
	for (size_t at = 0; at < size; at += sizeof(pattern))
		NC_write(&unit, at, pattern,
			 size - at < sizeof(pattern) ? size - at : sizeof(pattern));
	if (NC_insert(&unit) == 0)
		id = NC_cache_id(&unit);
	error = errno;
	NC_free(&unit);
	errno = error;
	return id;
}

static struct NC_response answer(const struct NC_request *request)
{
	static const char headers[] = "Content-Type: text/plain\r\nCache-Control: no-store\r\n";
	long long size = wanted_size(NC_request_variable(request, "QUERY_STRING"));
	struct NC_response response = {
		.status = 200, .headers = headers, .headers_length = sizeof(headers) - 1};

	if (size < 0) {
		response.status = 400;
	} else if (size > 0) {
		response.body.id = generate((size_t)size);
		response.body.length = (size_t)size;
		if (response.body.id == 0)
			response.status = errno == EFBIG || errno == EINVAL ? 400 : 503;
	}
	/* An error leaves the page to the server. */
	if (response.status != 200)
		response = (struct NC_response){.status = response.status};
	return response;
}

int main(void)
{
	NC_worker *worker = NC_worker_open();
	struct NC_request request;
	int got;

	if (!worker) {
		perror("generate: cannot join the server; run me as a worker of sweet");
		return EXIT_FAILURE;
	}
	for (size_t at = 0; at < sizeof(pattern); at += sizeof(LINE) - 1)
		memcpy(pattern + at, LINE, sizeof(LINE) - 1);
	while ((got = NC_worker_accept(worker, &request)) > 0) {
		struct NC_response response = answer(&request);

		if (NC_worker_respond(worker, &request, &response) < 0) {
			perror("generate: cannot respond");
			break;
		}
	}
	NC_worker_close(worker);
	return got < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
