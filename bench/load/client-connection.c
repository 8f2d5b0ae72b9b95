/* SPDX-License-Identifier: MIT */
/*
 * client-connection.c - one simulated client; see client-connection.h.  Its socket is
 * registered once, for edges of all kinds: a client waits only for the events of its
 * state.  Long bodies are dropped in the kernel.
 */
#include <errno.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client-connection.h"
#include "client-requests.h"

#define ERROR_PAUSE 10000 /* microseconds after an error, against a busy loop */
#define BUFFER 33000	  /* the kernel doubles it; the first window is about 64,000 */

void client_close(struct load *load, struct client *client)
{
	if (client->fd < 0)
		return;
	if (load->settings->fastopen) {
		struct tcp_info info;
		socklen_t length = sizeof(info);

		if (!getsockopt(client->fd, IPPROTO_TCP, TCP_INFO, &info, &length) &&
		    (info.tcpi_options & TCPI_OPT_SYN_DATA))
			load->results->early++;
	}
	close(client->fd);
	client->fd = -1;
}

static void pause_until(struct load *load, struct client *client, uint64_t until)
{
	client->state = CLIENT_PAUSING;
	pauses_add(&load->pauses, until, client->number);
}

/* Counts an error and continues with the next request after a while. */
static void fail(struct load *load, struct client *client, enum client_error error, uint64_t now)
{
	load->results->errors[error]++;
	client_close(load, client);
	client->request = NULL;
	pause_until(load, client, now + ERROR_PAUSE);
}

/* --- connecting and sending ---------------------------------------------- */

static void set_option(int fd, int name, int value)
{
	(void)setsockopt(fd, IPPROTO_TCP, name, &value, sizeof(value));
}

/*
 * The kernel delays acknowledgements on a socket that sends and receives in turn.  But
 * it does not if more than a segment of the known size has arrived, as with a FIN,
 * unless the window to announce is smaller than the announced one: therefore the
 * buffer is now a little smaller than that.  It may grow again.
 */
static void delay_acknowledgements(int fd)
{
	int size = BUFFER, lock = 0;

	set_option(fd, TCP_QUICKACK, 0);
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	(void)setsockopt(fd, SOL_SOCKET, SO_BUF_LOCK, &lock, sizeof(lock));
}

/* Long responses need their acknowledgements, and have no FIN worth waiting for. */
static bool short_answer(const struct request *request)
{
	return request->size <= LOAD_BUFFER || request->size == REQUEST_SIZE_ANY;
}

static int open_socket(struct load *load)
{
	const struct settings *settings = load->settings;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1;

	if (fd < 0)
		return fd;
	if (settings->source_count) {
		const struct sockaddr_in *source = &settings->sources[load->next_source];

		if (++load->next_source == settings->source_count)
			load->next_source = 0;
		/* The port is chosen at connect(), so that one port serves many targets. */
		(void)setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
		if (bind(fd, (const struct sockaddr *)source, sizeof(*source))) {
			close(fd);
			return -1;
		}
	}
	/* The kernel then merges the acknowledgement with the following request. */
	if (settings->delay_ack_syn)
		set_option(fd, TCP_DEFER_ACCEPT, 1);
	if (settings->fastopen)
		set_option(fd, TCP_FASTOPEN_CONNECT, 1);
	return fd;
}

static void send_request(struct load *load, struct client *client, uint64_t now);

static void open_connection(struct load *load, struct client *client, uint64_t now)
{
	const struct settings *settings = load->settings;
	struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
				    .data.ptr = client};
	bool connected;

	client->state = CLIENT_CONNECTING;
	client->answers = 0;
	client->fd = open_socket(load);
	if (client->fd < 0) {
		fail(load, client, ERROR_CONNECT, now);
		return;
	}
	connected = !connect(client->fd, (const struct sockaddr *)&settings->target,
			     sizeof(settings->target));
	if ((!connected && errno != EINPROGRESS) ||
	    epoll_ctl(load->epoll, EPOLL_CTL_ADD, client->fd, &event)) {
		fail(load, client, ERROR_CONNECT, now);
		return;
	}
	load->results->connections++;
	if (connected)
		send_request(load, client, now);
}

