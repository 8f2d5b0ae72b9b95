/* SPDX-License-Identifier: MIT */
/*
 * ip-acl.c - see ip-acl.h.
 *
 * The rules of each family are sorted by prefix length, longest first, then by
 * address, so a lookup is one binary search for each prefix length in use:
 * thousands of networks cost little more than ten.  Constant after ip_acl_new().
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <netinet/in.h>

#include <glib.h>

#include "auth/ip-acl.h"

struct rule {
	uint8_t address[16]; /* zeros after the prefix; IPv4 in the first four bytes */
	uint8_t bits;	     /* of the prefix */
	bool deny;
};

/* The rules of one prefix length. */
struct group {
	uint8_t bits;
	unsigned first, count;
};

struct family {
	unsigned bytes; /* of an address */
	GArray *rules;	/* struct rule */
	GArray *groups; /* struct group */
};

enum verdict { UNNAMED, ALLOWED, DENIED };

struct ip_acl {
	struct family v4, v6;
	enum verdict unix_rule, all; /* the rules "unix" and "all" */
	bool closed;		     /* there are allow rules, so unmatched addresses are denied */
	bool denies;		     /* there are deny rules */
};

/* --- building ---------------------------------------------------------------- */

/* Clears the bits after the prefix; returns true if some were set. */
static bool mask(uint8_t *address, unsigned bytes, unsigned bits)
{
	bool had = false;

	for (unsigned i = 0; i < bytes; i++) {
		unsigned keep = bits >= (i + 1) * 8 ? 8 : bits > i * 8 ? bits - i * 8 : 0;
		uint8_t masked = address[i] & (uint8_t)(0xff00 >> keep);

		had |= masked != address[i];
		address[i] = masked;
	}
	return had;
}

static bool is_mapped(const uint8_t *address)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	return memcmp(address, mapped, sizeof(mapped)) == 0;
}

static void join(enum verdict *verdict, bool deny)
{
	if (*verdict != DENIED)
		*verdict = deny ? DENIED : ALLOWED;
}

static char *bits_behind(const char *text, const struct rule *rule, unsigned bytes)
{
	char net[INET6_ADDRSTRLEN];

	inet_ntop(bytes == 4 ? AF_INET : AF_INET6, rule->address, net, sizeof(net));
	return g_strdup_printf("\"%s\" has bits after its prefix: write %s/%u, or the "
			       "address alone",
			       text, net, rule->bits);
}

/* Returns an error message, or NULL. */
static char *add_rule(struct ip_acl *list, const char *text, bool deny)
{
	const char *slash = strchr(text, '/');
	char *net = slash ? g_strndup(text, (size_t)(slash - text)) : g_strdup(text);
	struct rule rule = {.deny = deny};
	struct family *family = NULL;
	guint64 bits;
	bool had;

	if (inet_pton(AF_INET, net, rule.address) == 1)
		family = &list->v4;
	else if (inet_pton(AF_INET6, net, rule.address) == 1)
		family = &list->v6;
	g_free(net);
	if (!family)
		return g_strdup_printf("\"%s\" is not an address, network (192.0.2.0/24, "
				       "2001:db8::/32), \"unix\" or \"all\"",
				       text);
	bits = family->bytes * 8;
	if (slash && !g_ascii_string_to_unsigned(slash + 1, 10, 0, bits, &bits, NULL))
		return g_strdup_printf("\"%s\": after the slash there must be a number of bits "
				       "from 0 to %u",
				       text, family->bytes * 8);
	rule.bits = (uint8_t)bits;
	had = mask(rule.address, family->bytes, rule.bits);
	if (had)
		return bits_behind(text, &rule, family->bytes);
	if (family == &list->v6 && bits >= 96 && is_mapped(rule.address)) {
		/* Clients with such an address are looked up as IPv4 clients. */
		memmove(rule.address, rule.address + 12, 4);
		memset(rule.address + 4, 0, 12);
		rule.bits -= 96;
		family = &list->v4;
	}
	g_array_append_val(family->rules, rule);
	return NULL;
}

static char *add_rules(struct ip_acl *list, char **texts, bool deny)
{
	char *why = NULL;

	for (; texts && *texts && !why; texts++) {
		list->closed |= !deny;
		list->denies |= deny;
		if (strcmp(*texts, "all") == 0)
			join(&list->all, deny);
		else if (strcmp(*texts, "unix") == 0)
			join(&list->unix_rule, deny);
		else
			why = add_rule(list, *texts, deny);
	}
	return why;
}

