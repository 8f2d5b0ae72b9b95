/* SPDX-License-Identifier: MIT */
/*
 * request.c - the calls of fcgiapp.h that accept and end requests.
 *
 * In a worker, the socket of a request has no meaning: requests come from the server that started
 * the process.
 */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "exchange.h"
#include "interface.h"
#include "layout.h"
#include "mode.h"
#include "real.h"

/* Of programs that have one request at a time. */
static struct fcgi_request current;

static void handle(int number, void (*handler)(int number))
{
	struct sigaction action = {.sa_handler = handler}, before;

	/* A handler of the program stays. */
	if (sigaction(number, NULL, &before) == 0 && !(before.sa_flags & SA_SIGINFO) &&
	    before.sa_handler == SIG_DFL)
		(void)sigaction(number, &action, NULL);
}

static void request_shut_down(int number)
{
	(void)number;
	atomic_store(&fcgi_is_shutting_down, true);
}

int OS_LibInit(int stdio[3])
{
	if (!fcgi_is_worker)
		return REAL(OS_LibInit)(stdio);
	handle(SIGPIPE, SIG_IGN);
	handle(SIGUSR1, request_shut_down);
	return 0;
}

int OS_IsFcgi(int socket)
{
	return fcgi_is_worker ? 1 : REAL(OS_IsFcgi)(socket);
}

void OS_ShutdownPending(void)
{
	if (fcgi_is_worker)
		atomic_store(&fcgi_is_shutting_down, true);
	else
		REAL(OS_ShutdownPending)();
}

void FCGX_ShutdownPending(void)
{
	if (fcgi_is_worker)
		OS_ShutdownPending();
	else
		REAL(FCGX_ShutdownPending)();
}

int FCGX_IsCGI(void)
{
	return fcgi_is_worker ? 0 : REAL(FCGX_IsCGI)();
}

int FCGX_Init(void)
{
	return fcgi_is_worker ? OS_LibInit(NULL) : REAL(FCGX_Init)();
}

int FCGX_InitRequest(struct fcgi_request *request, int socket, int flags)
{
	if (!fcgi_is_worker)
		return REAL(FCGX_InitRequest)(request, socket, flags);
	*request = (struct fcgi_request){.connection = -1, .listener = socket, .flags = flags};
	return 0;
}

static void report_child(void)
{
	static atomic_bool is_reported;

	if (!atomic_exchange(&is_reported, true))
		fprintf(stderr,
			"libnabc-fcgi: process %d is a child of the worker and gets no requests: "
			"let the server start the processes, and the program none\n",
			(int)getpid());
}

int FCGX_Accept_r(struct fcgi_request *request)
{
	int error;

	if (!fcgi_is_worker)
		return REAL(FCGX_Accept_r)(request);
	FCGX_Finish_r(request);
	if (fcgi_is_child)
		report_child();
	if (atomic_load(&fcgi_is_shutting_down))
		return -ECANCELED;
	error = fcgi_exchange_accept(request);
	return error;
}

void FCGX_Finish_r(struct fcgi_request *request)
{
	if (!fcgi_is_worker)
		REAL(FCGX_Finish_r)(request);
	else if (request)
		fcgi_exchange_finish(request);
}

void FCGX_Free(struct fcgi_request *request, int close)
{
	if (!fcgi_is_worker)
		REAL(FCGX_Free)(request, close);
	else if (request)
		fcgi_exchange_abort(request);
}

int FCGX_Accept(struct fcgi_stream **in, struct fcgi_stream **out, struct fcgi_stream **err,
		char ***envp)
{
	int result;

	if (!fcgi_is_worker)
		return REAL(FCGX_Accept)(in, out, err, envp);
	(void)OS_LibInit(NULL);
	result = FCGX_Accept_r(&current);
	*in = current.in;
	*out = current.out;
	*err = current.err;
	*envp = current.envp;
	return result;
}

void FCGX_Finish(void)
{
	if (fcgi_is_worker)
		FCGX_Finish_r(&current);
	else
		REAL(FCGX_Finish)();
}

/* Servers of libnabc have no filters. */
int FCGX_StartFilterData(struct fcgi_stream *stream)
{
	if (!fcgi_is_worker)
		return REAL(FCGX_StartFilterData)(stream);
	stream->error = FCGI_CALL_SEQUENCE;
	return -1;
}

void FCGX_SetExitStatus(int status, struct fcgi_stream *stream)
{
	struct fcgi_exchange *exchange;

	if (!fcgi_is_worker) {
		REAL(FCGX_SetExitStatus)(status, stream);
		return;
	}
	exchange = fcgi_exchange_of(stream);
	if (exchange)
		exchange->owner->exit_status = status;
}

char *FCGX_GetParam(const char *name, char **envp)
{
	size_t length;

	if (!fcgi_is_worker)
		return REAL(FCGX_GetParam)(name, envp);
	if (!name || !envp)
		return NULL;
	length = strlen(name);
	for (; *envp; envp++)
		if (strncmp(*envp, name, length) == 0 && (*envp)[length] == '=')
			return *envp + length + 1;
	return NULL;
}

int FCGX_Attach(struct fcgi_request *request)
{
	if (!fcgi_is_worker)
		return REAL(FCGX_Attach)(request);
	request->detached = 0;
	return 0;
}

/* Another process would answer, which the server does not let. */
int FCGX_Detach(struct fcgi_request *request)
{
	return fcgi_is_worker ? -1 : REAL(FCGX_Detach)(request);
}
