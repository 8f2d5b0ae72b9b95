/* SPDX-License-Identifier: MIT */
/*
 * auth.c - see auth.h.
 *
 * auth_ask() and done() run on the thread of the question's loop, work() on
 * one of the authenticator's.  A file's users are constant once read: who
 * reads the file anew puts other users in their place, under the lock.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#include <glib.h>

#include "base/clock.h"
#include "core/auth.h"
#include "log/log.h"

#define THREADS 2
#define CHECKS_MAX 256 /* that wait for a thread or have one */
#define SECOND UINT64_C(1000000000)
#define REMEMBER_NS (300 * SECOND)
#define SETS 128
#define WAYS 8
#define DIGEST 32
/* Wrong passwords of a client: so many at once, and then one each interval. */
#define FAILURES 20
#define FAILURE_NS (2 * SECOND)

/* A client that has checks; in the queue of turns as long as one of them waits. */
struct auth_client {
	struct limit_address address;
	struct auth_check *first, *last; /* that wait */
	unsigned checks;		 /* with those of threads */
	GList turn;			 /* its link in the queue of turns; data: itself */
};

/* Credentials that were right. */
struct memory {
	uint8_t digest[DIGEST];
	uint64_t until_ns;
};

struct authenticator {
	pthread_mutex_t lock; /* of all but the constants */
	struct limits *limits;
	struct rate_limit *failures;
	struct helpers *helpers; /* NULL until a file is opened */
	struct auth_check *checks;
	unsigned check_count, working;		 /* that wait or have a thread; that have one */
	GQueue turns;				 /* of clients with checks that wait */
	struct auth_client *clients[CHECKS_MAX]; /* those that have checks, then the spare ones */
	unsigned client_count;
	struct auth_client memory[CHECKS_MAX];
	uint8_t salt[DIGEST];
	struct memory memories[SETS][WAYS];
};

struct auth {
	_Atomic unsigned references;
	struct authenticator *authenticator;
	char *path;
	_Atomic uint64_t looked_ns; /* when somebody last set out to look at the file */
	pthread_mutex_t lock;	    /* of what follows */
	struct htpasswd *users;
	struct stat version;
	char *wrong; /* with the file as it is now, and said; NULL: nothing */
	bool told;   /* that a hash is not known here, since the file was read */
};

/* --- opening and closing ---------------------------------------------------------- */

struct authenticator *authenticator_open(struct limits *limits)
{
	struct authenticator *authenticator = g_new0(struct authenticator, 1);

	authenticator->limits = limits;
	authenticator->failures = rate_new("failures of authentication", 1, FAILURES);
	if (!authenticator->failures || getrandom(authenticator->salt, DIGEST, 0) != DIGEST) {
		rate_free(authenticator->failures);
		g_free(authenticator);
		return NULL;
	}
	authenticator->failures->interval_ns = FAILURE_NS;
	authenticator->failures->burst_ns = (FAILURES - 1) * FAILURE_NS;
	for (unsigned i = 0; i < CHECKS_MAX; i++)
		authenticator->clients[i] = &authenticator->memory[i];
	pthread_mutex_init(&authenticator->lock, NULL);
	return authenticator;
}

static void leave(struct auth_check *check)
{
	struct authenticator *authenticator = check->auth->authenticator;

	pthread_mutex_lock(&authenticator->lock);
	*check->link = check->next;
	if (check->next)
		check->next->link = check->link;
	pthread_mutex_unlock(&authenticator->lock);
	explicit_bzero(check->password, sizeof(check->password));
	auth_release(check->auth);
}

void authenticator_close(struct authenticator *authenticator)
{
	if (!authenticator)
		return;
	helper_close(authenticator->helpers);
	while (authenticator->checks) {
		struct auth_check *check = authenticator->checks;

		leave(check);
		check->answer = AUTH_BUSY;
		check->answered(check);
	}
	rate_free(authenticator->failures);
	pthread_mutex_destroy(&authenticator->lock);
	explicit_bzero(authenticator, sizeof(*authenticator));
	g_free(authenticator);
}

