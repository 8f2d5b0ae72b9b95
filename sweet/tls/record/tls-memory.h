/* SPDX-License-Identifier: MIT */
/*
 * tls-memory.h - memory of OpenSSL, for which each thread keeps the buffers of records that it used
 * last.
 */
#ifndef SWEET_TLS_MEMORY_H
#define SWEET_TLS_MEMORY_H

/* Call it once, before any other function of OpenSSL. */
void tls_memory_init(void);

#endif
