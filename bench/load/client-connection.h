/* SPDX-License-Identifier: MIT */
/*
 * client-connection.h - one simulated client: its connection, its pending request and
 * the response.  All clients of a load share one thread.
 */
#ifndef CLIENT_CONNECTION_H
#define CLIENT_CONNECTION_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client-answer.h"
#include "client-histogram.h"
#include "client-pause.h"
#include "client-schedule.h"
#include "client-workload.h"

enum client_error {
	ERROR_CONNECT, /* no connection */
	ERROR_READ,    /* it broke, or ended before the response did */
	ERROR_WRITE,   /* it accepted no request */
	ERROR_STATUS,  /* another status than in the list */
	ERROR_TIMEOUT, /* no data for too long */
	ERROR_ANSWER,  /* data is not HTTP, or follows its end */
	ERROR_SIZE,    /* another length than in the list */
	ERROR_KINDS,
};

struct settings {
	struct sockaddr_in target;
	struct sockaddr_in *sources; /* used in turn; none: the system's choice */
	uint32_t source_count;
	uint32_t clients;
	uint64_t duration; /* microseconds */
	uint64_t requests; /* ends the load after that many; 0: no limit */
	uint64_t timeout;  /* maximum microseconds for a response */
	double rate;	   /* requests a second, answered or not; 0: as fast as possible */
	bool close;	   /* a connection for each request */
	bool delay_ack_syn, delay_ack_fin, fastopen;
};

struct results {
	uint64_t requests, body_bytes; /* answered correctly */
	uint64_t duration;	       /* microseconds */
	uint64_t errors[ERROR_KINDS];
	uint64_t connections;
	uint64_t again; /* retried: a kept connection had just been closed */
	uint64_t early; /* connections whose request was sent with the SYN */
	uint64_t late;	/* due, and not answered when the load ended */
	struct latency latency;
};

enum client_state {
	CLIENT_PAUSING,
	CLIENT_CONNECTING,
	CLIENT_SENDING,
	CLIENT_READING,
	CLIENT_LEAVING, /* until the server closes */
	CLIENT_STOPPED, /* all requests of the load were sent */
};

struct client {
	enum client_state state;
	int fd; /* -1: none */
	uint32_t number;
	uint32_t sent;	  /* bytes of the request */
	uint32_t answers; /* on this connection */
	bool retried;
	uint64_t asked_at; /* when the request began */
	uint64_t due_at;   /* when it was due: its time counts from then */
	const struct request *request;
	struct answer answer;
};

/* State that the clients of a load share. */
struct load {
	const struct settings *settings;
	struct workload *workload;
	struct results *results;
	struct pauses pauses;
	struct schedule schedule; /* with a rate: a free client takes the next instant */
	uint64_t began;
	struct client *clients;
	uint64_t given; /* requests */
	uint32_t stopped;
	uint32_t next_source;
	int epoll, timer;
	uint64_t armed; /* when the timer expires, or has expired */
	char *buffer;
};

#define LOAD_BUFFER ((size_t)16 << 10) /* the part of the buffer for one read */
#define LOAD_DROP ((size_t)16 << 20)   /* its size: dropped data is not written there */

/* Takes the next request of the workload, or stops. */
void client_next(struct load *load, struct client *client, uint64_t now);

/* The client's pause is over. */
void client_wake(struct load *load, struct client *client, uint64_t now);

/* Handles an event of epoll for its connection. */
void client_event(struct load *load, struct client *client, uint32_t events, uint64_t now);

/* Aborts a request that takes too long. */
void client_expire(struct load *load, struct client *client, uint64_t now);

void client_close(struct load *load, struct client *client);

#endif
