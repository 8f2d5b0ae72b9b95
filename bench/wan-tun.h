/* SPDX-License-Identifier: MIT */
/*
 * wan-tun.h - an end of the link: a TUN device in a network namespace.  It ends with
 * its descriptor.  The user of the program sets it up, with addresses.  One thread,
 * which must be the only one of its process.
 */
#ifndef WAN_TUN_H
#define WAN_TUN_H

#include <stdint.h>

struct wan_tun {
	int fd;	       /* not blocking: a packet a read, a packet a write */
	int space;     /* the namespace */
	char name[16]; /* of the device */
};

/*
 * space is a name that ip-netns(8) has given, or with a slash in it a path
 * like /proc/PID/ns/net.  0 or -errno.
 */
int wan_tun_open(struct wan_tun *tun, const char *space, const char *name);
void wan_tun_close(struct wan_tun *tun);

/*
 * Returns packets that the device has dropped before a read, and those that it did not
 * accept. 0 or -errno.
 */
int wan_tun_lost(const struct wan_tun *tun, uint64_t *tx_dropped, uint64_t *rx_dropped);

#endif
