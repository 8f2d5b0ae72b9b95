/* SPDX-License-Identifier: MIT */
/* tls-records-none.c - for a build with --disable-tls-records: OpenSSL makes all records. */
#include <stddef.h>

#include "tls/tls-records.h"

const struct tls_records *const tls_records = NULL;
