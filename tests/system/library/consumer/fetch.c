/* SPDX-License-Identifier: MIT */
/*
 * fetch.c - reads a unit of server.c without the network.
 *
 *	NABC_CACHE=SOCKET fetch PORT NAME
 *	NABC_CACHE=SOCKET fetch - ID
 *
 * The first one asks the server to grant it the unit of a file and gets its id as
 * the response; the second one has no grant, and so gets nothing.  The bytes come
 * from the cache, to standard output.
 */
#include <arpa/inet.h>
#include <err.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <nabc.h>

static size_t ask_for_grant(int port, const char *name)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons(port),
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char text[1024];
	const char *body;
	size_t have = 0;
	ssize_t n;

	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		err(1, "port %d", port);
	dprintf(fd, "GET /grant/%d/%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
		(int)getpid(), name);
	while ((n = read(fd, text + have, sizeof(text) - 1 - have)) > 0)
		have += (size_t)n;
	close(fd);
	text[have] = '\0';
	body = strstr(text, "\r\n\r\n");
	if (strncmp(text, "HTTP/1.1 200 ", 13) || !body)
		errx(1, "%s: %.12s", name, text);
	return strtoull(body, NULL, 10);
}

int main(int argc, char **argv)
{
	char data[65536];
	size_t id, offset = 0;
	ssize_t n;

	if (argc != 3)
		errx(1, "usage: fetch PORT NAME, or fetch - ID");
	if (!strcmp(argv[1], "-"))
		id = strtoull(argv[2], NULL, 10);
	else
		id = ask_for_grant(atoi(argv[1]), argv[2]);
	while ((n = NC_pread(NULL, id, data, sizeof(data), offset)) > 0) {
		if (fwrite(data, 1, (size_t)n, stdout) != (size_t)n)
			err(1, "stdout");
		offset += (size_t)n;
	}
	if (n < 0)
		err(1, "NC_pread");
	return 0;
}
