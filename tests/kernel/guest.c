/* SPDX-License-Identifier: MIT */
/*
 * guest.c - implements guest.h.  Single-threaded except guest_random(), guest_byte()
 * and functions based on them, which any thread may call.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include "guest.h"

#define PATIENCE_MS 60000

void guest_must(bool good, const char *what, const char *file, int line)
{
	if (good)
		return;
	printf("not ok %s:%d: %s (errno %d, %s)\n",
	       strrchr(file, '/') ? strrchr(file, '/') + 1 : file, line, what, errno,
	       strerror(errno));
	fflush(stdout);
	_exit(1);
}

void guest_must_fail(long result, int wanted, const char *what, const char *file, int line)
{
	int got = errno;

	if (result == -1 && got == wanted)
		return;
	printf("not ok %s:%d: %s gives %ld (errno %d, %s), not errno %d, %s\n",
	       strrchr(file, '/') ? strrchr(file, '/') + 1 : file, line, what, result,
	       result == -1 ? got : 0, result == -1 ? strerror(got) : "none", wanted,
	       strerror(wanted));
	fflush(stdout);
	_exit(1);
}

void guest_tested(const char *format, ...)
{
	va_list arguments;

	printf("ok ");
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	putchar('\n');
	fflush(stdout);
}

void guest_run(const char *format, ...)
{
	char command[500];
	va_list arguments;
	int status;

	va_start(arguments, format);
	vsnprintf(command, sizeof(command), format, arguments);
	va_end(arguments);
	status = system(command);
	if (status == 0)
		return;
	printf("not ok: this fails with %d: %s\n", status, command);
	fflush(stdout);
	_exit(1);
}

void guest_enter(const char *namespace)
{
	char path[100];
	int fd;

	snprintf(path, sizeof(path), "/run/netns/%s", namespace);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	must(fd >= 0);
	must(setns(fd, CLONE_NEWNET) == 0);
	close(fd);
}

pid_t guest_fork(int (*body)(void *context), void *context)
{
	pid_t child;

	fflush(stdout);
	child = fork();
	must(child >= 0);
	if (child == 0) {
		int status = body(context);

		fflush(stdout);
		_exit(status);
	}
	return child;
}

void guest_join(pid_t child)
{
	int status;

	must(waitpid(child, &status, 0) == child);
	must(WIFEXITED(status));
	must(WEXITSTATUS(status) == 0);
}

int guest_load(const char *parameters)
{
	int fd = open("/nabc.ko", O_RDONLY | O_CLOEXEC);
	int result, error;

	must(fd >= 0);
	result = (int)syscall(SYS_finit_module, fd, parameters, 0);
	error = errno;
	close(fd);
	errno = error;
	return result;
}

int guest_unload(void)
{
	return (int)syscall(SYS_delete_module, "nabc", O_NONBLOCK);
}

uint64_t guest_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

bool guest_wait(bool (*holds)(void *context), void *context)
{
	const struct timespec pause = {.tv_nsec = 5000000};
	uint64_t until = guest_now() + PATIENCE_MS;

	while (!holds(context)) {
		if (guest_now() >= until)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

uint64_t guest_random(uint64_t *state)
{
	/* Marsaglia's xorshift64. */
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Returns the number after a name at the start of one of a file's lines. */
static long counter(const char *path, const char *name)
{
	FILE *file = fopen(path, "re");
	size_t length = strlen(name);
	long value = -1;
	char line[200];

	must(file != NULL);
	while (value < 0 && fgets(line, sizeof(line), file))
		if (strncmp(line, name, length) == 0 && strchr(": ", line[length]))
			value = strtol(line + length + 1, NULL, 10);
	fclose(file);
	must(value >= 0);
	return value;
}

long guest_meminfo(const char *name)
{
	return counter("/proc/meminfo", name);
}

long guest_vmstat(const char *name)
{
	return counter("/proc/vmstat", name);
}

unsigned long guest_retransmitted(void)
{
	FILE *file = fopen("/proc/net/snmp", "re");
	unsigned long count = 0;
	char line[1000];

	must(file != NULL);
	/* The twelfth number of the second line of Tcp. */
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "Tcp: %*u %*u %*u %*d %*u %*u %*u %*u %*u %*u %*u %lu", &count) ==
		    1)
			break;
	fclose(file);
	return count;
}

/* Eight bytes at a time; the multiplier is that of Knuth's MMIX. */
static uint64_t word(uint64_t seed, uint64_t number)
{
	uint64_t x = (seed + 1) * 6364136223846793005u + number * 0x9e3779b97f4a7c15u;

	x ^= x >> 29;
	x *= 6364136223846793005u;
	return x ^ x >> 32;
}

unsigned char guest_byte(uint64_t seed, uint64_t place)
{
	return (unsigned char)(word(seed, place / 8) >> place % 8 * 8);
}

