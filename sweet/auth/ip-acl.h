/* SPDX-License-Identifier: MIT */
/*
 * ip-acl.h - which addresses may ask: lists of networks to allow and to deny.
 *
 * The rule that names the longest prefix decides; where an allow and a deny
 * name the same network, the deny does.  An address that no rule names may
 * ask unless there are rules to allow: then only those may.
 */
#ifndef SWEET_IP_ACL_H
#define SWEET_IP_ACL_H

#include <stdbool.h>
#include <sys/socket.h>

struct ip_acl;

/*
 * A rule is an address, ADDRESS/BITS of IPv4 or IPv6, "unix" (clients of
 * Unix sockets) or "all".  IPv4 rules hold for IPv4-mapped addresses as well.
 * allow, deny: NULL-terminated, or NULL.  NULL with *why (the caller's, to be
 * freed by g_free()) when a rule is none.
 */
struct ip_acl *ip_acl_new(char **allow, char **deny, char **why);
void ip_acl_free(struct ip_acl *list);

/* NULL as a list: everybody may.  Constant after ip_acl_new(): any thread may ask. */
bool ip_acl_allows(const struct ip_acl *list, const struct sockaddr *address);

#endif
