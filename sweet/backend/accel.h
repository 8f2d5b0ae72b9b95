/* SPDX-License-Identifier: MIT */
/*
 * accel.h - programs that let the server send a file (X-Sendfile), or answer for an internal path
 * (X-Accel-Redirect), where the key accel of their pool permits it.
 */
#ifndef SWEET_ACCEL_H
#define SWEET_ACCEL_H

struct backend_call;
struct cgihead;

enum accel {
	ACCEL_NONE,   /* the program responds itself */
	ACCEL_TAKEN,  /* the call is over */
	ACCEL_REFUSED /* *fault says why; static text */
};

/* Call it with each head of a program, before its lines are used. */
enum accel accel_take(struct backend_call *call, const struct cgihead *head, const char **fault);

#endif
