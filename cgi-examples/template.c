/* SPDX-License-Identifier: MIT */
/*
 * template.c - a worker whose pages share a head and a foot: these are units that
 * are made once and kept; only the middle is made for each request.
 *
 * 	cc -o template template.c $(pkg-config --cflags --libs nabc)
 * 	sweet --worker /template=./template
 * 	curl 'http://127.0.0.1:8080/template/some/path?a=b'
 *
 * The response is a list of three ranges, which the server sends one after the
 * other.  No process assembles the page in memory.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nabc-worker.h>
#include <nabc.h>

#define MIDDLE_MAX 4096 /* bytes */
#define TEXT_MAX 1500	/* bytes of a client's text, escaped */

static const char head_text[] =
	"<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
	"<title>A page in three parts</title>\n"
	"<style>body { font: 1.2em/1.5 sans-serif; max-width: 40em; margin: 2em auto }</style>\n"
	"</head><body>\n<p>This part is the same in all pages; so is the last one.</p>\n";
static const char foot_text[] = "<p>Made by template.c.</p>\n</body></html>\n";

/* Inserts a unit with the text; returns 0, or -1 with errno. */
static int publish(const char *text, size_t length, struct NC_range *range)
{
	NC_handle unit;
	int error, result = -1;

	if (NC_alloc(&unit, length, 0) < 0)
		return -1;
	if (NC_write(&unit, text, length, 0) >= 0 && NC_insert(&unit) == 0) {
		*range = (struct NC_range){.id = NC_cache_id(&unit), .length = length};
		result = 0;
	}
	error = errno;
	NC_free(&unit);
	errno = error;
	return result;
}

/* Returns a client's text, escaped so that a browser only displays it. */
static const char *escaped(const char *text, char buffer[TEXT_MAX])
{
	size_t used = 0;

	for (; text && *text && used + sizeof("&quot;") <= TEXT_MAX; text++) {
		static const char special[] = "<>&\"";
		static const char *const names[] = {"&lt;", "&gt;", "&amp;", "&quot;"};
		const char *found = strchr(special, *text);

		if (found)
			used += (size_t)sprintf(buffer + used, "%s", names[found - special]);
		else
			buffer[used++] = *text;
	}
	buffer[used] = '\0';
	return buffer;
}

/* Makes the page's own part; returns 0, or -1 with errno. */
static int make_middle(const struct NC_request *request, struct NC_range *range)
{
	static unsigned long number;
	char text[MIDDLE_MAX], path[TEXT_MAX], query[TEXT_MAX];
	int length =
		snprintf(text, sizeof(text),
			 "<p>Page %lu was made for the path \"%s\" and the query \"%s\".</p>\n",
			 ++number, escaped(NC_request_variable(request, "PATH_INFO"), path),
			 escaped(NC_request_variable(request, "QUERY_STRING"), query));

	return publish(text, (size_t)length, range);
}

static int answer(NC_worker *worker, const struct NC_request *request, const struct NC_range *head,
		  const struct NC_range *foot)
{
	static const char type[] =
		"Content-Type: text/html; charset=utf-8\r\nCache-Control: no-store\r\n";
	struct NC_range parts[3] = {*head, {.id = 0}, *foot};
	struct NC_response response =
		NC_RESPONSE_INIT(.status = 200,
				 /* All units are kept except the middle one. */
				 .flags = NC_RESPONSE_KEEP | NC_RESPONSE_DROP(1), .headers = type,
				 .headers_length = sizeof(type) - 1, .ranges = parts,
				 .range_count = 3);

	if (make_middle(request, &parts[1]) < 0)
		response = (struct NC_response)NC_RESPONSE_INIT(.status = 503);
	return NC_worker_respond(worker, request, &response);
}

int main(void)
{
	NC_worker *worker = NC_worker_open(NULL);
	struct NC_range head, foot;
	struct NC_request request;
	int got;

	if (!worker) {
		perror("template: cannot attach to the server; run it as a worker of sweet");
		return EXIT_FAILURE;
	}
	if (publish(head_text, sizeof(head_text) - 1, &head) < 0 ||
	    publish(foot_text, sizeof(foot_text) - 1, &foot) < 0) {
		perror("template: cannot make head and foot");
		return EXIT_FAILURE;
	}
	while ((got = NC_worker_accept(worker, &request, sizeof(request), 0)) > 0) {
		if (answer(worker, &request, &head, &foot) < 0) {
			perror("template: cannot respond");
			break;
		}
	}
	NC_worker_close(worker);
	return got < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
