/* SPDX-License-Identifier: MIT */
/*
 * socket-options.c - see socket-options.h.  Options are always set, even to the kernel's default: a
 * socket from a supervisor may have other values from an earlier server.
 */
#include <assert.h>
#include <errno.h>
#include <glib.h>
#include <nabc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "config/configuration.h"
#include "core/socket-options.h"
#include "log/log.h"

#define SYSTEM_FASTOPEN "/proc/sys/net/ipv4/tcp_fastopen"
#define FASTOPEN_SERVERS 0x2 /* bit for servers (ip-sysctl.rst of the kernel) */

static_assert((int)SEND_AUTO - 1 == NC_ROUTE_LEARN && (int)SEND_COPY - 1 == NC_METHOD_COPY &&
		      (int)SEND_SPLICE - 1 == NC_METHOD_SPLICE &&
		      (int)SEND_ZEROCOPY - 1 == NC_METHOD_ZEROCOPY &&
		      (int)SEND_KERNEL - 1 == NC_METHOD_KERNEL,
	      "words and methods stand in the same order");

static void set(int fd, int option, int value, int otherwise, const char *name)
{
	/* A kernel that lacks the option behaves as with its default. */
	if (setsockopt(fd, IPPROTO_TCP, option, &value, sizeof(value)) < 0 && value != otherwise)
		log_warning("%s: %s", name, strerror(errno));
}

void socket_options_set(int fd, const struct config_sockets *sockets, unsigned header_ms)
{
	int protocol = 0;
	socklen_t length = sizeof(protocol);

	if (getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &length) < 0 ||
	    protocol != IPPROTO_TCP)
		return;
	set(fd, TCP_DEFER_ACCEPT, sockets->defer_accept ? (int)(header_ms / 1000) : 0, 0,
	    "defer-accept");
	set(fd, TCP_FASTOPEN, (int)sockets->fastopen, 0, "fastopen");
	set(fd, TCP_QUICKACK, !sockets->delay_ack, 1, "delay-ack");
	set(fd, TCP_NOTSENT_LOWAT, SOCKET_UNSENT_FIRST, SOCKET_UNSENT_FIRST, "");
}

bool socket_is_opening(int fd)
{
	struct tcp_info info;
	socklen_t length = sizeof(info);

	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) == 0 &&
	       info.tcpi_state == TCP_SYN_RECV;
}

/* Returns the kernel's bits; -1 if unknown. */
static int system_fastopen(void)
{
	FILE *file = fopen(SYSTEM_FASTOPEN, "re");
	int bits = -1;

	if (!file)
		return -1;
	if (fscanf(file, "%d", &bits) != 1)
		bits = -1;
	fclose(file);
	return bits;
}

void socket_options_check(const struct config_sockets *sockets)
{
	int bits = sockets->fastopen ? system_fastopen() : -1;

	if (bits >= 0 && !(bits & FASTOPEN_SERVERS))
		log_warning("fastopen has no effect: the system does not allow it to servers; "
			    "set net.ipv4.tcp_fastopen (now %d) to %d",
			    bits, bits | FASTOPEN_SERVERS);
}

static const char *method_word(unsigned method)
{
	static const char *const words[] = {[SEND_AUTO] = "auto",
					    [SEND_COPY] = "copy",
					    [SEND_SPLICE] = "splice",
					    [SEND_ZEROCOPY] = "zerocopy",
					    [SEND_KERNEL] = "kernel"};

	return words[method];
}

void socket_options_write(const struct config_sockets *sockets, char text[SOCKET_OPTIONS_TEXT])
{
	char fastopen[32], method[32];
	const struct {
		bool shown;
		const char *text;
	} parts[] = {
		{sockets->defer_accept, "defer-accept"},
		{sockets->fastopen, fastopen},
		{sockets->delay_ack, "delay-ack"},
		{sockets->send_method != SEND_AUTO, method},
		{!sockets->header_option, "header-option off"},
		{!sockets->close_option, "close-option off"},
		{!sockets->linger, "linger off"},
	};
	size_t length = 0;

	snprintf(fastopen, sizeof(fastopen), "fastopen %u", sockets->fastopen);
	snprintf(method, sizeof(method), "send-method %s", method_word(sockets->send_method));
	*text = '\0';
	for (unsigned i = 0; i < G_N_ELEMENTS(parts); i++)
		if (parts[i].shown)
			length += (size_t)snprintf(text + length, SOCKET_OPTIONS_TEXT - length,
						   "%s%s", length ? ", " : "", parts[i].text);
}

/* --- how bodies leave --------------------------------------------------------- */

static char *explain(NC_cache *cache, unsigned method, int error)
{
	struct NC_cache_stat stat = {0};
	bool missing = error == EOPNOTSUPP && NC_cache_stat(cache, &stat, sizeof(stat)) == 0;

	if (missing && method == SEND_KERNEL)
		return g_strdup_printf("send-method \"kernel\": the kernel module nabc is %s",
				       stat.kernel);
	if (missing && method == SEND_ZEROCOPY)
		return g_strdup_printf("send-method \"zerocopy\": the cache has no io_uring (%s)",
				       stat.uring);
	return g_strdup_printf("send-method \"%s\": %s", method_word(method), strerror(error));
}

bool send_method_use(NC_cache *cache, const struct config *before, const struct config *config,
		     char **why)
{
	unsigned method = config->sockets.send_method;

	if (method == (before ? before->sockets.send_method : SEND_AUTO))
		return true;
	if (NC_route_set(cache, "*", (int)method - 1) == 0)
		return true;
	if (why)
		*why = explain(cache, method, errno);
	return false;
}
