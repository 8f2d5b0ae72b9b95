/* SPDX-License-Identifier: MIT */
/*
 * cached-report.c - a worker whose page is made once and sent until its data
 * changes: lines, words and bytes of a file.
 *
 * 	cc -o cached-report cached-report.c $(pkg-config --cflags --libs nabc)
 * 	sweet --worker /report='./cached-report DATA'
 * 	curl http://127.0.0.1:8080/report
 *
 * Each request costs one stat() and a message of a few bytes: the unit is kept
 * (NC_RESPONSE_KEEP), and its id is sent to the server every time.
 */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nabc-worker.h>
#include <nabc.h>

/* The page made from one state of the file; id 0: none. */
struct report {
	struct NC_range page;
	struct stat data;
};

/*
 * A response in flight to the server may still name an earlier page.  The server
 * has at most this many requests of a thread in flight here (in-flight=), and each
 * page was made for one: no response names older pages.
 */
#define EARLIER 256

static struct report current;
static size_t earlier[EARLIER];	     /* ids; a ring, by number */
static unsigned oldest, next_number; /* numbers of the first and of the next one */
static unsigned made;

static bool same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Destroys the oldest page; false: there is none but the current one. */
static bool forget_oldest(void)
{
	if (oldest == next_number)
		return false;
	NC_destroy(NULL, earlier[oldest++ % EARLIER]);
	return true;
}

/* Inserts the page into the cache; returns 0, or -1 with errno. */
static int publish(struct report *report, size_t lines, size_t words, size_t bytes)
{
	NC_handle unit;
	int error, length;

	while (NC_alloc(&unit, 256, 0) < 0)
		if (errno != ENOMEM || !forget_oldest())
			return -1;
	length = NC_printf(&unit, 0, "Report %u of process %d: %zu lines, %zu words, %zu bytes.\n",
			   made + 1, (int)getpid(), lines, words, bytes);
	if (length > 0 && NC_insert(&unit) == 0) {
		report->page =
			(struct NC_range){.id = NC_cache_id(&unit), .length = (size_t)length};
		made++;
	}
	error = errno;
	NC_free(&unit);
	errno = error;
	return report->page.id ? 0 : -1;
}

/* Makes the report of an open file; returns 0, or -1 with errno. */
static int count(FILE *file, struct report *report)
{
	size_t lines = 0, words = 0, bytes = 0;
	bool inside = false;
	int byte;

	/* Before reading: later changes of the file are then detected. */
	if (fstat(fileno(file), &report->data) < 0)
		return -1;
	while ((byte = getc(file)) != EOF) {
		bool blank = isspace(byte);

		bytes++;
		lines += byte == '\n';
		words += inside && blank;
		inside = !blank;
	}
	words += inside;
	return ferror(file) ? -1 : publish(report, lines, words, bytes);
}

static int make(const char *path, struct report *report)
{
	FILE *file = fopen(path, "re");
	int error, result;

	if (!file)
		return -1;
	result = count(file, report);
	error = errno;
	fclose(file);
	errno = error;
	return result;
}

static void replace(const struct report *next)
{
	if (next_number - oldest == EARLIER)
		forget_oldest();
	if (current.page.id)
		earlier[next_number++ % EARLIER] = current.page.id;
	current = *next;
}

static struct NC_response answer(const char *path)
{
	static const char type[] = "Content-Type: text/plain\r\nCache-Control: no-cache\r\n";
	struct stat data;

	/* Only regular files can be read without blocking. */
	if (stat(path, &data) < 0 || !S_ISREG(data.st_mode))
		return (struct NC_response)NC_RESPONSE_INIT(.status = 404);
	if (!current.page.id || !same(&data, &current.data)) {
		struct report next = {.page.id = 0};

		if (make(path, &next) < 0) {
			fprintf(stderr, "cached-report: %s: %s\n", path, strerror(errno));
			return (struct NC_response)NC_RESPONSE_INIT(.status = 503);
		}
		replace(&next);
	}
	return (struct NC_response)NC_RESPONSE_INIT(.status = 200, .flags = NC_RESPONSE_KEEP,
						    .headers = type,
						    .headers_length = sizeof(type) - 1,
						    .body = current.page);
}

int main(int argc, char **argv)
{
	NC_worker *worker;
	struct NC_request request;
	int got;

	if (argc != 2) {
		fputs("usage: cached-report FILE, as a worker of sweet\n", stderr);
		return 2;
	}
	worker = NC_worker_open(NULL);
	if (!worker) {
		perror("cached-report: cannot attach to the server; run it as a worker of sweet");
		return EXIT_FAILURE;
	}
	while ((got = NC_worker_accept(worker, &request, sizeof(request), 0)) > 0) {
		struct NC_response response = answer(argv[1]);

		if (NC_worker_respond(worker, &request, &response) < 0) {
			perror("cached-report: cannot respond");
			break;
		}
	}
	NC_worker_close(worker);
	return got < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
