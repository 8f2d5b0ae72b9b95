/* SPDX-License-Identifier: MIT */
/*
 * auth-file.c - the users of one password file, which is read again when it has changed.
 *
 * The users never change once they are read: a new read replaces all of them, under the lock.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <glib.h>

#include "auth/htpasswd.h"
#include "base/container.h"
#include "base/list.h"
#include "core/auth-check.h"
#include "core/auth-internal.h"
#include "core/auth.h"
#include "event/thread-pool.h"
#include "log/log.h"

static bool same_version(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* Returns the file's status; zeros if another change could leave its time stamp the same. */
static struct stat look(const char *path)
{
	struct stat version = {0};
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (stat(path, &version) < 0 || now.tv_sec - version.st_ctim.tv_sec <= 1)
		memset(&version, 0, sizeof(version));
	return version;
}

struct auth *auth_open(struct authenticator *authenticator, const char *path, char **why)
{
	struct stat version = look(path);
	struct htpasswd *users = htpasswd_read(path, why);
	struct auth *auth;

	if (!users)
		return NULL;
	if (!auth_open_threads(authenticator)) {
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

struct htpasswd *auth_hold_users(struct auth *auth)
{
	struct htpasswd *users;

	pthread_mutex_lock(&auth->lock);
	users = htpasswd_hold(auth->users);
	pthread_mutex_unlock(&auth->lock);
	return users;
}

/* Returns true for one caller, once a second. */
bool auth_is_due(struct auth *auth, uint64_t now_ns)
{
	uint64_t looked = atomic_load_explicit(&auth->looked_ns, memory_order_relaxed);

	return (looked == 0 || (now_ns > looked && now_ns - looked >= AUTH_SECOND_NS)) &&
	       atomic_compare_exchange_strong(&auth->looked_ns, &looked, now_ns);
}

/* Runs on a thread of the authenticator. */
void auth_refresh(struct auth *auth)
{
	struct stat version, before;
	struct htpasswd *users;
	char *why = NULL;

	/* Before the read: a change during the read is seen the next time. */
	version = look(auth->path);
	pthread_mutex_lock(&auth->lock);
	before = auth->version;
	pthread_mutex_unlock(&auth->lock);
	if (version.st_ino != 0 && same_version(&version, &before))
		return;
	users = htpasswd_read(auth->path, &why);
	pthread_mutex_lock(&auth->lock);
	if (!users && g_strcmp0(why, auth->wrong) != 0)
		log_warning("%s; the previous users stay valid", why);
	g_free(auth->wrong);
	auth->wrong = why;
	auth->version = version;
	auth->reported = false;
	if (users) {
		htpasswd_release(auth->users);
		auth->users = users;
	}
	pthread_mutex_unlock(&auth->lock);
}

static void auth_file_refresh(struct job *job)
{
	auth_refresh(container_of(job, struct auth, refresh));
}

static void auth_file_refreshed(struct job *job)
{
	struct auth *auth = container_of(job, struct auth, refresh);
	struct authenticator *authenticator = auth->authenticator;

	pthread_mutex_lock(&authenticator->lock);
	list_remove(&auth->refreshing);
	pthread_mutex_unlock(&authenticator->lock);
	auth_release(auth);
}

void auth_refresh_beside(struct auth *auth, struct loop *loop)
{
	struct authenticator *authenticator = auth->authenticator;
	bool first;

	pthread_mutex_lock(&authenticator->lock);
	first = !list_is_linked(&auth->refreshing);
	if (first)
		list_append(&authenticator->refreshes, &auth_hold(auth)->refreshing);
	pthread_mutex_unlock(&authenticator->lock);
	if (!first)
		return;
	auth->refresh = (struct job){.work = auth_file_refresh,
				     .done = auth_file_refreshed,
				     .loop = loop,
				     .class = JOB_QUICK};
	thread_pool_submit(authenticator->thread_pool, &auth->refresh);
}

bool auth_verify(struct auth *auth, const char *hash, const struct auth_check *check)
{
	int error = htpasswd_verify(hash, check->password);
	bool report;

	if (error != -ENOTSUP)
		return error == 0;
	pthread_mutex_lock(&auth->lock);
	report = !auth->reported;
	auth->reported = true;
	pthread_mutex_unlock(&auth->lock);
	if (report)
		log_warning("%s: crypt(3) of this system does not support the hash of the password "
			    "of user \"%s\": make the line with \"htpasswd -B\" (bcrypt)",
			    auth->path, check->user);
	return false;
}
