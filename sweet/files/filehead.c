/* SPDX-License-Identifier: MIT */
/*
 * filehead.c - see filehead.h.  No state; the caller owns the head.
 */
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include "base/date.h"
#include "files/docroot.h"
#include "files/filehead.h"
#include "http/etag.h"

void filehead_write_coded(struct filehead *head, const struct file_version *version,
			  enum etag_kind kind, uint64_t size, uint64_t coded, const char *type,
			  time_t now)
{
	struct etag_source source = {
		.device = version->device,
		.inode = version->inode,
		.size = (uint64_t)version->size,
		.modified_s = version->modified.tv_sec,
		.modified_ns = version->modified.tv_nsec,
		.changed_s = version->changed.tv_sec,
		.changed_ns = version->changed.tv_nsec,
		.coded = coded,
	};
	char date[DATE_LENGTH], etag[ETAG_LENGTH];
	int own, length;

	if (kind == ETAG_TIME) {
		source.device = source.inode = 0;
		source.changed_s = source.changed_ns = 0;
	}
	head->capped = version->modified.tv_sec > now;
	head->modified = head->capped ? now : version->modified.tv_sec;
	date_format(head->modified, date);
	etag_format(&source, etag);
	own = snprintf(head->text, sizeof(head->text),
		       "Content-Type: %.128s\r\nContent-Length: %llu\r\n", type,
		       (unsigned long long)size);
	length = snprintf(head->text + own, sizeof(head->text) - (size_t)own,
			  "Last-Modified: %.*s\r\nETag: %.*s\r\nAccept-Ranges: bytes\r\n",
			  DATE_LENGTH, date, ETAG_LENGTH, etag);
	head->own = (unsigned short)own;
	head->length = (unsigned short)(own + length);
	head->mime = type;
	head->etag_at = (unsigned short)(own + (int)sizeof("Last-Modified: ") - 1 + DATE_LENGTH +
					 (int)sizeof("\r\nETag: ") - 1);
}

void filehead_write(struct filehead *head, const struct file_version *version, enum etag_kind kind,
		    const char *type, time_t now)
{
	filehead_write_coded(head, version, kind, (uint64_t)version->size, 0, type, now);
}
