/* SPDX-License-Identifier: MIT */
/*
 * descriptor.h - descriptors that the library keeps are never 0 to 2.
 *
 * A program may have been started without standard input, output or error.  A new
 * descriptor gets the lowest free number, and what such a program prints would go there.
 */
#ifndef NC_DESCRIPTOR_H
#define NC_DESCRIPTOR_H

/*
 * Takes the result of a call that makes a descriptor.  Returns it, or another one for the
 * same in its place; -errno, if the call failed (as errno says), or no other one is free.
 */
int nc_descriptor(int fd);

/* Takes the result of pipe2() or socketpair().  Returns 0, or -errno: then both are closed. */
int nc_descriptor_pair(int result, int pair[2]);

/* Another descriptor of the same file, closed at exec; or -errno. */
int nc_descriptor_copy(int fd);

#endif
