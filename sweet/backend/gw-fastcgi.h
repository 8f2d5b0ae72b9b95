/* SPDX-License-Identifier: MIT */
/*
 * gw-fastcgi.h - pools of FastCGI applications.
 */
#ifndef SWEET_GW_FASTCGI_H
#define SWEET_GW_FASTCGI_H

#include "backend/gateway.h"

extern const struct gw_protocol gw_fastcgi;

#endif
