/* SPDX-License-Identifier: MIT */
/*
 * endpoints.c - see endpoints.h.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "base/address.h"
#include "process/endpoint.h"
#include "process/endpoints.h"

static void close_one(gpointer endpoint)
{
	endpoint_close(endpoint);
}

void endpoints_init(struct endpoints *endpoints, unsigned threads, bool one_queue)
{
	*endpoints = (struct endpoints){.threads = threads,
					.one_queue = one_queue,
					.all = g_ptr_array_new_with_free_func(close_one)};
}

void endpoints_disown(struct endpoints *endpoints)
{
	for (unsigned i = 0; i < endpoints->all->len; i++)
		((struct endpoint *)endpoints->all->pdata[i])->has_file = false;
}

void endpoints_clear(struct endpoints *endpoints)
{
	if (endpoints->all)
		g_ptr_array_free(endpoints->all, TRUE);
	endpoints->all = NULL;
}

int endpoints_adopt(struct endpoints *endpoints, int fd)
{
	struct endpoint *endpoint = endpoint_adopt(fd, endpoints->threads);

	if (!endpoint)
		return -errno;
	endpoint->id = endpoints->next_id++;
	g_ptr_array_add(endpoints->all, endpoint);
	return 0;
}

/*
 * Returns the index of an endpoint for that address that no other line uses, or -1: one for the same
 * pages if there are several, as with port 0.
 */
static int find(const struct endpoints *endpoints, const bool *kept,
		const struct listen_address *address, bool status_only)
{
	int other = -1;

	for (unsigned i = 0; i < endpoints->all->len; i++) {
		const struct endpoint *endpoint = endpoints->all->pdata[i];

		if (kept[i] || !address_equal(&endpoint->wanted, address))
			continue;
		if (endpoint->status_only == status_only)
			return (int)i;
		if (other < 0)
			other = (int)i;
	}
	return other;
}

static void plan_one(const struct endpoints *endpoints, bool *kept, const char *text,
		     bool status_only, struct endpoints_change *change, GPtrArray *errors)
{
	struct listen_address address;
	struct endpoint *endpoint;
	int at;

	if (!address_parse(text, &address)) {
		change->in_use = false;
		g_ptr_array_add(errors, g_strdup_printf("%slisten \"%s\": must be ADDRESS:PORT, "
							":PORT, PORT or unix:PATH",
							status_only ? "status-" : "", text));
		return;
	}
	at = find(endpoints, kept, &address, status_only);
	if (at >= 0) {
		endpoint = endpoints->all->pdata[at];
		kept[at] = true;
		if (address.tls)
			g_ptr_array_add(change->tls, endpoint);
		if (status_only)
			g_ptr_array_add(change->status_only, endpoint);
		if (endpoint->has_file && endpoint->wanted.mode != address.mode) {
			g_ptr_array_add(change->moded, endpoint);
			g_array_append_val(change->modes, address.mode);
		}
		return;
	}
	endpoint = endpoint_open(&address, endpoints->threads, endpoints->one_queue);
	if (endpoint) {
		endpoint->status_only = status_only;
		g_ptr_array_add(change->fresh, endpoint);
		return;
	}
	change->in_use = change->in_use && errno == EADDRINUSE;
	g_ptr_array_add(errors,
			g_strdup_printf("cannot listen on %s: %s", address.text, strerror(errno)));
}

bool endpoints_plan(const struct endpoints *endpoints, const struct endpoints_wanted *wanted,
		    struct endpoints_change *change, GPtrArray *errors)
{
	bool *kept = g_new0(bool, endpoints->all->len + 1), inherited = false, in_use;
	unsigned before = errors->len;

	*change = (struct endpoints_change){.fresh = g_ptr_array_new_with_free_func(close_one),
					    .gone = g_ptr_array_new(),
					    .moded = g_ptr_array_new(),
					    .tls = g_ptr_array_new(),
					    .status_only = g_ptr_array_new(),
					    .modes = g_array_new(FALSE, FALSE, sizeof(mode_t)),
					    .in_use = true};
	for (unsigned i = 0; i < endpoints->all->len; i++)
		inherited |= ((struct endpoint *)endpoints->all->pdata[i])->inherited;
	for (char *const *at = wanted->listen; *at && (wanted->given || !inherited); at++)
		plan_one(endpoints, kept, *at, false, change, errors);
	for (char *const *at = wanted->status_listen; at && *at; at++)
		plan_one(endpoints, kept, *at, true, change, errors);
	for (unsigned i = 0; i < endpoints->all->len; i++) {
		const struct endpoint *endpoint = endpoints->all->pdata[i];

		if (!kept[i] && !endpoint->inherited)
			g_ptr_array_add(change->gone, endpoints->all->pdata[i]);
	}
	g_free(kept);
	in_use = change->in_use && errors->len > before;
	change->in_use = false;
	if (errors->len == before)
		return true;
	endpoints_abandon(change);
	change->in_use = in_use;
	return false;
}

static void free_lists(struct endpoints_change *change)
{
	g_ptr_array_free(change->fresh, TRUE);
	g_ptr_array_free(change->gone, TRUE);
	g_ptr_array_free(change->moded, TRUE);
	g_ptr_array_free(change->tls, TRUE);
	g_ptr_array_free(change->status_only, TRUE);
	g_array_free(change->modes, TRUE);
	*change = (struct endpoints_change){0};
}

void endpoints_commit(struct endpoints *endpoints, struct endpoints_change *change)
{
	for (unsigned i = 0; i < change->moded->len; i++) {
		struct endpoint *endpoint = change->moded->pdata[i];
		mode_t mode = g_array_index(change->modes, mode_t, i);

		if (endpoint_set_mode(address_path(&endpoint->wanted), mode) == 0)
			endpoint->wanted.mode = mode;
	}
	for (unsigned i = 0; i < endpoints->all->len; i++) {
		struct endpoint *endpoint = endpoints->all->pdata[i];

		endpoint->wanted.tls = g_ptr_array_find(change->tls, endpoint, NULL);
		endpoint->status_only = g_ptr_array_find(change->status_only, endpoint, NULL);
	}
	for (unsigned i = 0; i < change->gone->len; i++)
		g_ptr_array_remove(endpoints->all, change->gone->pdata[i]);
	for (unsigned i = 0; i < change->fresh->len; i++) {
		struct endpoint *endpoint = change->fresh->pdata[i];

		endpoint->id = endpoints->next_id++;
		g_ptr_array_add(endpoints->all, endpoint);
	}
	g_ptr_array_set_free_func(change->fresh, NULL);
	free_lists(change);
}

void endpoints_abandon(struct endpoints_change *change)
{
	free_lists(change);
}
