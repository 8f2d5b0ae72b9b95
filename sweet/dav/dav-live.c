/* SPDX-License-Identifier: MIT */
/*
 * dav-live.c - see dav-live.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/date.h"
#include "core/site.h"
#include "dav/dav-call.h"
#include "dav/dav-live.h"
#include "dav/dav-locks.h"
#include "dav/dav-multistatus.h"
#include "dav/dav-xml.h"
#include "files/docroot-open.h"
#include "files/file-cache.h"
#include "files/filehead.h"
#include "http/etag.h"

/* --- the resource ------------------------------------------------------------------------- */

static int64_t birth_of(struct docroot root, const char *file)
{
	int fd = docroot_openat(root, file, O_PATH | O_CLOEXEC);
	struct statx statx_of = {.stx_mask = 0};

	if (fd < 0)
		return 0;
	if (statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &statx_of) < 0)
		statx_of.stx_mask = 0;
	close(fd);
	return statx_of.stx_mask & STATX_BTIME ? statx_of.stx_btime.tv_sec : 0;
}

int dav_resource_open(struct dav_resource *resource, const struct site_scope *open,
		      const char *path, const char *file, bool with_fd)
{
	struct docroot root = file_cache_root(open->file_cache);
	int error = docroot_look(root, file, &resource->folder, &resource->version);

	if (error)
		return error;
	if (!*file)
		file = ".";
	resource->created = birth_of(root, file);
	resource->path = g_strconcat(path, resource->folder ? "/" : "", NULL);
	resource->key = strcmp(file, ".") == 0 ? g_strdup(open->folder)
					       : g_strdup_printf("%s/%s", open->folder, file);
	resource->type = file_cache_type(open->file_cache, file);
	resource->etag = file_cache_etag(open->file_cache);
	if (with_fd)
		resource->fd =
			docroot_openat(root, file, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return 0;
}

void dav_resource_close(struct dav_resource *resource)
{
	g_free(resource->path);
	g_free(resource->key);
	if (resource->fd >= 0)
		close(resource->fd);
}

/* --- locks -------------------------------------------------------------------------------- */

static void write_lock(const struct dav_lock *lock, const char *token, void *context)
{
	GString *to = context;
	uint64_t now = clock_boottime_ns();

	g_string_append_printf(
		to,
		"<D:activelock><D:locktype><D:write/></D:locktype><D:lockscope><D:%s/>"
		"</D:lockscope><D:depth>%s</D:depth>",
		lock->shared ? "shared" : "exclusive", lock->deep ? "infinity" : "0");
	if (lock->owner)
		g_string_append(to, lock->owner);
	g_string_append_printf(to,
			       "<D:timeout>Second-%llu</D:timeout><D:locktoken><D:href>%s"
			       "</D:href></D:locktoken><D:lockroot>",
			       (unsigned long long)(lock->expires_ns > now
							    ? (lock->expires_ns - now) / 1000000000u
							    : 0),
			       token);
	dav_write_href(to, lock->href);
	g_string_append(to, "</D:lockroot></D:activelock>");
}

void dav_live_write_locks(GString *to, struct dav *dav, const char *key)
{
	g_string_append(to, "<D:lockdiscovery>");
	dav_locks_each(dav->locks, key, clock_boottime_ns(), write_lock, to);
	g_string_append(to, "</D:lockdiscovery>");
}

/* --- the properties ------------------------------------------------------------------------ */

static bool write_created(GString *to, const struct dav_resource *resource)
{
	GDateTime *time =
		resource->created ? g_date_time_new_from_unix_utc(resource->created) : NULL;
	char *text;

	if (!time)
		return false;
	text = g_date_time_format(time, "%Y-%m-%dT%H:%M:%SZ");
	g_string_append_printf(to, "<D:creationdate>%s</D:creationdate>", text);
	g_free(text);
	g_date_time_unref(time);
	return true;
}

static bool write_length(GString *to, const struct dav_resource *resource)
{
	if (resource->folder)
		return false;
	g_string_append_printf(to, "<D:getcontentlength>%lld</D:getcontentlength>",
			       (long long)resource->version.size);
	return true;
}

static bool write_type(GString *to, const struct dav_resource *resource)
{
	if (resource->folder)
		return false;
	g_string_append(to, "<D:getcontenttype>");
	dav_xml_escape(to, resource->type);
	g_string_append(to, "</D:getcontenttype>");
	return true;
}

static bool write_etag(GString *to, const struct dav_resource *resource)
{
	struct filehead head;

	if (resource->folder)
		return false;
	filehead_write(&head, &resource->version, resource->etag, "", time(NULL));
	g_string_append(to, "<D:getetag>");
	g_string_append_len(to, head.text + head.etag_at, ETAG_LENGTH);
	g_string_append(to, "</D:getetag>");
	return true;
}

static bool write_modified(GString *to, const struct dav_resource *resource)
{
	char date[DATE_LENGTH];

	date_format(resource->version.modified.tv_sec, date);
	g_string_append_printf(to, "<D:getlastmodified>%.*s</D:getlastmodified>", DATE_LENGTH,
			       date);
	return true;
}

static bool write_kind(GString *to, const struct dav_resource *resource)
{
	g_string_append(to, resource->folder ? "<D:resourcetype><D:collection/></D:resourcetype>"
					     : "<D:resourcetype/>");
	return true;
}

static bool write_supported(GString *to, const struct dav_resource *resource)
{
	static const char *const scopes[] = {"exclusive", "shared"};

	(void)resource;
	g_string_append(to, "<D:supportedlock>");
	for (unsigned i = 0; i < G_N_ELEMENTS(scopes); i++)
		g_string_append_printf(to,
				       "<D:lockentry><D:lockscope><D:%s/></D:lockscope><D:locktype>"
				       "<D:write/></D:locktype></D:lockentry>",
				       scopes[i]);
	g_string_append(to, "</D:supportedlock>");
	return true;
}

static bool write_locks(GString *to, const struct dav_resource *resource)
{
	dav_live_write_locks(to, resource->dav, resource->key);
	return true;
}

static const struct live {
	const char *local;
	bool (*write)(GString *to, const struct dav_resource *resource);
} properties[] = {
	{"creationdate", write_created},     {"getcontentlength", write_length},
	{"getcontenttype", write_type},	     {"getetag", write_etag},
	{"getlastmodified", write_modified}, {"lockdiscovery", write_locks},
	{"resourcetype", write_kind},	     {"supportedlock", write_supported},
};

bool dav_live_knows(const char *local)
{
	for (unsigned i = 0; i < G_N_ELEMENTS(properties); i++)
		if (strcmp(properties[i].local, local) == 0)
			return true;
	return false;
}

bool dav_live_write(GString *to, const struct dav_resource *resource, const char *local)
{
	for (unsigned i = 0; i < G_N_ELEMENTS(properties); i++)
		if (strcmp(properties[i].local, local) == 0)
			return properties[i].write(to, resource);
	return false;
}

void dav_live_write_all(GString *to, const struct dav_resource *resource, bool names)
{
	GString *unused = g_string_new(NULL);

	for (unsigned i = 0; i < G_N_ELEMENTS(properties); i++)
		if (properties[i].write(names ? unused : to, resource) && names)
			dav_write_name(to, "DAV:", properties[i].local);
	g_string_free(unused, TRUE);
}
