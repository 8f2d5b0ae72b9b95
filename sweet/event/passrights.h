/* SPDX-License-Identifier: MIT */
/*
 * passrights.h - refuses descriptors sent over a Unix socket.
 *
 * A passed descriptor may be the last reference to its file.  Then closing it can
 * block: a TCP connection may linger as long as the peer has chosen.  Unwanted
 * descriptors are closed by the thread that reads the bytes that they came with, or
 * that closes the socket.
 */
#ifndef SWEET_PASSRIGHTS_H
#define SWEET_PASSRIGHTS_H

#include <stdbool.h>

/*
 * Makes sending descriptors to this socket, and to those that it accepts, fail.
 * Returns false if the system cannot do that (before Linux 6.16), or it is no Unix
 * socket.
 */
bool passrights_refuse(int fd);

#endif
