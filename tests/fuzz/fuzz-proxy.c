/* SPDX-License-Identifier: MIT */
/*
 * fuzz-proxy.c - the header of a proxy (sweet/http/proxy-protocol.c): its end is found
 * at the same byte for any division, within the promised length, and the addresses of
 * version 1 are those in the text.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "http/proxy-protocol.h"

#include "fuzz.h"

static ssize_t parse(const uint8_t *data, size_t length, struct proxy_header *header)
{
	char *copy = exact_copy(data, length);
	ssize_t result = proxy_header_parse(header, copy, length);

	free(copy);
	return result;
}

static void check_cuts(const uint8_t *data, size_t length, ssize_t result)
{
	struct proxy_header header;

	for (size_t at = 0; at < length; at += 1 + at / 16) {
		ssize_t early = parse(data, at, &header);

		if (early == 0)
			continue;
		/* Found earlier, but with the same result; only the kind of error may differ. */
		MUST(early == result || (early < 0 && result < 0));
		MUST(early < 0 || (size_t)early <= at);
	}
}

static void check_text(const uint8_t *data, const struct proxy_header *header)
{
	const struct sockaddr_in *from4 = (const void *)&header->from,
				 *to4 = (const void *)&header->to;
	const struct sockaddr_in6 *from6 = (const void *)&header->from,
				  *to6 = (const void *)&header->to;
	char from[INET6_ADDRSTRLEN], to[INET6_ADDRSTRLEN], line[200];
	struct proxy_header again;
	int length;

	if (header->from.ss_family == AF_INET) {
		MUST(inet_ntop(AF_INET, &from4->sin_addr, from, sizeof(from)));
		MUST(inet_ntop(AF_INET, &to4->sin_addr, to, sizeof(to)));
		length = snprintf(line, sizeof(line), "PROXY TCP4 %s %s %u %u\r\n", from, to,
				  ntohs(from4->sin_port), ntohs(to4->sin_port));
		MUST(memcmp(data, line, (size_t)length) == 0);
		return;
	}
	/* An IPv6 address has more than one form. */
	MUST(header->from.ss_family == AF_INET6 && header->to.ss_family == AF_INET6);
	MUST(inet_ntop(AF_INET6, &from6->sin6_addr, from, sizeof(from)));
	MUST(inet_ntop(AF_INET6, &to6->sin6_addr, to, sizeof(to)));
	length = snprintf(line, sizeof(line), "PROXY TCP6 %s %s %u %u\r\n", from, to,
			  ntohs(from6->sin6_port), ntohs(to6->sin6_port));
	MUST(parse((const uint8_t *)line, (size_t)length, &again) == length);
	MUST(memcmp(&again, header, sizeof(again)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct proxy_header header;
	ssize_t result = parse(data, size, &header);

	MUST(result <= (ssize_t)size && result <= PROXY_HEADER_MAX);
	MUST(result >= 0 || result == -EINVAL || result == -EMSGSIZE);
	MUST(result != 0 || size < PROXY_HEADER_MAX);
	check_cuts(data, size, result);
	if (result <= 0)
		return 0;
	MUST((header.client == PROXY_CLIENT) == (header.from.ss_family != AF_UNSPEC));
	MUST(header.from.ss_family == header.to.ss_family);
	if (header.client == PROXY_CLIENT && data[0] == 'P')
		check_text(data, &header);
	return 0;
}
