/* SPDX-License-Identifier: MIT */
/* thread.c - see thread.h. */
#include <signal.h>
#include <stddef.h>

#include "os/thread.h"

#define STACK ((size_t)256 << 10)

int nc_thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *context)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	int error = pthread_attr_init(&attributes);

	if (error)
		return -error;
	(void)pthread_attr_setstacksize(&attributes, STACK);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(thread, &attributes, run, context);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	if (!error)
		(void)pthread_setname_np(*thread, name);
	return -error;
}
