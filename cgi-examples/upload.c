/* SPDX-License-Identifier: MIT */
/*
 * upload.c - a worker that responds with length and checksum of what a client
 * posts.
 *
 * 	cc -o upload upload.c $(pkg-config --cflags --libs nabc)
 * 	sweet --worker /upload=./upload
 * 	curl --data-binary @FILE http://127.0.0.1:8080/upload
 *
 * The body comes as ranges of units that the server grants to this process while it
 * receives them.  The checksum is computed from the shared memory: no byte is
 * copied or sent from the server to the worker.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nabc-worker.h>
#include <nabc.h>

/* Inserts a unit with the response's text; returns its id, or 0 with errno. */
static size_t describe(size_t length, uint32_t sum, size_t *text_length)
{
	NC_handle text;
	size_t id = 0;
	int error, written;

	if (NC_alloc(&text, 128, 0) < 0)
		return 0;
	written = NC_printf(&text, 0, "%zu bytes, Internet checksum 0x%04x\n", length, sum);
	if (written > 0 && NC_insert(&text) == 0) {
		*text_length = (size_t)written;
		id = NC_cache_id(&text);
	}
	error = errno;
	NC_free(&text);
	errno = error;
	return id;
}

/*
 * Adds the checksum of the bytes after the first so_far ones.  Checksums are of
 * 16-bit words; after an odd number of bytes, each following byte is in the other
 * half of its word.
 */
static uint32_t add_sum(uint32_t sum, size_t so_far, uint32_t next)
{
	if (so_far % 2)
		next = (next & 0xff) << 8 | next >> 8;
	sum += next;
	return (sum & 0xffff) + (sum >> 16);
}

/* Computes length and checksum of the body, piece by piece; returns 0, or -1 with errno. */
static int sum_up(NC_worker *worker, struct NC_request *request, size_t *length, uint32_t *sum)
{
	struct NC_range piece;
	uint32_t next;
	int got;

	*length = *sum = 0;
	while ((got = NC_worker_body(worker, request, &piece, 0)) > 0) {
		if (NC_checksum(NULL, piece.id, &next, NC_CHECKSUM_INET, piece.length,
				piece.offset) < 0)
			return -1;
		*sum = add_sum(*sum, *length, next);
		*length += piece.length;
	}
	return got;
}

/* Whether the method has a body. */
static bool brings(const struct NC_request *request)
{
	const char *method = NC_request_variable(request, "REQUEST_METHOD");

	return method && (strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0);
}

static struct NC_response answer(NC_worker *worker, struct NC_request *request)
{
	static const char type[] = "Content-Type: text/plain\r\nCache-Control: no-store\r\n";
	static const char allow[] = "Allow: POST, PUT\r\n";
	struct NC_response response = NC_RESPONSE_INIT(.status = 503);
	size_t length;
	uint32_t sum;

	if (!brings(request))
		return (struct NC_response)NC_RESPONSE_INIT(.status = 405, .headers = allow,
							    .headers_length = sizeof(allow) - 1);
	if (sum_up(worker, request, &length, &sum) < 0) {
		/* A client that is gone is not an error of this worker. */
		if (errno != ECANCELED)
			perror("upload: cannot read the body");
		return response;
	}
	response.body.id = describe(length, sum, &response.body.length);
	if (response.body.id) {
		response.status = 200;
		response.headers = type;
		response.headers_length = sizeof(type) - 1;
	}
	return response;
}

int main(void)
{
	NC_worker *worker = NC_worker_open(NULL);
	struct NC_request request;
	int got;

	if (!worker) {
		perror("upload: cannot attach to the server; run it as a worker of sweet");
		return EXIT_FAILURE;
	}
	while ((got = NC_worker_accept(worker, &request, sizeof(request), 0)) > 0) {
		struct NC_response response = answer(worker, &request);

		if (NC_worker_respond(worker, &request, &response) < 0) {
			perror("upload: cannot respond");
			break;
		}
	}
	NC_worker_close(worker);
	return got < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
