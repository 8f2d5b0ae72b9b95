/* SPDX-License-Identifier: MIT */
/*
 * dav-locks.c - see dav-locks.h.
 *
 * A table leads from a path to the locks whose root it is; the locks that cover a path are found at
 * the path and at the folders above it.  Expired locks are removed when they are met.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <glib.h>

#include "base/list.h"
#include "base/path-prefix.h"
#include "dav/dav-locks.h"

struct lock {
	struct dav_lock lock; /* its texts are this lock's own */
	char token[DAV_TOKEN_SIZE];
};

struct dav_locks {
	pthread_mutex_t mutex;
	GHashTable *roots; /* from a path to a GPtrArray of struct lock */
	unsigned count, most;
	struct list changes; /* that have begun */
};

static void free_lock(void *data)
{
	struct lock *lock = data;

	g_free((char *)(uintptr_t)lock->lock.path);
	g_free((char *)(uintptr_t)lock->lock.href);
	g_free((char *)(uintptr_t)lock->lock.user);
	g_free((char *)(uintptr_t)lock->lock.owner);
	g_free(lock);
}

static void free_array(void *data)
{
	g_ptr_array_unref(data);
}

struct dav_locks *dav_locks_open(unsigned most)
{
	struct dav_locks *locks = calloc(1, sizeof(*locks));

	if (!locks)
		return NULL;
	pthread_mutex_init(&locks->mutex, NULL);
	locks->roots = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_array);
	locks->most = most;
	return locks;
}

void dav_locks_close(struct dav_locks *locks)
{
	if (!locks)
		return;
	g_hash_table_destroy(locks->roots);
	pthread_mutex_destroy(&locks->mutex);
	free(locks);
}

static bool overlap(const struct dav_change *change, const struct dav_lock *lock)
{
	return strcmp(change->path, lock->path) == 0 ||
	       (change->deep && path_lies_in(lock->path, change->path)) ||
	       (lock->deep && path_lies_in(change->path, lock->path));
}

/* --- finding ------------------------------------------------------------------------- */

static void drop_expired(struct dav_locks *locks, GPtrArray *array, uint64_t now)
{
	for (guint i = 0; i < array->len;) {
		const struct lock *lock = array->pdata[i];

		if (lock->lock.expires_ns > now) {
			i++;
			continue;
		}
		g_ptr_array_remove_index_fast(array, i);
		locks->count--;
	}
}

static gboolean is_empty(void *path, void *array, void *locks)
{
	(void)path;
	(void)locks;
	return ((const GPtrArray *)array)->len == 0;
}

/* Removes all expired locks: when the table is full, or each of them is looked at anyway. */
static void purge(struct dav_locks *locks, uint64_t now)
{
	GHashTableIter iter;
	void *array;

	g_hash_table_iter_init(&iter, locks->roots);
	while (g_hash_table_iter_next(&iter, NULL, &array))
		drop_expired(locks, array, now);
	g_hash_table_foreach_remove(locks->roots, is_empty, NULL);
}

/* Returns the locks that have their root there, or NULL. */
static GPtrArray *rooted(struct dav_locks *locks, const char *path, uint64_t now)
{
	GPtrArray *array = g_hash_table_lookup(locks->roots, path);

	if (!array)
		return NULL;
	drop_expired(locks, array, now);
	if (array->len)
		return array;
	g_hash_table_remove(locks->roots, path);
	return NULL;
}

/* Calls visit() for the locks that cover the path until it returns true. */
static struct lock *find_covering(struct dav_locks *locks, const char *path, uint64_t now,
				  bool (*visit)(struct lock *lock, void *context), void *context)
{
	char *folder = g_strdup(path), *slash = folder;
	struct lock *found = NULL;

	while (slash && !found) {
		GPtrArray *array = rooted(locks, folder, now);
		bool itself = strlen(folder) == strlen(path);

		for (guint i = 0; array && i < array->len && !found; i++) {
			struct lock *lock = array->pdata[i];

			if ((itself || lock->lock.deep) && visit(lock, context))
				found = lock;
		}
		slash = strrchr(folder, '/');
		if (slash)
			*slash = '\0';
	}
	g_free(folder);
	return found;
}

static bool is_any(struct lock *lock, void *context)
{
	(void)lock;
	(void)context;
	return true;
}

static bool has_token(struct lock *lock, void *context)
{
	const struct slice *token = context;

	return token->length == DAV_TOKEN_SIZE - 1 &&
	       memcmp(lock->token, token->at, token->length) == 0;
}

static bool is_claimed(struct lock *lock, void *context)
{
	const struct dav_claim *claim = context;

	if (strcmp(claim->user, lock->lock.user) != 0)
		return false;
	for (unsigned i = 0; i < claim->count; i++)
		if (has_token(lock, (void *)(uintptr_t)&claim->tokens[i]))
			return true;
	return false;
}

