/* SPDX-License-Identifier: MIT */
/*
 * tls-kernel.h - whether the kernel can encrypt what is written to a socket (kernel TLS).
 */
#ifndef SWEET_TLS_KERNEL_H
#define SWEET_TLS_KERNEL_H

#include <stdbool.h>

/*
 * Whether it can.  With CAP_NET_ADMIN the kernel loads its module "tls" if it is missing.  The
 * cipher of a connection decides as well.
 */
bool tls_kernel_probe(void);

#endif
