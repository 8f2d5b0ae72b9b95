/* SPDX-License-Identifier: MIT */
/*
 * ip-acl.h - access lists: networks to allow and to deny.
 *
 * The rule with the longest matching prefix decides; if an allow and a deny rule
 * name the same network, deny wins.  An address that no rule matches is allowed,
 * unless there are allow rules.  An unknown one (AF_UNSPEC) may be any that is
 * denied: it is allowed only if all are, and nobody is denied.
 */
#ifndef SWEET_IP_ACL_H
#define SWEET_IP_ACL_H

#include <stdbool.h>
#include <sys/socket.h>

struct ip_acl;
struct sockaddr;

/*
 * A rule is an address, ADDRESS/BITS of IPv4 or IPv6, "unix" (clients of Unix
 * sockets) or "all".  IPv4 rules also match IPv4-mapped addresses. allow, deny:
 * NULL-terminated, or NULL.  Returns NULL and *why (to be freed with g_free()) if a
 * rule is invalid.
 */
struct ip_acl *ip_acl_new(char **allow, char **deny, char **why);
void ip_acl_free(struct ip_acl *list);

/*
 * Without a list (NULL) everybody is allowed.  Constant after ip_acl_new(): any
 * thread may call it.
 */
bool ip_acl_allows(const struct ip_acl *list, const struct sockaddr *address);

#endif
