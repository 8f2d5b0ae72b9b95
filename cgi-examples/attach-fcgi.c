/* SPDX-License-Identifier: MIT */
/*
 * attach-fcgi.c - a FastCGI application whose pages do not pass through its socket:
 * it attaches to the server's cache, inserts a page once a second, and names it in
 * the header line X-NABC-Cache-Id of each response.
 *
 * 	cc -o attach-fcgi attach-fcgi.c $(pkg-config --cflags --libs nabc) -lfcgi
 *
 * Descriptor 0 is its listening socket, and NABC_CACHE the socket of the cache.
 * The server may restart meanwhile: with the next page, the application attaches to
 * the new server's cache; until that exists, pages are sent through the FastCGI
 * socket.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <fcgiapp.h>
#include <nabc.h>

#define PAGE_MAX 200	 /* bytes */
#define STALE_AFTER 1000 /* milliseconds */
/*
 * Leaves enough time for a response that names the page to be sent.  Without a
 * lifetime, the page would remain until its maker, the application, exits.
 */
#define LIFETIME (STALE_AFTER + 10000)

struct page {
	char text[PAGE_MAX];
	size_t length;
	size_t id;	   /* 0: not in a cache */
	unsigned number;   /* counts the pages of this process */
	long long made_ms; /* monotonic */
};

static long long now_ms(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000LL + time.tv_nsec / 1000000;
}

static NC_cache *join(void)
{
	static const struct NC_attach_options light =
		NC_ATTACH_OPTIONS_INIT(.flags = NC_ATTACH_LIGHT);
	const char *path = getenv("NABC_CACHE");

	return path ? NC_cache_attach(path, &light) : NULL;
}

/* Returns the id of a new unit, or 0 with errno. */
static size_t put(NC_cache *cache, const struct page *page)
{
	NC_handle unit;
	size_t id = 0;
	int error;

	if (NC_unit_alloc(cache, &unit, page->length, 0, NC_KIND_SEALED, 0) < 0)
		return 0;
	if (NC_write(&unit, page->text, page->length, 0) >= 0 && NC_insert(&unit) == 0)
		id = NC_cache_id(&unit);
	error = errno;
	NC_free(&unit);
	if (id && NC_set_lifetime(cache, id, LIFETIME) < 0) {
		error = errno;
		NC_destroy(cache, id);
		id = 0;
	}
	errno = error;
	return id;
}

/* As put(), but first attaches again if the owner is gone. */
static size_t put_anew(NC_cache **cache, const struct page *page)
{
	size_t id = *cache ? put(*cache, page) : 0;

	if (*cache && !id && errno == EPIPE) {
		NC_cache_close(*cache);
		*cache = NULL;
	}
	if (!*cache) {
		*cache = join();
		id = *cache ? put(*cache, page) : 0;
	}
	return id;
}

static void make(NC_cache **cache, struct page *page)
{
	page->made_ms = now_ms();
	page->length =
		(size_t)snprintf(page->text, sizeof(page->text), "This is page %u of process %d.\n",
				 ++page->number, (int)getpid());
	page->id = put_anew(cache, page);
}

static void answer(const struct page *page, FCGX_Stream *out)
{
	FCGX_PutS("Content-Type: text/plain\r\nCache-Control: no-store\r\n", out);
	if (page->id) {
		/* libfcgi's own printf, which does not support %zu. */
		FCGX_FPrintF(out, "X-NABC-Cache-Id: %lu\r\n\r\n", (unsigned long)page->id);
		return;
	}
	FCGX_PutS("\r\n", out);
	FCGX_PutStr(page->text, (int)page->length, out);
}

int main(void)
{
	struct page page = {.number = 0};
	NC_cache *cache = NULL;
	FCGX_Request request;

	if (FCGX_Init() != 0 || FCGX_IsCGI() || FCGX_InitRequest(&request, 0, 0) != 0) {
		fputs("attach-fcgi: descriptor 0 is not a listening socket\n", stderr);
		return EXIT_FAILURE;
	}
	while (FCGX_Accept_r(&request) == 0) {
		if (page.number == 0 || now_ms() - page.made_ms >= STALE_AFTER)
			make(&cache, &page);
		answer(&page, request.out);
		FCGX_Finish_r(&request);
	}
	return EXIT_SUCCESS;
}
