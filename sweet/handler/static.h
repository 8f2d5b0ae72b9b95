/* SPDX-License-Identifier: MIT */
/*
 * static.h - responds with files below the root.
 */
#ifndef SWEET_STATIC_H
#define SWEET_STATIC_H

#include "core/transaction.h"

enum respond static_respond(struct transaction *transaction);

#endif
