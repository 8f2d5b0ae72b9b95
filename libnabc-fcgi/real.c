/* SPDX-License-Identifier: MIT */
/*
 * real.c - see real.h.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "real.h"

#define LIBRARY "libfcgi.so.0"

/* A plugin's libfcgi is not among the libraries of the program, which RTLD_NEXT searches. */
static void *find(const char *name)
{
	void *address = dlsym(RTLD_NEXT, name);
	void *library = address ? NULL : dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

	return library ? dlsym(library, name) : address;
}

void *fcgi_real(_Atomic(void *) *known, const char *name)
{
	void *address = atomic_load_explicit(known, memory_order_acquire);

	if (address)
		return address;
	address = find(name);
	if (!address) {
		fprintf(stderr,
			"libnabc-fcgi: no server of libnabc started this process, and %s has no "
			"%s: install libfcgi\n",
			LIBRARY, name);
		abort();
	}
	atomic_store_explicit(known, address, memory_order_release);
	return address;
}
