// SPDX-License-Identifier: MIT
/*
 * server.c - the server's end of "bench nic": starts each server, has the client's
 * end load it, and counts the instructions of this whole guest meanwhile.
 *
 * Why the count is right: QEMU's clock advances by one for each instruction that the
 * guest executes (-icount shift=0), and the guest never halts, since a process of the
 * idle class spins, so the clock never jumps.  The time stamp counter is therefore
 * the number of all executed instructions, of kernel and user mode, interrupts
 * included; count.c subtracts those of the idle process.  The remainder is what this
 * machine did.  Only the timer's ticks during idle time are too many; their rate is
 * measured while nothing happens, and subtracted.
 *
 * The file of cases has a line for each, with tabs between: label, MTU, offload
 * (0 or 1), port, path, size, check (0 or 1), requests of the warm-up, requests of a
 * round, connections, rounds, huge pages (0 or 1), the server's command line.  A line
 * is printed for each round: "figure", label, instructions of this guest for a request,
 * of the client's guest, segments sent again.  A command of "-" is no server: the round
 * is a pause.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "count.h"
#include "guest.h"
#include "nic.h"

#define LINE_MAX_BYTES 2000
#define ROOT "/tmp/root"
#define LOG "/tmp/server.log"
#define IDLE_SECONDS 1 /* to measure the timer's ticks; of the guest's clock */

struct measured {
	char label[200], command[1000];
	unsigned int mtu, offload, check, rounds, huge;
	struct nic_load load;
};

/* Instructions of ticks for each instruction of idling. */
static double tick_rate;

/* --- the server under test ------------------------------------------------------ */

static int become_server(void *context)
{
	const struct measured *one = context;

	must(prctl(PR_SET_THP_DISABLE, !one->huge, 0, 0, 0) == 0);
	must(setpgid(0, 0) == 0);
	/* Not "we": in a server without descriptor 1, its first socket becomes its output. */
	must(freopen(LOG, "w", stdout) != NULL);
	must(dup2(STDOUT_FILENO, STDERR_FILENO) >= 0);
	execl("/bin/sh", "sh", "-c", one->command, (char *)NULL);
	return 127;
}

struct server {
	pid_t pid;
	unsigned int port;
	bool ended;
};

static bool listens(const struct server *server)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons((uint16_t)server->port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool connected;

	must(fd >= 0);
	must(inet_pton(AF_INET, NIC_SERVER, &address.sin_addr) == 1);
	connected = connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
	close(fd);
	return connected;
}

static bool ended(void *context)
{
	struct server *server = context;

	server->ended = server->ended || waitpid(server->pid, NULL, WNOHANG) == server->pid;
	return server->ended;
}

static bool listens_or_ended(void *context)
{
	return listens(context) || ended(context);
}

/* Nothing of it is left; the kernel ends a ring, and what it refers to, after its process. */
static bool gone(void *context)
{
	const struct server *server = context;

	return kill(-server->pid, SIGKILL) < 0 && !listens(server);
}

static struct server start(struct measured *one)
{
	struct server server = {.port = one->load.port};

	server.pid = guest_fork(become_server, one);
	if (guest_wait(listens_or_ended, &server) && !server.ended)
		return server;
	guest_run("cat " LOG);
	must(!"the server listens");
	return server;
}

static void stop(struct server *server)
{
	kill(server->pid, SIGTERM);
	must(guest_wait(ended, server));
	must(guest_wait(gone, server));
}

/* --- figures ----------------------------------------------------------------------- */

static double busy(void)
{
	return (double)count_busy() - tick_rate * (double)count_idle();
}

static void measure_ticks(void)
{
	const struct timespec pause = {.tv_sec = IDLE_SECONDS};
	uint64_t busy_before = count_busy(), idle_before = count_idle();

	nanosleep(&pause, NULL);
	tick_rate = (double)(count_busy() - busy_before) / (double)(count_idle() - idle_before);
	printf("ticks\t%.6f\n", tick_rate);
}

