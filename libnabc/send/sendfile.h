/* SPDX-License-Identifier: MIT */
/* sendfile.h - sends a header and a range of a file to a socket. */
#ifndef NC_SENDFILE_H
#define NC_SENDFILE_H

#include <sys/types.h>

struct NC_sendfile;
struct nc_transmit;

/*
 * See NC_sendfile().  Returns the bytes of the message that the socket took, or
 * -errno if it took none.
 */
ssize_t nc_sendfile(struct nc_transmit *transmit, int socket, const struct NC_sendfile *spec);

#endif
