/* SPDX-License-Identifier: MIT */
/*
 * fcgi-threads.c - a program of libfcgi with eight threads, each of which accepts requests and
 * returns their bodies: test_fcgi_preload.py compiles it.
 */
#include <fcgiapp.h>
#include <pthread.h>
#include <stddef.h>

#define THREADS 8

/* libfcgi's own accept() is for one thread at a time. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int accept_next(FCGX_Request *request)
{
	int result;

	pthread_mutex_lock(&lock);
	result = FCGX_Accept_r(request);
	pthread_mutex_unlock(&lock);
	return result;
}

static void *serve(void *unused)
{
	FCGX_Request request;
	char bytes[3000];
	int got;

	if (FCGX_InitRequest(&request, 0, 0))
		return unused;
	while (accept_next(&request) >= 0) {
		const char *query = FCGX_GetParam("QUERY_STRING", request.envp);

		if (query && *query) {
			FCGX_FPrintF(request.err, "begins: %s\n", query);
			FCGX_FFlush(request.err);
		}
		FCGX_PutS("Content-Type: application/octet-stream\r\n\r\n", request.out);
		while ((got = FCGX_GetStr(bytes, sizeof(bytes), request.in)) > 0)
			FCGX_PutStr(bytes, got, request.out);
		FCGX_Finish_r(&request);
	}
	return unused;
}

int main(void)
{
	pthread_t threads[THREADS];

	if (FCGX_Init())
		return 1;
	for (unsigned i = 1; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, serve, NULL))
			return 1;
	serve(NULL);
	for (unsigned i = 1; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
