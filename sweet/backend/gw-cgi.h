/* SPDX-License-Identifier: MIT */
/*
 * gw-cgi.h - pools of CGI programs (RFC 3875): one process for each request.
 */
#ifndef SWEET_GW_CGI_H
#define SWEET_GW_CGI_H

#include "backend/gateway.h"

extern const struct gw_protocol gw_cgi;

#endif
