/* SPDX-License-Identifier: MIT */
/*
 * wan-tun.c - see wan-tun.h.  A device belongs to the namespace in which it is
 * created, and its descriptor works everywhere; so this process enters the namespace
 * for a moment, and returns.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wan-tun.h"

/* Packets that wait to be read, so that the link drops some, not the device. */
#define DEVICE_QUEUE 10000

static int enter(int space)
{
	return setns(space, CLONE_NEWNET) < 0 ? -errno : 0;
}

static int open_space(const char *space)
{
	char path[4096];
	int fd;

	if (strchr(space, '/'))
		snprintf(path, sizeof(path), "%s", space);
	else
		snprintf(path, sizeof(path), "/run/netns/%s", space);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Calls a function in the tun's namespace. */
static int inside(struct wan_tun *tun, int (*act)(struct wan_tun *tun))
{
	int before = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	int error, back;

	if (before < 0)
		return -errno;
	error = enter(tun->space);
	if (!error) {
		error = act(tun);
		back = enter(before);
		if (!error)
			error = back;
	}
	close(before);
	return error;
}

static int make(struct wan_tun *tun)
{
	struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI};
	int any, error = 0;

	memcpy(request.ifr_name, tun->name, sizeof(request.ifr_name));
	tun->fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (tun->fd < 0 || ioctl(tun->fd, TUNSETIFF, &request) < 0)
		return -errno;
	any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (any < 0)
		return -errno;
	request.ifr_qlen = DEVICE_QUEUE;
	if (ioctl(any, SIOCSIFTXQLEN, &request) < 0)
		error = -errno;
	close(any);
	return error;
}

int wan_tun_open(struct wan_tun *tun, const char *space, const char *name)
{
	int error;

	*tun = (struct wan_tun){.fd = -1, .space = -1};
	if (!*name || strlen(name) >= sizeof(tun->name))
		return -EINVAL;
	strcpy(tun->name, name);
	tun->space = open_space(space);
	if (tun->space < 0)
		return tun->space;
	error = inside(tun, make);
	if (error)
		wan_tun_close(tun);
	return error;
}

void wan_tun_close(struct wan_tun *tun)
{
	if (tun->fd >= 0)
		close(tun->fd);
	if (tun->space >= 0)
		close(tun->space);
	tun->fd = tun->space = -1;
}

/* /proc/net belongs to the namespace in which it is opened. */
static int open_counts(struct wan_tun *tun)
{
	int fd = open("/proc/self/net/dev", O_RDONLY | O_CLOEXEC);

	(void)tun;
	return fd < 0 ? -errno : fd;
}

/* A line is NAME: and eight numbers for received, then eight for sent packets. */
static bool find_lost(const char *line, const char *name, uint64_t *tx_dropped,
		      uint64_t *rx_dropped)
{
	unsigned long long in, out;
	size_t length = strlen(name);

	line += strspn(line, " ");
	if (strncmp(line, name, length) != 0 || line[length] != ':' ||
	    sscanf(line + length + 1, "%*u %*u %*u %llu %*u %*u %*u %*u %*u %*u %*u %llu", &in,
		   &out) != 2)
		return false;
	*rx_dropped = in;
	*tx_dropped = out;
	return true;
}

int wan_tun_lost(const struct wan_tun *tun, uint64_t *tx_dropped, uint64_t *rx_dropped)
{
	struct wan_tun there = *tun;
	char line[512];
	int fd = inside(&there, open_counts), error = -ENODEV;
	FILE *file;

	if (fd < 0)
		return fd;
	file = fdopen(fd, "re");
	if (!file) {
		error = -errno;
		close(fd);
		return error;
	}
	while (error && fgets(line, sizeof(line), file))
		if (find_lost(line, tun->name, tx_dropped, rx_dropped))
			error = 0;
	fclose(file);
	return error;
}
