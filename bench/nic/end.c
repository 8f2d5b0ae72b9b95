// SPDX-License-Identifier: MIT
/*
 * end.c - what both ends of "bench nic" do: set up the card, make the bytes of
 * documents, and exchange lines; and the program, whose role is in $NIC_ROLE.
 */
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "count.h"
#include "guest.h"
#include "nic.h"

static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ-\n";

/*
 * Without loss, a segment that is sent again only shows that the other guest had no CPU
 * of the real machine for a while, compared with which this guest's clock is arbitrary.
 */
#define PATIENCE                                                                                   \
	"echo 0 >/proc/sys/net/ipv4/tcp_early_retrans && "                                         \
	"/sbin/ip route replace 10.9.1.0/24 dev " NIC_DEVICE " src %s rto_min 1s"

void nic_set_up(const char *address, unsigned int mtu, bool offload)
{
	guest_run("echo 1 >/proc/sys/net/ipv6/conf/" NIC_DEVICE "/disable_ipv6 && "
		  "/sbin/ip addr replace %s/24 dev " NIC_DEVICE " && "
		  "/sbin/ip link set " NIC_DEVICE " mtu %u up",
		  address, mtu);
	guest_run(PATIENCE, address);
	guest_offload_of(NIC_DEVICE, offload);
}

void nic_fill(char *to, size_t at, size_t size)
{
	for (size_t i = 0; i < size; i++)
		to[i] = alphabet[(at + i) % (sizeof(alphabet) - 1)];
}

void nic_say(int control, const char *format, ...)
{
	char line[1000];
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(line, sizeof(line) - 1, format, arguments);
	va_end(arguments);
	must(length > 0 && (size_t)length < sizeof(line) - 1);
	line[length++] = '\n';
	must(send(control, line, (size_t)length, MSG_NOSIGNAL) == length);
}

void nic_hear(int control, char *line, size_t most)
{
	size_t length = 0;

	/* An end waits for each line before it sends another one. */
	do {
		ssize_t got = read(control, line + length, most - length);

		must(got > 0);
		length += (size_t)got;
	} while (line[length - 1] != '\n');
	line[length - 1] = '\0';
}

int main(void)
{
	const char *role = getenv("NIC_ROLE");
	const char *cases = getenv("NIC_CASES");

	must(role != NULL);
	signal(SIGPIPE, SIG_IGN);
	count_begin();
	if (strcmp(role, "client") == 0)
		return nic_client();
	must(cases != NULL);
	return nic_server(cases);
}
