/* SPDX-License-Identifier: MIT */
/*
 * dav-properties.c - see dav-properties.h.  No state: any thread.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/types.h>
#include <sys/xattr.h>

#include "dav/dav-properties.h"
#include "dav/dav-xml.h"

#define PREFIX "user.sweet.dav."
#define LIST_MAX ((size_t)64 << 10) /* bytes of all names: the kernel's limit */

/* Returns the attribute's name, which the caller frees. */
static char *name_of(const char *space, const char *local)
{
	GChecksum *hash = g_checksum_new(G_CHECKSUM_SHA256);
	char *name;

	g_checksum_update(hash, (const guchar *)space, (gssize)strlen(space));
	g_checksum_update(hash, (const guchar *)"\n", 1);
	g_checksum_update(hash, (const guchar *)local, (gssize)strlen(local));
	name = g_strconcat(PREFIX, g_checksum_get_string(hash), NULL);
	g_checksum_free(hash);
	return name;
}

int dav_property_set(int fd, const char *space, const char *local, const char *xml)
{
	char *name = name_of(space, local);
	char *value = g_strdup_printf("%s\n%s\n%s", space, local, xml);
	size_t length = strlen(value);
	int error = 0;

	if (length > DAV_PROPERTY_MAX)
		error = -E2BIG;
	else if (fsetxattr(fd, name, value, length, 0) < 0)
		error = -errno;
	g_free(value);
	g_free(name);
	return error;
}

int dav_property_remove(int fd, const char *space, const char *local)
{
	char *name = name_of(space, local);
	int error = fremovexattr(fd, name) < 0 && errno != ENODATA ? -errno : 0;

	g_free(name);
	return error == -ENOTSUP ? 0 : error;
}

/* Returns the value with a NUL behind it, which the caller frees; NULL: none, or not ours. */
static char *read_value(int fd, const char *name, size_t *size)
{
	char *value = g_malloc(DAV_PROPERTY_MAX + 1);
	ssize_t length = fgetxattr(fd, name, value, DAV_PROPERTY_MAX);

	if (length < 0) {
		g_free(value);
		return NULL;
	}
	value[length] = '\0';
	*size = (size_t)length;
	return value;
}

/* Whether it is the element of that name: other programs may have written it. */
static bool is_element(const char *xml, const char *space, const char *local)
{
	struct dav_node *root = dav_xml_read(xml, strlen(xml));
	bool is = root && strcmp(root->space, space) == 0 && strcmp(root->local, local) == 0;

	dav_xml_free(root);
	return is;
}

/* Splits a value in place. */
static bool split(char *value, size_t size, const char **local, const char **xml)
{
	char *first = strchr(value, '\n'), *second = first ? strchr(first + 1, '\n') : NULL;

	if (!second || strlen(value) != size)
		return false;
	*first = *second = '\0';
	*local = first + 1;
	*xml = second + 1;
	return is_element(*xml, value, *local);
}

char *dav_property_get(int fd, const char *space, const char *local)
{
	char *name = name_of(space, local), *element = NULL, *value;
	const char *found, *xml;
	size_t size;

	value = read_value(fd, name, &size);
	if (value && split(value, size, &found, &xml) && strcmp(value, space) == 0 &&
	    strcmp(found, local) == 0)
		element = g_strdup(xml);
	g_free(value);
	g_free(name);
	return element;
}

/* Calls see() for the names of our attributes. */
static int each_name(int fd, void (*see)(int fd, const char *name, void *context), void *context)
{
	char *names = g_malloc(LIST_MAX);
	ssize_t length = flistxattr(fd, names, LIST_MAX);
	int error = length < 0 ? -errno : 0;

	for (ssize_t at = 0; at < length; at += (ssize_t)strlen(names + at) + 1)
		if (strncmp(names + at, PREFIX, sizeof(PREFIX) - 1) == 0)
			see(fd, names + at, context);
	g_free(names);
	return error;
}

struct seeing {
	void (*see)(const char *space, const char *local, const char *xml, void *context);
	void *context;
};

static void see_name(int fd, const char *name, void *context)
{
	const struct seeing *seeing = context;
	const char *local, *xml;
	size_t size;
	char *value = read_value(fd, name, &size);

	if (value && split(value, size, &local, &xml))
		seeing->see(value, local, xml, seeing->context);
	g_free(value);
}

void dav_properties_each(int fd,
			 void (*see)(const char *space, const char *local, const char *xml,
				     void *context),
			 void *context)
{
	struct seeing seeing = {see, context};

	(void)each_name(fd, see_name, &seeing);
}

struct copying {
	int to, error;
};

static void copy_name(int fd, const char *name, void *context)
{
	struct copying *copying = context;
	size_t size;
	char *value = read_value(fd, name, &size);

	if (value && !copying->error && fsetxattr(copying->to, name, value, size, 0) < 0)
		copying->error = -errno;
	g_free(value);
}

int dav_properties_copy(int from, int to)
{
	struct copying copying = {.to = to};
	int error = each_name(from, copy_name, &copying);

	return error && error != -ENOTSUP ? error : copying.error;
}
