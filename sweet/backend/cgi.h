/* SPDX-License-Identifier: MIT */
/*
 * cgi.h - pools of CGI programs (RFC 3875): one process for each request.
 */
#ifndef SWEET_CGI_H
#define SWEET_CGI_H

#include "backend/gateway.h"

extern const struct backend_protocol cgi_protocol;

#endif
