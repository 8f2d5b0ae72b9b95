/* SPDX-License-Identifier: MIT */
/* worker.c - makes the pages /squares/N of server.c, and crashes on request. */
#include <err.h>
#include <stdlib.h>
#include <nabc-worker.h>
#include <nabc.h>

enum { LINES_MAX = 10000, LINE = 32 };

static const char type[] = "Content-Type: text/plain\r\n";

static int make_page(int lines, struct NC_range *body)
{
	NC_handle unit;

	if (NC_alloc(&unit, (size_t)lines * LINE, 0) < 0)
		return 503; /* the server has not yet sent the previous one */
	for (int i = 1; i <= lines; i++) {
		int n = NC_printf(&unit, body->length, "%d of %d: %d\n", i, lines, i * i);

		if (n < 0) {
			NC_free(&unit);
			return 500; /* an id of 0: no body */
		}
		body->length += (size_t)n;
	}
	if (NC_insert(&unit) == 0)
		body->id = NC_cache_id(&unit);
	NC_free(&unit);
	return body->id ? 200 : 500;
}

int main(void)
{
	NC_worker *worker = NC_worker_open(NULL);
	struct NC_request request;

	if (!worker)
		err(1, "NC_worker_open");
	while (NC_worker_accept(worker, &request, sizeof(request), 0) == 1) {
		struct NC_response response = NC_RESPONSE_INIT(.status = 404);
		const char *variable = NC_request_variable(&request, "LINES");
		int lines = variable ? atoi(variable) : 0;

		if (lines < 0)
			abort(); /* a crash, which the server must survive */
		if (lines > 0 && lines <= LINES_MAX)
			response.status = make_page(lines, &response.body);
		if (response.body.id) {
			response.headers = type;
			response.headers_length = sizeof(type) - 1;
		}
		if (NC_worker_respond(worker, &request, &response) < 0)
			err(1, "NC_worker_respond");
	}
	NC_worker_close(worker);
	return 0;
}
