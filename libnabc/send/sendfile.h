/* SPDX-License-Identifier: MIT */
/*
 * sendfile.h - a header and a range of a file to a socket.
 */
#ifndef NC_SENDFILE_H
#define NC_SENDFILE_H

#include "send/transmit.h"

/* See NC_sendfile(): bytes of the message handed to the socket, or -errno if none were. */
ssize_t nc_sendfile(struct nc_transmit *transmit, int socket, const struct NC_sendfile *spec);

#endif
