/* SPDX-License-Identifier: MIT */
/*
 * tls-kernel.h - the kernel's end of TLS: it encrypts what is written to a socket (kernel TLS).
 */
#ifndef SWEET_TLS_KERNEL_H
#define SWEET_TLS_KERNEL_H

#include <stdbool.h>

/*
 * Whether it can.  With CAP_NET_ADMIN the kernel loads its module "tls" if it is missing.  The
 * cipher of a connection decides as well.
 */
bool tls_kernel_probe(void);

/* Sends a fatal alert (RFC 8446, section 6.2) to a socket for which the kernel encrypts. */
void tls_kernel_alert(int socket, unsigned char description);

#endif
