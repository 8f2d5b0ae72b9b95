/* SPDX-License-Identifier: MIT */
/*
 * real.h - the functions of libfcgi itself, for processes that no server of ours started.
 */
#ifndef NABC_FCGI_REAL_H
#define NABC_FCGI_REAL_H

#include <stdatomic.h>

/*
 * Returns the address of libfcgi's function, which *known keeps.  Ends the process if there is
 * none: the program could not have been linked with libfcgi.
 */
void *fcgi_real(_Atomic(void *) *known, const char *name);

/* The function of libfcgi that has the name of this one. */
#define REAL(function)                                                                             \
	({                                                                                         \
		static _Atomic(void *) known_address;                                              \
		(__typeof__(&(function)))fcgi_real(&known_address, #function);                     \
	})

#endif
