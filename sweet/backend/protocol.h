/* SPDX-License-Identifier: MIT */
/*
 * protocol.h - what a pool's protocol does: the interface between calls, in this folder, and
 * workers, CGI, FastCGI and HTTP, in gateway/.
 */
#ifndef SWEET_PROTOCOL_H
#define SWEET_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>

struct backend_call;
struct gateway_pool;
struct thread;
struct transaction;

/* The functions of a protocol.  They run on the call's thread unless stated otherwise. */
struct backend_protocol {
	bool redirects;	   /* programs may redirect to another path */
	bool takes_back;   /* calls may return unprocessed: call_queue_take_back() */
	bool wants_length; /* a body of unknown length is passed as a whole */
	bool validates;	   /* programs may be asked whether an outdated response has changed */
	bool frames_body;  /* states the length of a body itself, by backend_call.length */
	/* Programs say all that clients get: no Content-Type and no error page is added. */
	bool complete;
	/*
	 * Writes the block that describes a request to the program; the first skip bytes of its
	 * path name the pool.  Returns its bytes, or -1 if out is too small.
	 */
	long (*describe)(const struct gateway_pool *pool, const struct transaction *transaction,
			 size_t skip, char *out, size_t out_size);
	/* On the main thread, up to thread_ended(): */
	/*
	 * Initialises the protocol's part of a pool, before the first call.  Returns 0 or -errno.
	 */
	int (*open)(struct gateway_pool *pool);
	/* No more calls come: calls pool->ended() when only close() is left to do. */
	void (*end)(struct gateway_pool *pool);
	void (*close)(struct gateway_pool *pool); /* no thread uses the pool */
	void (*renew)(struct gateway_pool *pool); /* a reload kept the pool; may be NULL */
	/* The loop of one thread has ended, others run on; may be NULL. */
	void (*thread_ended)(struct gateway_pool *pool, struct thread *thread);
	/* On the call's thread: */
	/*
	 * Submits a call with its variables; false: no capacity.  Never responds before it returns.
	 */
	bool (*submit)(struct backend_call *call, const char *block, size_t length);
	/*
	 * Passes the next piece of the request body, the transaction's upload, to the program.
	 * submit() passes the first piece if upload_more is set.  Returns false if the program
	 * cannot get it.  NULL: bodies are passed as a whole.
	 */
	bool (*body)(struct backend_call *call);
	/* The rest of a body on disk cannot be read; NULL: bodies are not stored on disk. */
	void (*body_lost)(struct backend_call *call);
	/*
	 * Called while calls of the thread wait in a process behind a long one: withdraws the
	 * oldest and passes it to call_queue_move(), if another process can serve it sooner.  NULL:
	 * not supported.
	 */
	void (*relieve)(struct gateway_pool *pool, struct thread *thread);
	/* Returns the addresses in use (g_strfreev()), for the status; any thread.  May be NULL. */
	char **(*addresses)(const struct gateway_pool *pool);
	/* No process can take a call until the operator fixes the cause; may be NULL. */
	bool (*is_unavailable)(struct gateway_pool *pool);
	/* The response timed out; the client has disconnected: fails the call now or soon. */
	void (*too_late)(struct backend_call *call);
	void (*gone)(struct backend_call *call); /* NULL: wait for the response */
	/* Releases the resources of the response. */
	void (*finish)(struct backend_call *call);
};

#endif