bool dav_locks_has(struct dav_locks *locks, const char *path, struct slice token, uint64_t now)
{
	bool has;

	pthread_mutex_lock(&locks->mutex);
	has = find_covering(locks, path, now, has_token, &token);
	pthread_mutex_unlock(&locks->mutex);
	return has;
}

/* Of dav_locks_each(). */
struct seeing {
	void (*see)(const struct dav_lock *lock, const char *token, void *context);
	void *context;
};

static bool see_one(struct lock *lock, void *context)
{
	const struct seeing *seeing = context;

	seeing->see(&lock->lock, lock->token, seeing->context);
	return false;
}

void dav_locks_each(struct dav_locks *locks, const char *path, uint64_t now,
		    void (*see)(const struct dav_lock *lock, const char *token, void *context),
		    void *context)
{
	struct seeing seeing = {see, context};

	pthread_mutex_lock(&locks->mutex);
	(void)find_covering(locks, path, now, see_one, &seeing);
	pthread_mutex_unlock(&locks->mutex);
}

/* --- adding and removing --------------------------------------------------------------- */

/* "urn:uuid:" and a random UUID (RFC 9562, section 5.4). */
static bool make_token(char token[DAV_TOKEN_SIZE])
{
	uint8_t bytes[16];
	char *to = token + 9;

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return false;
	bytes[6] = (uint8_t)(0x40 | (bytes[6] & 0x0f));
	bytes[8] = (uint8_t)(0x80 | (bytes[8] & 0x3f));
	memcpy(token, "urn:uuid:", 9);
	for (unsigned i = 0; i < sizeof(bytes); i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*to++ = '-';
		to += sprintf(to, "%02x", bytes[i]);
	}
	return true;
}

static unsigned count_of(const struct dav_locks *locks, const char *user)
{
	GHashTableIter iter;
	unsigned count = 0;
	void *value;

	g_hash_table_iter_init(&iter, locks->roots);
	while (g_hash_table_iter_next(&iter, NULL, &value)) {
		const GPtrArray *array = value;

		for (guint i = 0; i < array->len; i++)
			count += strcmp(((const struct lock *)array->pdata[i])->lock.user, user) ==
				 0;
	}
	return count;
}

static bool is_full(struct dav_locks *locks, const char *user, uint64_t now)
{
	if (locks->count < locks->most / 2)
		return false;
	purge(locks, now);
	return locks->count >= locks->most || count_of(locks, user) >= locks->most / 2;
}

/* Returns a lock that excludes the wanted one, or NULL. */
static const struct lock *find_conflict(struct dav_locks *locks, const struct dav_lock *wanted)
{
	const struct dav_change whole = {.path = wanted->path, .deep = wanted->deep};
	GHashTableIter iter;
	void *value;

	g_hash_table_iter_init(&iter, locks->roots);
	while (g_hash_table_iter_next(&iter, NULL, &value)) {
		const GPtrArray *array = value;

		for (guint i = 0; i < array->len; i++) {
			const struct lock *lock = array->pdata[i];

			if (!(lock->lock.shared && wanted->shared) && overlap(&whole, &lock->lock))
				return lock;
		}
	}
	return NULL;
}

static bool is_changing(const struct dav_locks *locks, const struct dav_lock *wanted)
{
	list_each (const struct dav_change, change, &locks->changes, node)
		if (overlap(change, wanted))
			return true;
	return false;
}

static void insert(struct dav_locks *locks, const struct dav_lock *wanted, const char *token)
{
	GPtrArray *array = g_hash_table_lookup(locks->roots, wanted->path);
	struct lock *lock = g_new(struct lock, 1);

	if (!array) {
		array = g_ptr_array_new_with_free_func(free_lock);
		g_hash_table_insert(locks->roots, g_strdup(wanted->path), array);
	}
	lock->lock = *wanted;
	lock->lock.path = g_strdup(wanted->path);
	lock->lock.href = g_strdup(wanted->href);
	lock->lock.user = g_strdup(wanted->user);
	lock->lock.owner = g_strdup(wanted->owner);
	memcpy(lock->token, token, DAV_TOKEN_SIZE);
	g_ptr_array_add(array, lock);
	locks->count++;
}

