/* SPDX-License-Identifier: MIT */
/*
 * status.h - the server's figures as JSON, for clients on this machine.
 */
#ifndef SWEET_STATUS_H
#define SWEET_STATUS_H

#include <transaction.h>

#define STATUS_PATH "/.sweet/status"

enum respond status_respond(struct transaction *transaction);

#endif
