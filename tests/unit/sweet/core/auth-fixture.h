/* SPDX-License-Identifier: MIT */
/* auth-fixture.h - a file of users, and credentials that are checked against it. */
#ifndef AUTH_FIXTURE_H
#define AUTH_FIXTURE_H

#include <glib.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/slice.h"
#include "core/auth-check.h"
#include "core/auth.h"
#include "event/client-limit.h"
#include "event/loop.h"

#include "loop-fixture.h"
#include "suite.h"

struct auth;

/* Both for the password "geheim". */
#define SHA "{SHA}kGByAB793z4R5tK1eC9Hd/4Dhzk="
#define CRYPT "$1$abcd$SA/FcM82AK5uXDR69GPXS0"
#define CHECKS 300
#define THREADS 2 /* of the authenticator */

struct ask {
	struct auth_check check; /* must be first */
	struct auth *auth;
	union {
		struct sockaddr_in client;
		struct sockaddr_in6 client6;
	};
	struct slice field;
	unsigned (*others)(void); /* returns the answers of others, for before */
	unsigned before;
	enum auth_answer answer; /* given at once */
	unsigned answered;
	bool home; /* on the loop's thread */
};

static struct runner runner;
static struct client_limits *limits;
static struct authenticator *authenticator;
static struct ask asks[CHECKS + 1 + THREADS];
static char directory[64], path[80];

static inline void set_up(void)
{
	make_directory(directory);
	snprintf(path, sizeof(path), "%s/users", directory);
	limits = client_limits_open(1024);
	authenticator = authenticator_open(limits);
	ck_assert_ptr_nonnull(authenticator);
	runner_start(&runner, any_kind());
}

/* The loop has ended, or is about to. */
static inline void close_all(void)
{
	pthread_join(runner.thread, NULL);
	/* Its threads may still be about to wake the loop. */
	authenticator_close(authenticator);
	loop_close(runner.loop);
	close(runner.ends[1]);
	client_limits_close(limits);
	unlink(path);
	rmdir(directory);
}

static inline void tear_down(void)
{
	call(&runner, runner_end, &runner);
	close_all();
}

static inline void write_file(const char *text)
{
	ck_assert(g_file_set_contents(path, text, -1, NULL));
}

static inline struct auth *open_file(const char *text)
{
	struct auth *auth;
	char *why;

	write_file(text);
	auth = auth_open(authenticator, path, &why);
	ck_assert_msg(auth != NULL, "%s", why);
	return auth;
}

static inline void answered(struct auth_check *check)
{
	struct ask *ask = (struct ask *)check;

	ask->home = pthread_equal(pthread_self(), runner.thread);
	if (ask->others)
		ask->before = ask->others();
	EVENT(ask->answered++);
}

static inline void ask_now(void *argument)
{
	struct ask *ask = argument;

	ask->check.loop = runner.loop;
	ask->check.answered = answered;
	ask->answered = 0;
	ask->answer =
		auth_ask(ask->auth, &ask->check, (const struct sockaddr *)&ask->client, ask->field);
}

/* Starts a check of a field with that value. */
static inline enum auth_answer put(struct auth *auth, struct ask *ask, const char *field)
{
	ask->auth = auth;
	if (!ask->client.sin_family)
		ask->client = (struct sockaddr_in){.sin_family = AF_INET,
						   .sin_addr.s_addr = htonl(0xc0000201)};
	ask->field = (struct slice){field, strlen(field)};
	call(&runner, ask_now, ask);
	return ask->answer;
}

/* The same for user and password in plain text. */
static inline enum auth_answer put_plain(struct auth *auth, struct ask *ask, const char *plain)
{
	char *encoded = g_base64_encode((const guchar *)plain, strlen(plain));
	char *field = g_strconcat("Basic ", encoded, NULL);
	enum auth_answer answer = put(auth, ask, field);

	g_free(encoded);
	g_free(field);
	return answer;
}

/* Returns the final answer. */
static inline enum auth_answer answer(struct auth *auth, const char *plain)
{
	struct ask *ask = &asks[0];

	if (put_plain(auth, ask, plain) == AUTH_LATER)
		AWAIT(ask->answered == 1);
	return ask->check.answer;
}

#endif
