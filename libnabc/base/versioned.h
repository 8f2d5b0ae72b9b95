/* SPDX-License-Identifier: MIT */
/*
 * versioned.h - structures that a program and the library exchange, possibly of
 * different versions: fields that both know are copied, the rest is zero.
 */
#ifndef NC_VERSIONED_H
#define NC_VERSIONED_H

#include <errno.h>
#include <stddef.h>
#include <string.h>

/*
 * Copies a structure that the caller filled and that begins with its size.  known:
 * size of the library's structure; least: its size in version 1.0.  Returns 0,
 * -EINVAL (smaller than least), or -E2BIG (it has values that this library does not
 * know).
 */
static inline int nc_versioned_read(void *own, size_t known, size_t least, const void *given)
{
	size_t size;

	memcpy(&size, given, sizeof(size));
	if (size < least)
		return -EINVAL;
	for (size_t i = known; i < size; i++)
		if (((const char *)given)[i])
			return -E2BIG;
	memset(own, 0, known);
	memcpy(own, given, size < known ? size : known);
	memcpy(own, &known, sizeof(known));
	return 0;
}

/* Writes one of the library's structures to the caller's, which may have another size. */
static inline void nc_versioned_write(void *given, size_t size, const void *own, size_t known)
{
	memcpy(given, own, size < known ? size : known);
	if (size > known)
		memset((char *)given + known, 0, size - known);
}

/* Writes an array of count structures: the caller's are stride bytes apart. */
static inline void nc_versioned_write_all(void *given, size_t stride, const void *own, size_t known,
					  size_t count)
{
	for (size_t i = 0; i < count; i++)
		nc_versioned_write((char *)given + i * stride, stride,
				   (const char *)own + i * known, known);
}

#endif