/* The server closed a kept connection before it read the request: retries. */
static bool ask_again(struct load *load, struct client *client, uint64_t now)
{
	if (!client->answers || client->retried || client->answer.begun)
		return false;
	client->retried = true;
	load->results->again++;
	client_close(load, client);
	open_connection(load, client, now);
	return true;
}

static void send_request(struct load *load, struct client *client, uint64_t now)
{
	const struct request *request = client->request;
	ssize_t sent;

	if (client->state != CLIENT_SENDING) {
		client->state = CLIENT_SENDING;
		client->sent = 0;
		answer_begin(&client->answer);
		if (load->settings->delay_ack_fin && !client->answers && short_answer(request))
			delay_acknowledgements(client->fd);
	}
	while (client->sent < request->length) {
		sent = send(client->fd, request->text + client->sent,
			    request->length - client->sent, MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR)
			continue;
		/* EINPROGRESS: TCP Fast Open has no cookie yet and connects first. */
		if (sent < 0 && (errno == EAGAIN || errno == EINPROGRESS))
			return;
		if (sent < 0) {
			if (!ask_again(load, client, now))
				fail(load, client, client->answers ? ERROR_WRITE : ERROR_CONNECT,
				     now);
			return;
		}
		client->sent += (uint32_t)sent;
	}
	/* The request was sent as an acknowledgement; those of the response must not wait. */
	if (load->settings->delay_ack_syn && !client->answers && !short_answer(request))
		set_option(client->fd, TCP_QUICKACK, 1);
	client->state = CLIENT_READING;
}

static void ask(struct load *load, struct client *client, uint64_t now)
{
	client->asked_at = now;
	if (load->settings->rate <= 0)
		client->due_at = now;
	client->retried = false;
	answer_begin(&client->answer);
	if (client->fd < 0)
		open_connection(load, client, now);
	else
		send_request(load, client, now);
}

void client_next(struct load *load, struct client *client, uint64_t now)
{
	const struct settings *settings = load->settings;
	struct step step;

	client->request = NULL;
	if (settings->requests && load->given == settings->requests) {
		client_close(load, client);
		client->state = CLIENT_STOPPED;
		load->stopped++;
		return;
	}
	load->given++;
	load->workload->kind->next(load->workload, client->number, &step);
	client->request = step.request;
	if (step.leave)
		client_close(load, client);
	if (settings->rate > 0) {
		/* A request that is already due has waited for a free client. */
		client->due_at = load->began + schedule_next(&load->schedule);
		step.pause = client->due_at > now ? client->due_at - now : 0;
	}
	if (step.pause)
		pause_until(load, client, now + step.pause);
	else
		ask(load, client, now);
}

void client_wake(struct load *load, struct client *client, uint64_t now)
{
	if (client->request)
		ask(load, client, now);
	else
		client_next(load, client, now); /* after an error */
}

/* --- reading ------------------------------------------------------------- */

/* The response is complete: checks that it is the right one. */
static void judge(struct load *load, struct client *client, uint64_t now)
{
	const struct request *request = client->request;
	const struct answer *answer = &client->answer;
	struct results *results = load->results;

	client->answers++;
	if (answer->status != request->status) {
		results->errors[ERROR_STATUS]++;
	} else if (request->size != REQUEST_SIZE_ANY && answer->body != request->size) {
		results->errors[ERROR_SIZE]++;
	} else {
		results->requests++;
		results->body_bytes += answer->body;
		latency_record(&results->latency, now - client->due_at);
	}
}

/* The connection has ended, by FIN (error 0) or otherwise. */
static void ended(struct load *load, struct client *client, bool reset, uint64_t now)
{
	switch (client->state) {
	case CLIENT_PAUSING:
		client_close(load, client);
		break;
	case CLIENT_LEAVING:
		if (reset) {
			fail(load, client, ERROR_READ, now);
			break;
		}
		client_close(load, client);
		client_next(load, client, now);
		break;
	case CLIENT_CONNECTING:
		fail(load, client, ERROR_CONNECT, now);
		break;
	default:
		if (!reset && client->answer.begun && answer_end(&client->answer)) {
			judge(load, client, now);
			client_close(load, client);
			client_next(load, client, now);
		} else if (!ask_again(load, client, now)) {
			fail(load, client, ERROR_READ, now);
		}
	}
}

