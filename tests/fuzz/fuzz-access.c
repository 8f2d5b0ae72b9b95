/* SPDX-License-Identifier: MIT */
/*
 * fuzz-access.c - addresses as operators write them: listening addresses
 * (sweet/base/address.c) and client rules (ip-acl.c), each line of the input as both.
 * The text of an accepted address is read as the same address; a rule for a single
 * address applies to it.
 */
#include <arpa/inet.h>
#include <netinet/in.h>

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "auth/ip-acl.h"
#include "base/address.h"

#include "fuzz.h"

static void check_listen(const char *text)
{
	struct listen_address address, again;

	memset(&address, 0, sizeof(address));
	memset(&again, 0, sizeof(again));
	if (!address_parse(text, &address))
		return;
	MUST(address.length <= sizeof(address.address));
	MUST(memchr(address.text, '\0', sizeof(address.text)));
	address_write(&address);
	MUST(memchr(address.text, '\0', sizeof(address.text)));
	MUST(address_equal(&address, &address));
	/* The text of a socket's file is only the name, which may look like options. */
	if (strstr(address.text, ",mode="))
		return;
	MUST(address_parse(address.text, &again));
	MUST(address_equal(&address, &again) && again.length == address.length);
	(void)address_path(&address);
	(void)address_accepts(&address, (const struct sockaddr *)&address.address);
}

static bool to_sockaddr(const char *text, struct sockaddr_storage *address)
{
	struct sockaddr_in *v4 = (void *)address;
	struct sockaddr_in6 *v6 = (void *)address;

	memset(address, 0, sizeof(*address));
	if (inet_pton(AF_INET, text, &v4->sin_addr) == 1)
		v4->sin_family = AF_INET;
	else if (inet_pton(AF_INET6, text, &v6->sin6_addr) == 1)
		v6->sin6_family = AF_INET6;
	return address->ss_family != 0;
}

static struct ip_acl *make(char **allow, char **deny)
{
	char *why = NULL;
	struct ip_acl *list = ip_acl_new(allow, deny, &why);

	MUST(!list == !!why);
	g_free(why);
	return list;
}

static void check_rules(char **lines)
{
	char *all[] = {(char *)"all", NULL};
	struct ip_acl *allow = make(lines, NULL), *deny = make(NULL, lines);
	struct ip_acl *both = make(lines, lines), *open = make(all, lines);

	/* A list is valid or not, for either purpose. */
	MUST(!allow == !deny && !allow == !both && !allow == !open);
	for (unsigned i = 0; allow && lines[i]; i++) {
		struct sockaddr_storage address;

		if (!to_sockaddr(lines[i], &address))
			continue;
		MUST(ip_acl_allows(allow, (struct sockaddr *)&address));
		MUST(!ip_acl_allows(deny, (struct sockaddr *)&address));
		MUST(!ip_acl_allows(both, (struct sockaddr *)&address));
		MUST(!ip_acl_allows(open, (struct sockaddr *)&address));
	}
	ip_acl_free(allow);
	ip_acl_free(deny);
	ip_acl_free(both);
	ip_acl_free(open);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = g_strndup((const char *)data, size);
	char **lines = g_strsplit(text, "\n", 64);

	for (unsigned i = 0; lines[i]; i++)
		check_listen(lines[i]);
	check_rules(lines);
	g_strfreev(lines);
	g_free(text);
	return 0;
}
