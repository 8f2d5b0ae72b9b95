/* SPDX-License-Identifier: MIT */
/* cork.c - sets and clears TCP_CORK; see cork.h. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "os/cork.h"

bool nc_cork_set(struct nc_corks *corks, int socket)
{
	int on = 0;
	socklen_t length = sizeof(on);

	if ((unsigned)socket >= NC_CORK_WORDS * 64)
		return false;
	if (nc_cork_is_set(corks, socket))
		/* ours, or left from a closed socket with this number: set it in any case */
		on = -1;
	else if (getsockopt(socket, IPPROTO_TCP, TCP_CORK, &on, &length) < 0)
		return false;
	if (on > 0)
		return true;
	on = 1;
	if (setsockopt(socket, IPPROTO_TCP, TCP_CORK, &on, sizeof(on)) < 0)
		return false;
	atomic_fetch_or_explicit(&corks->words[socket / 64], UINT64_C(1) << socket % 64,
				 memory_order_relaxed);
	return true;
}

void nc_cork_forget(struct nc_corks *corks, int socket)
{
	if (nc_cork_is_set(corks, socket))
		atomic_fetch_and_explicit(&corks->words[socket / 64], ~(UINT64_C(1) << socket % 64),
					  memory_order_relaxed);
}

void nc_cork_lift(struct nc_corks *corks, int socket)
{
	const int off = 0;

	if (!nc_cork_is_set(corks, socket))
		return;
	nc_cork_forget(corks, socket);
	(void)setsockopt(socket, IPPROTO_TCP, TCP_CORK, &off, sizeof(off));
}

void nc_cork_push(int socket)
{
	int on = 0, push = 1;
	socklen_t length = sizeof(on);

	/* Setting TCP_NODELAY sends what is queued, corked or not (tcp(7)). */
	if (getsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, &length) < 0 ||
	    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &push, sizeof(push)) < 0 || on)
		return;
	(void)setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}
