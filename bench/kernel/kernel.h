/* SPDX-License-Identifier: MIT */
/*
 * kernel.h - what the parts of "bench kernel" share, a program that runs in a
 * guest of QEMU, where each instruction takes a nanosecond, and tells how many
 * each way to send a document takes.
 *
 * One process that sends, beside those that receive, make documents and idle.
 * Ends by must() when anything fails.
 */
#ifndef NC_BENCH_KERNEL_H
#define NC_BENCH_KERNEL_H

#include "device.h"

/* --- count.c: instructions -------------------------------------------- */

/* Begins to tell instructions from idling; on one CPU. */
void count_begin(void);

/* Instructions of everything in this guest since count_begin(), but for idling. */
uint64_t count_busy(void);

/* --- peer.c: who receives ---------------------------------------------- */

/* A new connection to a process in the other namespace, or to an address "IP:PORT". */
int peer_connect(const char *sink);

/* Tells the peer that so many bytes come; then waits until it has had them. */
void peer_expect(int socket, uint64_t bytes);
void peer_await(int socket);

/* --- ways to send ------------------------------------------------------------- */

/*
 * init() before the first document and fini() after the last, of one size on
 * one connection, between which send() gives the socket one document.
 */
struct way {
	const char *name;
	void (*init)(size_t size, int socket);
	void (*send)(size_t size, int socket);
	void (*fini)(size_t size);
};

/* static.c: a document that is there, again and again; ends at a name of NULL. */
extern const struct way static_ways[];

/* dynamic.c: each made anew by another process, and sent once. */
extern const struct way dynamic_ways[];

/* --- zc.c: io_uring's SEND_ZC ------------------------------------------- */

/* A ring with this memory as registered buffers of the same size. */
void zc_init(void *buffers, unsigned int count, size_t size);
void zc_fini(void);

/* A buffer that the kernel does not refer to; waits for one. */
unsigned int zc_free(void);

/* Sends all of a buffer, which is not free until the kernel says so. */
void zc_send(int socket, unsigned int buffer);

/* --- documents ------------------------------------------------------------------ */

/* Makes one, as the workers of "bench dynamic" do. */
void document_fill(char *to, size_t size);

/* Memory that children share, in huge pages, of which registered buffers are best made. */
char *document_memory(size_t size);
void document_forget(char *memory, size_t size);

/* All of it to a socket, by write(). */
void document_write(int socket, const char *from, size_t size);

#endif
