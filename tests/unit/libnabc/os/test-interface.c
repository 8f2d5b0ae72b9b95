/* SPDX-License-Identifier: MIT */
/* test-interface.c - unit tests of interface.c: by which interface a connection came. */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "os/interface.h"

#include "suite.h"

/* A listener of IPv6 gets a connection by IPv4 or IPv6.  Returns false without IPv6. */
static bool pair_of_6(bool by_4, int pair[2])
{
	struct sockaddr_in6 all = {.sin6_family = AF_INET6}, there = all;
	struct sockaddr_in there_4 = {.sin_family = AF_INET};
	socklen_t length = sizeof(all);
	const int off = 0;
	int listener = socket(AF_INET6, SOCK_STREAM, 0);

	if (listener < 0 || setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) ||
	    bind(listener, (struct sockaddr *)&all, sizeof(all)) < 0) {
		printf("interface: no IPv6 on this system\n");
		close(listener);
		return false;
	}
	ck_assert_int_eq(listen(listener, 1), 0);
	ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&all, &length), 0);
	there.sin6_addr = in6addr_loopback;
	there.sin6_port = there_4.sin_port = all.sin6_port;
	there_4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	pair[0] = socket(by_4 ? AF_INET : AF_INET6, SOCK_STREAM, 0);
	ck_assert_int_eq(by_4 ? connect(pair[0], (struct sockaddr *)&there_4, sizeof(there_4))
			      : connect(pair[0], (struct sockaddr *)&there, sizeof(there)),
			 0);
	pair[1] = accept(listener, NULL, NULL);
	ck_assert_int_ge(pair[1], 0);
	close(listener);
	return true;
}

static int option(int fd, int level, int name)
{
	int value = -1;
	socklen_t length = sizeof(value);

	ck_assert_int_eq(getsockopt(fd, level, name, &value, &length), 0);
	return value;
}

/* By IPv4, by IPv6, and by IPv4 to a socket of IPv6; the socket is as it was. */
START_TEST(test_accepted)
{
	const int lo = (int)if_nametoindex("lo"), on = 1;
	int pair[2];

	if (_i == 0)
		tcp_pair(pair);
	else if (!pair_of_6(_i == 2, pair))
		return;
	ck_assert_int_eq(nc_interface_of(pair[1]), lo);
	ck_assert_int_eq(option(pair[1], IPPROTO_IP, IP_PKTINFO), 0);
	if (_i) {
		ck_assert_int_eq(option(pair[1], IPPROTO_IPV6, IPV6_RECVPKTINFO), 0);
	} else {
		ck_assert_int_eq(setsockopt(pair[1], IPPROTO_IP, IP_PKTINFO, &on, sizeof(on)), 0);
		ck_assert_int_eq(nc_interface_of(pair[1]), lo);
		ck_assert_int_eq(option(pair[1], IPPROTO_IP, IP_PKTINFO), 1);
	}
	ck_assert_int_eq(nc_interface_of(pair[0]), -ENODATA);
	close_pair(pair);
}
END_TEST

START_TEST(test_no_connection)
{
	int datagrams = socket(AF_INET, SOCK_DGRAM, 0), ends[2];

	ck_assert_int_eq(nc_interface_of(-1), -EBADF);
	ck_assert_int_eq(pipe(ends), 0);
	ck_assert_int_eq(nc_interface_of(ends[0]), -ENOTSOCK);
	close_pair(ends);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	ck_assert_int_eq(nc_interface_of(ends[0]), -EAFNOSUPPORT);
	close_pair(ends);
	ck_assert_int_eq(nc_interface_of(datagrams), -ENOPROTOOPT);
	ck_assert_int_eq(option(datagrams, IPPROTO_IP, IP_PKTINFO), 0);
	close(datagrams);
}
END_TEST

/* Computes no checksums until its program says that it can; 0: not permitted here. */
static int make_tun(int *tun)
{
	struct ifreq interface = {.ifr_flags = IFF_TUN | IFF_NO_PI};

	*tun = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
	if (*tun < 0 || ioctl(*tun, TUNSETIFF, &interface) < 0)
		return 0;
	return (int)if_nametoindex(interface.ifr_name);
}

START_TEST(test_offloads)
{
	int any = socket(AF_INET, SOCK_DGRAM, 0), tun, index;

	ck_assert_int_eq(nc_interface_offloads(any, (int)if_nametoindex("lo")), 1);
	ck_assert_int_eq(nc_interface_offloads(any, 0x7fffffff), -ENODEV);
	ck_assert_int_eq(nc_interface_offloads(-1, 1), -EBADF);
	index = make_tun(&tun);
	if (index) {
		ck_assert_int_eq(nc_interface_offloads(any, index), 0);
		ck_assert_int_eq(ioctl(tun, TUNSETOFFLOAD, TUN_F_CSUM), 0);
		ck_assert_int_eq(nc_interface_offloads(any, index), 1);
	} else {
		printf("interface: offloads: skipped: only root can make network interfaces\n");
	}
	if (tun >= 0)
		close(tun);
	close(any);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_loop_test(tcase, test_accepted, 0, 3);
	tcase_add_test(tcase, test_no_connection);
	tcase_add_test(tcase, test_offloads);
}

RUN_SUITE("interface", fill)