int dav_locks_add(struct dav_locks *locks, const struct dav_lock *lock, uint64_t now,
		  char token[DAV_TOKEN_SIZE], char **other)
{
	const struct lock *conflict;
	int error = 0;

	*other = NULL;
	if (!make_token(token))
		return -ENOSPC;
	pthread_mutex_lock(&locks->mutex);
	purge(locks, now);
	conflict = find_conflict(locks, lock);
	if (conflict) {
		*other = g_strdup(conflict->lock.href);
		error = -EBUSY;
	} else if (is_changing(locks, lock)) {
		error = -EBUSY;
	} else if (is_full(locks, lock->user, now)) {
		error = -ENOSPC;
	} else {
		insert(locks, lock, token);
	}
	pthread_mutex_unlock(&locks->mutex);
	return error;
}

int dav_locks_refresh(struct dav_locks *locks, const char *path, const struct dav_claim *claim,
		      uint64_t expires_ns, uint64_t now, char token[DAV_TOKEN_SIZE])
{
	struct lock *lock;

	pthread_mutex_lock(&locks->mutex);
	lock = find_covering(locks, path, now, is_claimed, (void *)(uintptr_t)claim);
	if (lock) {
		lock->lock.expires_ns = expires_ns;
		memcpy(token, lock->token, DAV_TOKEN_SIZE);
	}
	pthread_mutex_unlock(&locks->mutex);
	return lock ? 0 : -ENOENT;
}

int dav_locks_remove(struct dav_locks *locks, const char *path, struct slice token,
		     const char *user, uint64_t now)
{
	struct lock *lock;
	int error = 0;

	pthread_mutex_lock(&locks->mutex);
	lock = find_covering(locks, path, now, has_token, &token);
	if (!lock) {
		error = -ENOENT;
	} else if (strcmp(lock->lock.user, user) != 0) {
		error = -EPERM;
	} else {
		char *root = g_strdup(lock->lock.path);

		lock->lock.expires_ns = 0;
		(void)rooted(locks, root, now);
		g_free(root);
	}
	pthread_mutex_unlock(&locks->mutex);
	return error;
}

static gboolean forget_below(void *path, void *array, void *context)
{
	const GPtrArray *below = array;
	const void *const *pair = context;

	if (!path_lies_in(path, pair[1]))
		return false;
	((struct dav_locks *)(uintptr_t)pair[0])->count -= below->len;
	return true;
}

void dav_locks_forget(struct dav_locks *locks, const char *path)
{
	const void *pair[] = {locks, path};

	pthread_mutex_lock(&locks->mutex);
	g_hash_table_foreach_remove(locks->roots, forget_below, pair);
	pthread_mutex_unlock(&locks->mutex);
}

/* --- changes ---------------------------------------------------------------------------- */

/* Returns a lock below the path of whose root the claim has no token, or NULL. */
static const struct lock *find_below(struct dav_locks *locks, const char *path,
				     const struct dav_claim *claim)
{
	GHashTableIter iter;
	void *root, *value;

	g_hash_table_iter_init(&iter, locks->roots);
	while (g_hash_table_iter_next(&iter, &root, &value)) {
		const GPtrArray *array = value;
		bool claimed = false;

		if (!path_lies_in(root, path) || strcmp(root, path) == 0 || !array->len)
			continue;
		for (guint i = 0; i < array->len && !claimed; i++)
			claimed = is_claimed(array->pdata[i], (void *)(uintptr_t)claim);
		if (!claimed)
			return array->pdata[0];
	}
	return NULL;
}

static const struct lock *find_obstacle(struct dav_locks *locks, const struct dav_change *change,
					const struct dav_claim *claim, uint64_t now)
{
	const struct lock *lock = find_covering(locks, change->path, now, is_any, NULL);

	/* Of several shared locks, one is enough. */
	if (lock && !find_covering(locks, change->path, now, is_claimed, (void *)(uintptr_t)claim))
		return lock;
	if (!change->deep)
		return NULL;
	purge(locks, now);
	return find_below(locks, change->path, claim);
}

int dav_locks_begin(struct dav_locks *locks, struct dav_change *changes, unsigned count,
		    const struct dav_claim *claim, uint64_t now, char **other)
{
	const struct lock *lock = NULL;

	*other = NULL;
	pthread_mutex_lock(&locks->mutex);
	for (unsigned i = 0; i < count && !lock; i++)
		lock = find_obstacle(locks, &changes[i], claim, now);
	if (lock)
		*other = g_strdup(lock->lock.href);
	for (unsigned i = 0; i < count && !lock; i++)
		list_prepend(&locks->changes, &changes[i].node);
	pthread_mutex_unlock(&locks->mutex);
	return lock ? -EBUSY : 0;
}

void dav_locks_end(struct dav_locks *locks, struct dav_change *changes, unsigned count)
{
	pthread_mutex_lock(&locks->mutex);
	for (unsigned i = 0; i < count; i++)
		list_remove(&changes[i].node);
	pthread_mutex_unlock(&locks->mutex);
}
