/* SPDX-License-Identifier: MIT */
/* interface.h - the network interface that a socket uses.  System calls, no state, any thread. */
#ifndef NC_INTERFACE_H
#define NC_INTERFACE_H

/*
 * Returns the index of the interface by which a TCP connection was accepted, or -errno; ENODATA:
 * it was not accepted.  Sets a socket option for a moment.
 */
int nc_interface_of(int socket);

/*
 * Returns 1 if the interface computes checksums and gathers pages, 0 if the kernel must read each
 * byte that it sends by it, or -errno.  socket: any, of the interface's network namespace.
 */
int nc_interface_offloads(int socket, int index);

#endif