void guest_fill(void *to, uint64_t seed, uint64_t place, size_t length)
{
	unsigned char *bytes = to;
	size_t i = 0;

	for (; i < length && (place + i) % 8; i++)
		bytes[i] = guest_byte(seed, place + i);
	for (; i + 8 <= length; i += 8) {
		uint64_t eight = word(seed, (place + i) / 8);

		memcpy(bytes + i, &eight, 8);
	}
	for (; i < length; i++)
		bytes[i] = guest_byte(seed, place + i);
}

bool guest_holds(const void *from, uint64_t seed, uint64_t place, size_t length)
{
	const unsigned char *bytes = from;
	unsigned char wanted[4096];

	for (size_t done = 0, part; done < length; done += part) {
		part = length - done < sizeof(wanted) ? length - done : sizeof(wanted);
		guest_fill(wanted, seed, place + done, part);
		if (memcmp(wanted, bytes + done, part) == 0)
			continue;
		for (size_t i = 0; i < part; i++)
			if (wanted[i] != bytes[done + i]) {
				printf("byte %llu of unit %llu is %02x, not %02x\n",
				       (unsigned long long)(place + done + i),
				       (unsigned long long)seed, bytes[done + i], wanted[i]);
				break;
			}
		return false;
	}
	return true;
}

/* Opens a listening socket of the peer; port 0 selects a free one and stores it in address. */
static int listening(struct sockaddr_storage *address, socklen_t length)
{
	int own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	int fd;

	must(own >= 0);
	guest_enter("peer");
	fd = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(fd >= 0);
	must(bind(fd, (struct sockaddr *)address, length) == 0);
	must(listen(fd, 16) == 0);
	must(getsockname(fd, (struct sockaddr *)address, &length) == 0);
	must(setns(own, CLONE_NEWNET) == 0);
	close(own);
	return fd;
}

void guest_offload_of(const char *name, bool on)
{
	struct ethtool_value value = {.cmd = ETHTOOL_STXCSUM, .data = on};
	struct ifreq request = {.ifr_name = "near", .ifr_data = (char *)&value};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	must(fd >= 0);
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	must(ioctl(fd, SIOCETHTOOL, &request) == 0);
	value = (struct ethtool_value){.cmd = ETHTOOL_SSG, .data = 1};
	ioctl(fd, SIOCETHTOOL, &request);
	value = (struct ethtool_value){.cmd = ETHTOOL_STSO, .data = on};
	ioctl(fd, SIOCETHTOOL, &request);
	close(fd);
}

void guest_offload(bool on)
{
	guest_offload_of("near", on);
}

struct guest_pair guest_connect_to(int family, const char *to)
{
	struct sockaddr_storage address = {.ss_family = (sa_family_t)family};
	struct timeval patience = {.tv_sec = 60};
	struct guest_pair pair;
	socklen_t length;
	int listener;

	if (family == AF_INET) {
		length = sizeof(struct sockaddr_in);
		must(inet_pton(AF_INET, to, &((struct sockaddr_in *)&address)->sin_addr) == 1);
	} else {
		length = sizeof(struct sockaddr_in6);
		must(inet_pton(AF_INET6, to, &((struct sockaddr_in6 *)&address)->sin6_addr) == 1);
	}
	listener = listening(&address, length);
	pair.near = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(pair.near >= 0);
	must(connect(pair.near, (struct sockaddr *)&address, length) == 0);
	pair.far = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	must(pair.far >= 0);
	close(listener);
	must(setsockopt(pair.far, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) == 0);
	must(setsockopt(pair.near, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) == 0);
	return pair;
}

struct guest_pair guest_connect(int family)
{
	return guest_connect_to(family, family == AF_INET ? "10.9.0.2" : "fd09::2");
}

void guest_disconnect(struct guest_pair *pair)
{
	close(pair->near);
	close(pair->far);
	pair->near = pair->far = -1;
}

bool guest_receive(int socket, uint64_t seed, uint64_t place, size_t length)
{
	static __thread unsigned char bytes[65536];

	while (length) {
		size_t most = length < sizeof(bytes) ? length : sizeof(bytes);
		ssize_t got = read(socket, bytes, most);

		if (got <= 0) {
			printf("the connection ends %zu bytes early (%zd, errno %d)\n", length, got,
			       errno);
			return false;
		}
		if (!guest_holds(bytes, seed, place, (size_t)got))
			return false;
		place += (uint64_t)got;
		length -= (size_t)got;
	}
	return true;
}

bool guest_ended(int socket)
{
	char byte;

	return read(socket, &byte, 1) == 0;
}

bool guest_reset(int socket)
{
	struct pollfd end = {.fd = socket};

	return poll(&end, 1, PATIENCE_MS) == 1 && end.revents & POLLERR;
}