static bool same_version(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* What a file is like; zeros when it may change once more within the grain of its times. */
static struct stat look(const char *path)
{
	struct stat version = {0};
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (stat(path, &version) < 0 || now.tv_sec - version.st_ctim.tv_sec <= 1)
		memset(&version, 0, sizeof(version));
	return version;
}

static bool open_threads(struct authenticator *authenticator)
{
	bool good;

	pthread_mutex_lock(&authenticator->lock);
	if (!authenticator->helpers)
		authenticator->helpers = helper_open(THREADS);
	good = authenticator->helpers != NULL;
	pthread_mutex_unlock(&authenticator->lock);
	return good;
}

struct auth *auth_open(struct authenticator *authenticator, const char *path, char **why)
{
	struct stat version = look(path);
	struct htpasswd *users = htpasswd_read(path, why);
	struct auth *auth;

	if (!users)
		return NULL;
	if (!open_threads(authenticator)) {
		*why = g_strdup_printf("cannot start threads: %s", strerror(errno));
		htpasswd_release(users);
		return NULL;
	}
	auth = g_new0(struct auth, 1);
	atomic_init(&auth->references, 1);
	auth->authenticator = authenticator;
	auth->path = g_strdup(path);
	auth->users = users;
	auth->version = version;
	pthread_mutex_init(&auth->lock, NULL);
	return auth;
}

struct auth *auth_hold(struct auth *auth)
{
	atomic_fetch_add_explicit(&auth->references, 1, memory_order_relaxed);
	return auth;
}

void auth_release(struct auth *auth)
{
	if (!auth || atomic_fetch_sub_explicit(&auth->references, 1, memory_order_acq_rel) != 1)
		return;
	htpasswd_release(auth->users);
	pthread_mutex_destroy(&auth->lock);
	g_free(auth->path);
	g_free(auth->wrong);
	g_free(auth);
}

/* --- turns ------------------------------------------------------------------------ */

/* The client of that address, or a new one; there is one for each check at most. */
static struct auth_client *find_client_locked(struct authenticator *authenticator,
					      const struct limit_address *address)
{
	struct auth_client *client;

	for (unsigned i = 0; i < authenticator->client_count; i++)
		if (memcmp(&authenticator->clients[i]->address, address, sizeof(*address)) == 0)
			return authenticator->clients[i];
	if (authenticator->client_count == CHECKS_MAX)
		return NULL;
	client = authenticator->clients[authenticator->client_count++];
	*client = (struct auth_client){.address = *address};
	return client;
}

/* The check waits no more and has no thread any more. */
static void remove_check_locked(struct authenticator *authenticator, struct auth_check *check)
{
	struct auth_client *client = check->of;
	unsigned i = 0;

	check->of = NULL;
	authenticator->check_count--;
	if (--client->checks > 0)
		return;
	while (authenticator->clients[i] != client)
		i++;
	authenticator->clients[i] = authenticator->clients[--authenticator->client_count];
	authenticator->clients[authenticator->client_count] = client;
}

static void add_turn_locked(struct authenticator *authenticator, struct auth_client *client)
{
	client->turn.data = client;
	g_queue_push_tail_link(&authenticator->turns, &client->turn);
}

static void remove_turn_locked(struct authenticator *authenticator, struct auth_client *client)
{
	g_queue_unlink(&authenticator->turns, &client->turn);
}

static void add_waiting_locked(struct authenticator *authenticator, struct auth_client *client,
			       struct auth_check *check)
{
	check->of = client;
	check->later = NULL;
	client->checks++;
	authenticator->check_count++;
	if (client->first) {
		client->last->later = check;
	} else {
		client->first = check;
		add_turn_locked(authenticator, client);
	}
	client->last = check;
}

/* The check that a thread shall do next, which is to be submitted; NULL: none, or no thread is idle. */
static struct auth_check *next_locked(struct authenticator *authenticator)
{
	struct auth_client *client = g_queue_peek_head(&authenticator->turns);
	struct auth_check *check;

	if (!client || authenticator->working == THREADS)
		return NULL;
	check = client->first;
	client->first = check->later;
	remove_turn_locked(authenticator, client);
	if (client->first)
		add_turn_locked(authenticator, client);
	authenticator->working++;
	return check;
}

/* The last waiting check of that client, which waits no more. */
static struct auth_check *drop_last_locked(struct authenticator *authenticator,
					   struct auth_client *client)
{
	struct auth_check *check = client->last, *before = client->first;

	if (before == check) {
		client->first = NULL;
		remove_turn_locked(authenticator, client);
	} else {
		while (before->later != check)
			before = before->later;
		before->later = NULL;
		client->last = before;
	}
	remove_check_locked(authenticator, check);
	return check;
}

/*
 * A place for one more check of a client that has `checks`, taken from the one
 * that has the most, if that is more even then.  NULL: there is none.
 */
static struct auth_check *make_place_locked(struct authenticator *authenticator, unsigned checks)
{
	struct auth_client *most = NULL;

	for (unsigned i = 0; i < authenticator->client_count; i++) {
		struct auth_client *client = authenticator->clients[i];

		if (client->first && client->checks > checks + 1 &&
		    (!most || client->checks > most->checks))
			most = client;
	}
	return most ? drop_last_locked(authenticator, most) : NULL;
}

/* --- the file --------------------------------------------------------------------- */

static struct htpasswd *hold_users(struct auth *auth)
{
	struct htpasswd *users;

	pthread_mutex_lock(&auth->lock);
	users = htpasswd_hold(auth->users);
	pthread_mutex_unlock(&auth->lock);
	return users;
}

/* True for one caller, when a second has gone by. */
static bool is_due(struct auth *auth, uint64_t now_ns)
{
	uint64_t looked = atomic_load_explicit(&auth->looked_ns, memory_order_relaxed);

	return (looked == 0 || (now_ns > looked && now_ns - looked >= SECOND)) &&
	       atomic_compare_exchange_strong(&auth->looked_ns, &looked, now_ns);
}

/* On a thread of the authenticator. */
static void refresh(struct auth *auth)
{
	struct stat version, before;
	struct htpasswd *users;
	char *why = NULL;

	/* Before the file is read: a change between the two is seen the next time. */
	version = look(auth->path);
	pthread_mutex_lock(&auth->lock);
	before = auth->version;
	pthread_mutex_unlock(&auth->lock);
	if (version.st_ino != 0 && same_version(&version, &before))
		return;
	users = htpasswd_read(auth->path, &why);
	pthread_mutex_lock(&auth->lock);
	if (!users && g_strcmp0(why, auth->wrong) != 0)
		log_warning("%s; the users that were read before stay", why);
	g_free(auth->wrong);
	auth->wrong = why;
	auth->version = version;
	auth->told = false;
	if (users) {
		htpasswd_release(auth->users);
		auth->users = users;
	}
	pthread_mutex_unlock(&auth->lock);
}

/* --- what is remembered ------------------------------------------------------------- */

static void digest(const struct authenticator *authenticator, const char *hash,
		   const struct auth_check *check, uint8_t out[DIGEST])
{
	GHmac *hmac = g_hmac_new(G_CHECKSUM_SHA256, authenticator->salt, DIGEST);
	gsize length = DIGEST;

	/* With their NULs, which none of them has inside. */
	g_hmac_update(hmac, (const guchar *)hash, (gssize)strlen(hash) + 1);
	g_hmac_update(hmac, (const guchar *)check->user, (gssize)strlen(check->user) + 1);
	g_hmac_update(hmac, (const guchar *)check->password, (gssize)strlen(check->password) + 1);
	g_hmac_get_digest(hmac, out, &length);
	g_hmac_unref(hmac);
}

static bool is_remembered(struct authenticator *authenticator, const char *hash,
			  const struct auth_check *check, uint64_t now_ns)
{
	struct memory *set;
	uint8_t key[DIGEST];
	bool found = false;

	digest(authenticator, hash, check, key);
	set = authenticator->memories[key[0] % SETS];
	pthread_mutex_lock(&authenticator->lock);
	for (unsigned i = 0; i < WAYS; i++)
		found |= set[i].until_ns > now_ns && htpasswd_equal(set[i].digest, key, DIGEST);
	pthread_mutex_unlock(&authenticator->lock);
	return found;
}

static void remember(struct authenticator *authenticator, const char *hash,
		     const struct auth_check *check, uint64_t now_ns)
{
	struct memory *set, *spare;
	uint8_t key[DIGEST];

	digest(authenticator, hash, check, key);
	set = spare = authenticator->memories[key[0] % SETS];
	pthread_mutex_lock(&authenticator->lock);
	for (unsigned i = 0; i < WAYS; i++) {
		if (htpasswd_equal(set[i].digest, key, DIGEST)) {
			spare = &set[i];
			break;
		}
		if (set[i].until_ns < spare->until_ns)
			spare = &set[i];
	}
	memcpy(spare->digest, key, DIGEST);
	spare->until_ns = now_ns + REMEMBER_NS;
	pthread_mutex_unlock(&authenticator->lock);
}

/* --- checking ------------------------------------------------------------------------ */

static bool verify(struct auth *auth, const char *hash, const struct auth_check *check)
{
	int error = htpasswd_verify(hash, check->password);
	bool tell;

	if (error != -ENOTSUP)
		return error == 0;
	pthread_mutex_lock(&auth->lock);
	tell = !auth->told;
	auth->told = true;
	pthread_mutex_unlock(&auth->lock);
	if (tell)
		log_warning("%s: crypt(3) of this system does not know the form of the password "
			    "of user \"%s\": make the line with \"htpasswd -B\" (bcrypt)",
			    auth->path, check->user);
	return false;
}

/* The thread of a check that is over is for the next one. */
static void pass_on(struct authenticator *authenticator, struct auth_check *check)
{
	struct auth_check *next;

	pthread_mutex_lock(&authenticator->lock);
	remove_check_locked(authenticator, check);
	authenticator->working--;
	next = next_locked(authenticator);
	pthread_mutex_unlock(&authenticator->lock);
	if (next)
		helper_submit(authenticator->helpers, &next->job);
}

static void work(struct job *job)
{
	struct auth_check *check =
		(struct auth_check *)((char *)job - offsetof(struct auth_check, job));
	struct auth *auth = check->auth;
	struct htpasswd *users;
	const char *hash;

	if (check->refresh)
		refresh(auth);
	users = hold_users(auth);
	hash = htpasswd_find(users, check->user);
	check->answer = AUTH_NO;
	if (hash && is_remembered(auth->authenticator, hash, check, clock_monotonic_ns())) {
		check->answer = AUTH_YES;
	} else if (hash && verify(auth, hash, check)) {
		remember(auth->authenticator, hash, check, clock_monotonic_ns());
		check->answer = AUTH_YES;
	} else if (!hash && htpasswd_any(users)) {
		/* The time that this takes shall not tell who has an account. */
		(void)htpasswd_verify(htpasswd_any(users), check->password);
	}
	htpasswd_release(users);
	pass_on(auth->authenticator, check);
}

static void done(struct job *job)
{
	struct auth_check *check =
		(struct auth_check *)((char *)job - offsetof(struct auth_check, job));
	struct authenticator *authenticator = check->auth->authenticator;

	/* One that was not looked at was no wrong one. */
	if (check->answer != AUTH_NO && check->taken)
		limits_put_back(authenticator->limits, authenticator->failures, &check->client);
	leave(check);
	check->answered(check);
}

/* --- asking --------------------------------------------------------------------------- */

/* Takes user and password out of the field. */
static bool read_field(struct slice field, struct auth_check *check)
{
	char encoded[(HTPASSWD_USER_MAX + 1 + AUTH_PASSWORD_MAX + 2) / 3 * 4 + 1];
	guchar decoded[sizeof(encoded)];
	gint state = 0;
	guint save = 0;
	size_t length, user;
	const guchar *colon;

	if (field.length < 6 || strncasecmp(field.at, "Basic ", 6) != 0)
		return false;
	field.at += 6;
	field.length -= 6;
	while (field.length && *field.at == ' ') {
		field.at++;
		field.length--;
	}
	if (field.length >= sizeof(encoded) || field.length % 4 != 0)
		return false;
	memcpy(encoded, field.at, field.length);
	encoded[field.length] = '\0';
	/* The decoder skips what it does not know. */
	length =
		strspn(encoded, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/");
	if (length + strspn(encoded + length, "=") != field.length || field.length - length > 2)
		return false;
	length = g_base64_decode_step(encoded, field.length, decoded, &state, &save);
	colon = memchr(decoded, ':', length);
	if (!colon || memchr(decoded, '\0', length))
		return false;
	user = (size_t)(colon - decoded);
	if (user > HTPASSWD_USER_MAX || length - user - 1 > AUTH_PASSWORD_MAX)
		return false;
	memcpy(check->user, decoded, user);
	check->user[user] = '\0';
	memcpy(check->password, colon + 1, length - user - 1);
	check->password[length - user - 1] = '\0';
	explicit_bzero(encoded, sizeof(encoded));
	explicit_bzero(decoded, sizeof(decoded));
	return true;
}

static void dropped(struct loop_task *task)
{
	struct auth_check *check =
		(struct auth_check *)((char *)task - offsetof(struct auth_check, job.task));

	done(&check->job);
}

/* Who has given up its place for another hears so on its own thread. */
static void drop(struct auth_check *check)
{
	check->answer = AUTH_BUSY;
	if (check->refresh)
		atomic_store(&check->auth->looked_ns, 0);
	check->job.task.run = dropped;
	loop_post(check->loop, &check->job.task);
}

/* False: too many wait, and none has a larger share than this one's client. */
static bool enter(struct authenticator *authenticator, struct auth_check *check)
{
	struct auth_check *victim = NULL, *next = NULL;
	struct auth_client *client;
	bool room;

	pthread_mutex_lock(&authenticator->lock);
	client = find_client_locked(authenticator, &check->client);
	if (client && authenticator->check_count == CHECKS_MAX)
		victim = make_place_locked(authenticator, client->checks);
	/* There are as many clients as checks at most: without one there is no room, either. */
	room = client && authenticator->check_count < CHECKS_MAX;
	if (room) {
		add_waiting_locked(authenticator, client, check);
		next = next_locked(authenticator);
		check->next = authenticator->checks;
		check->link = &authenticator->checks;
		if (check->next)
			check->next->link = &check->next;
		authenticator->checks = check;
	} else if (client && client->checks == 0) {
		authenticator->client_count--; /* the newest is the last */
	}
	pthread_mutex_unlock(&authenticator->lock);
	if (victim)
		drop(victim);
	if (next)
		helper_submit(authenticator->helpers, &next->job);
	return room;
}

/* The answer, if it can be given without a thread; else AUTH_LATER. */
static enum auth_answer ask_here(struct auth *auth, struct auth_check *check,
				 const struct sockaddr *client)
{
	struct authenticator *authenticator = auth->authenticator;
	uint64_t now = clock_monotonic_ns(), wait;
	struct htpasswd *users = hold_users(auth);
	const char *hash = htpasswd_find(users, check->user);
	bool remembered = hash && is_remembered(authenticator, hash, check, now);

	htpasswd_release(users);
	if (remembered) {
		check->refresh = is_due(auth, now);
		return check->refresh ? AUTH_LATER : AUTH_YES;
	}
	/* Before it is known, or many at once would all come through. */
	wait = limits_take(authenticator->limits, authenticator->failures, client, now);
	check->wait_s = (unsigned)((wait + SECOND - 1) / SECOND);
	check->taken = wait == 0;
	/* Who is turned away must not use up the look at the file. */
	check->refresh = check->taken && is_due(auth, now);
	return wait ? AUTH_WAIT : AUTH_LATER;
}

enum auth_answer auth_ask(struct auth *auth, struct auth_check *check,
			  const struct sockaddr *client, struct slice field)
{
	check->user[0] = '\0';
	check->wait_s = 0;
	check->taken = false;
	check->answer = AUTH_NO;
	if (!read_field(field, check))
		return AUTH_NO;
	check->answer = ask_here(auth, check, client);
	if (check->answer != AUTH_LATER) {
		explicit_bzero(check->password, sizeof(check->password));
		return check->answer;
	}
	check->auth = auth_hold(auth);
	check->client = limit_address(client);
	check->job = (struct job){.work = work, .done = done, .loop = check->loop};
	/* Its answer may be there as soon as it has entered. */
	if (enter(auth->authenticator, check))
		return AUTH_LATER;
	check->answer = AUTH_BUSY;
	if (check->refresh)
		atomic_store(&auth->looked_ns, 0);
	if (check->taken)
		limits_put_back(auth->authenticator->limits, auth->authenticator->failures,
				&check->client);
	explicit_bzero(check->password, sizeof(check->password));
	auth_release(auth);
	return AUTH_BUSY;
}

size_t auth_challenge(const char *realm, char *out, size_t out_size)
{
	static const char before[] = "WWW-Authenticate: Basic realm=\"";
	static const char behind[] = "\", charset=\"UTF-8\"\r\n";
	size_t length = sizeof(before) - 1;

	if (out_size < sizeof(before) + sizeof(behind) + 2 * strlen(realm))
		return 0;
	memcpy(out, before, length);
	for (; *realm; realm++) {
		if (*realm == '"' || *realm == '\\')
			out[length++] = '\\';
		/* A control character has no place in a field. */
		out[length++] = (unsigned char)*realm < ' ' || *realm == 0x7f ? ' ' : *realm;
	}
	memcpy(out + length, behind, sizeof(behind) - 1);
	return length + sizeof(behind) - 1;
}
