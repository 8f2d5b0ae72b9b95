/* SPDX-License-Identifier: MIT */
/*
 * etag.c - see etag.h.  No state: any thread may call it.
 *
 * A version includes the file's inode number and the nanosecond of its last change.
 * Clients must not see these (inode numbers help attackers on network file
 * systems), so the tag is a part of a cryptographic hash of them.  It is computed
 * once for a version, not for each request.
 */
#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "http/etag.h"

#define BITS_KEPT 96 /* enough that two versions of one URL never collide */

void etag_format(const struct etag_source *source, char *out)
{
	static const char digits[64] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	GChecksum *checksum = g_checksum_new(G_CHECKSUM_SHA256);
	guint8 hash[32];
	gsize length = sizeof(hash);

	/*
	 * All members have 64 bits: there is no padding to hash.  Without a coding, it is left
	 * out: then tags are what they were before there was one.
	 */
	g_checksum_update(checksum, (const guchar *)source,
			  source->coded ? sizeof(*source) : offsetof(struct etag_source, coded));
	g_checksum_get_digest(checksum, hash, &length);
	g_checksum_free(checksum);
	*out++ = '"';
	for (unsigned bit = 0; bit < BITS_KEPT; bit += 24) {
		const guint8 *at = hash + bit / 8;
		unsigned bits = (unsigned)at[0] << 16 | (unsigned)at[1] << 8 | at[2];

		for (int shift = 18; shift >= 0; shift -= 6)
			*out++ = digits[bits >> shift & 63];
	}
	*out = '"';
}

static bool is_blank(char byte)
{
	return byte == ' ' || byte == '\t';
}

/* Returns true for a byte of an opaque tag: visible, no quote; also above 0x7f. */
static bool is_opaque(char byte)
{
	return (unsigned char)byte > 0x20 && byte != '"' && byte != 0x7f;
}

static struct slice without_mark(struct slice tag)
{
	size_t mark = etag_is_weak(tag) ? 2 : 0;

	return (struct slice){tag.at + mark, tag.length - mark};
}

bool etag_is_same(struct slice one, struct slice other)
{
	return slice_equals(without_mark(one), without_mark(other));
}

bool etag_listed(struct slice list, struct slice tag, bool strong)
{
	const char *at = list.at, *end = list.at + list.length;

	if (list.length == 1 && *at == '*')
		return true;
	for (;;) {
		const char *start;
		bool weak;

		/* Empty elements are permitted (RFC 9110, section 5.6.1.2). */
		while (at < end && (is_blank(*at) || *at == ','))
			at++;
		weak = etag_is_weak((struct slice){at, (size_t)(end - at)});
		at += weak ? 2 : 0;
		start = at;
		if (at == end || *at++ != '"')
			return false;
		while (at < end && is_opaque(*at))
			at++;
		if (at == end || *at++ != '"')
			return false;
		if (!(weak && strong) && (size_t)(at - start) == tag.length &&
		    memcmp(start, tag.at, tag.length) == 0)
			return true;
		/* A comma separates two elements. */
		while (at < end && is_blank(*at))
			at++;
		if (at < end && *at != ',')
			return false;
	}
}