/* Longest prefix first; of equal ones the deny rule first, because only the first counts. */
static int compare_rules(const void *a, const void *b)
{
	const struct rule *left = a, *right = b;
	int order;

	if (left->bits != right->bits)
		return left->bits > right->bits ? -1 : 1;
	order = memcmp(left->address, right->address, sizeof(left->address));
	return order ? order : right->deny - left->deny;
}

static void sort(struct family *family)
{
	struct rule *rules = (struct rule *)(void *)family->rules->data;
	unsigned kept = 0;

	g_array_sort(family->rules, compare_rules);
	for (unsigned i = 0; i < family->rules->len; i++) {
		struct group group = {.bits = rules[i].bits, .first = kept, .count = 1};

		if (kept > 0 && rules[kept - 1].bits == rules[i].bits &&
		    memcmp(rules[kept - 1].address, rules[i].address, sizeof(rules[i].address)) ==
			    0)
			continue;
		if (kept > 0 && rules[kept - 1].bits == rules[i].bits)
			g_array_index(family->groups, struct group, family->groups->len - 1)
				.count++;
		else
			g_array_append_val(family->groups, group);
		rules[kept++] = rules[i];
	}
	g_array_set_size(family->rules, kept);
}

static void family_init(struct family *family, unsigned bytes)
{
	family->bytes = bytes;
	family->rules = g_array_new(FALSE, FALSE, sizeof(struct rule));
	family->groups = g_array_new(FALSE, FALSE, sizeof(struct group));
}

struct ip_acl *ip_acl_new(char **allow, char **deny, char **why)
{
	struct ip_acl *list = g_new0(struct ip_acl, 1);

	family_init(&list->v4, 4);
	family_init(&list->v6, 16);
	*why = add_rules(list, allow, false);
	if (!*why)
		*why = add_rules(list, deny, true);
	if (*why) {
		ip_acl_free(list);
		return NULL;
	}
	sort(&list->v4);
	sort(&list->v6);
	return list;
}

void ip_acl_free(struct ip_acl *list)
{
	if (!list)
		return;
	g_array_unref(list->v4.rules);
	g_array_unref(list->v4.groups);
	g_array_unref(list->v6.rules);
	g_array_unref(list->v6.groups);
	g_free(list);
}

/* --- lookup ------------------------------------------------------------------- */

static enum verdict look_up(const struct family *family, const void *address)
{
	const struct rule *rules = (const struct rule *)(const void *)family->rules->data;
	const struct group *groups = (const struct group *)(const void *)family->groups->data;

	for (unsigned i = 0; i < family->groups->len; i++) {
		const struct group *group = &groups[i];
		unsigned low = group->first, high = low + group->count;
		uint8_t net[16];

		memcpy(net, address, family->bytes);
		(void)mask(net, family->bytes, group->bits);
		while (low < high) {
			unsigned middle = low + (high - low) / 2;
			int order = memcmp(net, rules[middle].address, family->bytes);

			if (order == 0)
				return rules[middle].deny ? DENIED : ALLOWED;
			if (order < 0)
				high = middle;
			else
				low = middle + 1;
		}
	}
	return UNNAMED;
}

bool ip_acl_allows(const struct ip_acl *list, const struct sockaddr *address)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)address;
	const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)address;
	enum verdict verdict = UNNAMED;

	if (!list)
		return true;
	if (address->sa_family == AF_UNSPEC)
		return list->all == ALLOWED && !list->denies;
	if (address->sa_family == AF_INET)
		verdict = look_up(&list->v4, &in->sin_addr);
	else if (address->sa_family == AF_INET6 && is_mapped(in6->sin6_addr.s6_addr))
		verdict = look_up(&list->v4, in6->sin6_addr.s6_addr + 12);
	else if (address->sa_family == AF_INET6)
		verdict = look_up(&list->v6, &in6->sin6_addr);
	else if (address->sa_family == AF_UNIX)
		verdict = list->unix_rule;
	if (verdict == UNNAMED)
		verdict = list->all;
	return verdict == ALLOWED || (verdict == UNNAMED && !list->closed);
}
