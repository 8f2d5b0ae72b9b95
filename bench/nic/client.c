// SPDX-License-Identifier: MIT
/*
 * client.c - the client's end of "bench nic".  Lines from the server's end, and the
 * replies:
 *   net MTU OFFLOAD                                          ok
 *   load PORT SIZE CHECK WARM-UP REQUESTS CONNECTIONS PATH   warm
 *   go                                                       done INSTRUCTIONS RETRANSMITTED
 *   stop                                                     ok
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "count.h"
#include "guest.h"
#include "nic.h"

#define LINE_MAX_BYTES 1000

struct client {
	int control;
	struct nic_load what;
	struct load *load; /* NULL between cases */
};

static bool connects(void *context)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(NIC_CONTROL_PORT)};
	int *fd = context;

	*fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(*fd >= 0);
	must(inet_pton(AF_INET, NIC_SERVER, &address.sin_addr) == 1);
	if (connect(*fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		return true;
	close(*fd);
	return false;
}

static void begin_load(struct client *client, const char *line)
{
	struct nic_load *what = &client->what;
	int check;

	must(sscanf(line, "load %u %zu %d %u %u %u %255s", &what->port, &what->size, &check,
		    &what->warm_up, &what->requests, &what->connections, what->path) == 7);
	what->check = check;
	client->load = load_open(what);
	nic_say(client->control, "warm");
}

static void go(struct client *client)
{
	uint64_t before = count_busy();
	unsigned long again = guest_retransmitted();

	load_round(client->load, client->what.requests);
	nic_say(client->control, "done %llu %lu", (unsigned long long)(count_busy() - before),
		guest_retransmitted() - again);
}

static void obey(struct client *client, const char *line)
{
	unsigned int mtu, offload;

	if (sscanf(line, "net %u %u", &mtu, &offload) == 2) {
		nic_set_up(NIC_CLIENT, mtu, offload);
		nic_say(client->control, "ok");
	} else if (strncmp(line, "load ", 5) == 0) {
		begin_load(client, line);
	} else if (strcmp(line, "go") == 0) {
		go(client);
	} else {
		must(strcmp(line, "stop") == 0);
		load_close(client->load);
		nic_say(client->control, "ok");
	}
}

int nic_client(void)
{
	struct client client = {0};
	char line[LINE_MAX_BYTES];

	nic_set_up(NIC_CLIENT, 1500, true);
	/* A try may take long: the server's guest may not be there yet. */
	while (!connects(&client.control))
		usleep(100000);
	count_settle();
	for (;;) {
		nic_hear(client.control, line, sizeof(line));
		if (strcmp(line, "end") == 0)
			return 0;
		obey(&client, line);
	}
}