/* After a complete response; returns false when nothing more is to be read now. */
static bool go_on(struct load *load, struct client *client, uint32_t events, uint64_t now)
{
	judge(load, client, now);
	if (load->settings->close) {
		/* The server closes first, so that TIME_WAIT is on its side. */
		client->state = CLIENT_LEAVING;
		return true;
	}
	/* The edge that reported an end is not repeated. */
	if (!answer_keeps(&client->answer) || (events & EPOLLRDHUP))
		client_close(load, client);
	client_next(load, client, now);
	return false;
}

/* Handles received bytes; returns false when nothing more is to be read now. */
static bool take(struct load *load, struct client *client, size_t got, uint32_t events,
		 uint64_t now)
{
	struct answer *answer = &client->answer;
	size_t taken = 0;

	if (client->state == CLIENT_READING || client->state == CLIENT_SENDING)
		taken = answer_feed(answer, load->buffer, got);
	if (taken < got || answer->state == ANSWER_BAD) {
		bool pausing = client->state == CLIENT_PAUSING;

		if (pausing) {
			/* No request is pending; the waiting one is sent on another connection. */
			load->results->errors[ERROR_ANSWER]++;
			client_close(load, client);
		} else {
			fail(load, client, ERROR_ANSWER, now);
		}
		return false;
	}
	return answer->state != ANSWER_DONE || go_on(load, client, events, now);
}

/* Reads once; returns false when nothing more is to be read now. */
static bool read_some(struct load *load, struct client *client, uint32_t events, uint64_t now)
{
	struct answer *answer = &client->answer;
	bool reading = client->state == CLIENT_READING;
	uint64_t drop = reading ? answer_droppable(answer) : 0;
	size_t wanted = LOAD_BUFFER;
	ssize_t got;

	if (drop >= LOAD_BUFFER) {
		wanted = drop < LOAD_DROP ? drop : LOAD_DROP;
		got = recv(client->fd, load->buffer, wanted, MSG_TRUNC);
	} else {
		got = recv(client->fd, load->buffer, wanted, 0);
		drop = 0;
	}
	if (got < 0) {
		if (errno == EINTR)
			return true;
		if (errno != EAGAIN)
			ended(load, client, true, now);
		return false;
	}
	if (!got) {
		ended(load, client, false, now);
		return false;
	}
	if (drop) {
		answer_drop(answer, (uint64_t)got);
		if (answer->state == ANSWER_DONE && !go_on(load, client, events, now))
			return false;
	} else if (!take(load, client, (size_t)got, events, now)) {
		return false;
	}
	/* A short read has emptied the socket. */
	return (size_t)got == wanted || (events & EPOLLRDHUP);
}

/* Whether a connection was refused or broken while it was made. */
static bool broken(const struct client *client)
{
	int error = 0;
	socklen_t length = sizeof(error);

	return getsockopt(client->fd, SOL_SOCKET, SO_ERROR, &error, &length) || error;
}

void client_event(struct load *load, struct client *client, uint32_t events, uint64_t now)
{
	int fd = client->fd;

	if (client->state == CLIENT_CONNECTING && (events & (EPOLLERR | EPOLLHUP)) &&
	    broken(client)) {
		fail(load, client, ERROR_CONNECT, now);
		return;
	}
	if ((client->state == CLIENT_CONNECTING || client->state == CLIENT_SENDING) &&
	    (events & EPOLLOUT)) {
		send_request(load, client, now);
		if (client->fd != fd)
			return;
	}
	if (!(events & (EPOLLIN | EPOLLRDHUP | EPOLLERR | EPOLLHUP)) ||
	    client->state == CLIENT_CONNECTING)
		return;
	/* Our FIN then also acknowledges that of the server. */
	if (load->settings->delay_ack_fin && (events & EPOLLRDHUP) &&
	    client->state == CLIENT_READING)
		(void)shutdown(client->fd, SHUT_WR);
	while (read_some(load, client, events, now))
		;
}

void client_expire(struct load *load, struct client *client, uint64_t now)
{
	if (client->state == CLIENT_PAUSING || client->state == CLIENT_STOPPED ||
	    now - client->asked_at < load->settings->timeout)
		return;
	fail(load, client, ERROR_TIMEOUT, now);
}