/* done: the client's reply, or NULL; own_again: segments that this end has sent again. */
static void print(const struct measured *one, double instructions, const char *done,
		  unsigned long own_again)
{
	unsigned long long client = 0;
	unsigned long again = 0;

	if (done)
		must(sscanf(done, "done %llu %lu", &client, &again) == 2);
	printf("figure\t%s\t%.0f\t%.0f\t%lu\n", one->label, instructions / one->load.requests,
	       (double)client / one->load.requests, again + own_again);
	fflush(stdout);
	/* Interrupts of the console must not be counted. */
	tcdrain(STDOUT_FILENO);
}

static void rest(const struct measured *one)
{
	const struct timespec pause = {.tv_sec = IDLE_SECONDS};
	double before = busy();

	nanosleep(&pause, NULL);
	print(one, busy() - before, NULL, 0);
}

static void run(struct measured *one, int control)
{
	const struct nic_load *load = &one->load;
	char line[LINE_MAX_BYTES];
	struct server server = start(one);

	nic_say(control, "load %u %zu %d %u %u %u %s", load->port, load->size, load->check,
		load->warm_up, load->requests, load->connections, load->path);
	nic_hear(control, line, sizeof(line));
	for (unsigned int i = 0; i < one->rounds; i++) {
		unsigned long again = guest_retransmitted();
		double before = busy();

		nic_say(control, "go");
		nic_hear(control, line, sizeof(line));
		before = busy() - before;
		print(one, before, line, guest_retransmitted() - again);
	}
	nic_say(control, "stop");
	nic_hear(control, line, sizeof(line));
	stop(&server);
}

/* --- the cases ----------------------------------------------------------------------- */

static bool read_case(FILE *file, struct measured *one)
{
	struct nic_load *load = &one->load;
	char line[LINE_MAX_BYTES];

	if (!fgets(line, sizeof(line), file))
		return false;
	must(sscanf(line,
		    "%199[^\t]\t%u\t%u\t%u\t%255[^\t]\t%zu\t%u\t%u\t%u\t%u\t%u\t%u\t%999[^\n]",
		    one->label, &one->mtu, &one->offload, &load->port, load->path, &load->size,
		    &one->check, &load->warm_up, &load->requests, &load->connections, &one->rounds,
		    &one->huge, one->command) == 13);
	load->check = one->check;
	return true;
}

static void switch_network(const struct measured *one, int control)
{
	char line[LINE_MAX_BYTES];

	nic_set_up(NIC_SERVER, one->mtu, one->offload);
	nic_say(control, "net %u %u", one->mtu, one->offload);
	nic_hear(control, line, sizeof(line));
}

/* Makes the file that a case may be about, named by its size. */
static void make_file(size_t size)
{
	char path[100], *body = malloc(size);
	FILE *file;

	must(body != NULL);
	nic_fill(body, 0, size);
	snprintf(path, sizeof(path), ROOT "/%zu", size);
	file = fopen(path, "we");
	must(file != NULL);
	must(fwrite(body, 1, size, file) == size);
	must(fclose(file) == 0);
	free(body);
}

static void make_files(const char *cases)
{
	FILE *file = fopen(cases, "re");
	struct measured one;

	must(file != NULL);
	must(mkdir(ROOT, 0755) == 0);
	while (read_case(file, &one))
		make_file(one.load.size);
	fclose(file);
}

static int accept_client(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(NIC_CONTROL_PORT)};
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd;

	must(listener >= 0);
	must(bind(listener, (struct sockaddr *)&address, sizeof(address)) == 0);
	must(listen(listener, 1) == 0);
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	must(fd >= 0);
	close(listener);
	return fd;
}

int nic_server(const char *cases)
{
	struct measured one = {0};
	unsigned int mtu = 0, offload = 0;
	int control;
	FILE *file;

	guest_run("echo advise >/sys/kernel/mm/transparent_hugepage/shmem_enabled");
	make_files(cases);
	nic_set_up(NIC_SERVER, 1500, true);
	control = accept_client();
	count_settle();
	measure_ticks();
	file = fopen(cases, "re");
	must(file != NULL);
	while (read_case(file, &one)) {
		if (one.mtu != mtu || one.offload != offload)
			switch_network(&one, control);
		mtu = one.mtu;
		offload = one.offload;
		if (strcmp(one.command, "-") == 0)
			rest(&one);
		else
			run(&one, control);
	}
	nic_say(control, "end");
	return 0;
}
