/* SPDX-License-Identifier: MIT */
/*
 * fastcgi.h - pools of FastCGI applications.
 */
#ifndef SWEET_FASTCGI_H
#define SWEET_FASTCGI_H

#include "backend/gateway.h"

extern const struct backend_protocol fastcgi_protocol;

#endif
