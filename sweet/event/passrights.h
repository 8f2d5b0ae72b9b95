/* SPDX-License-Identifier: MIT */
/*
 * passrights.h - no descriptors come over this Unix socket.
 *
 * A descriptor that a peer passes may be the last of its file, and whoever drops
 * it waits for the end of the file: of a TCP connection that lingers as long as
 * the peer has chosen.  Those that nobody asked for are dropped by the thread that reads the
 * bytes they came with, or closes the socket.
 */
#ifndef SWEET_PASSRIGHTS_H
#define SWEET_PASSRIGHTS_H

#include <stdbool.h>

/*
 * Descriptors sent to the socket are refused to their sender, and to those that
 * it accepts.  False: the system cannot do that (before Linux 6.16), or it is no Unix socket.
 */
bool passrights_refuse(int fd);

#endif
