/* SPDX-License-Identifier: MIT */
/*
 * notice.c - says things once, through the program's own function.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/resource.h>
#include <syslog.h>

#include "base/notice.h"

void nc_notices_init(struct nc_notices *notices, NC_log log, void *context)
{
	*notices = (struct nc_notices){.log = log, .context = context};
}

void nc_notice(struct nc_notices *notices, enum nc_notice what, const char *format, ...)
{
	char text[512];
	va_list arguments;

	if (!notices->log ||
	    (atomic_fetch_or_explicit(&notices->said, 1u << what, memory_order_relaxed) &
	     1u << what))
		return;
	va_start(arguments, format);
	(void)vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	notices->log(notices->context, LOG_WARNING, text);
}

void nc_notice_error(struct nc_notices *notices, int error)
{
	struct rlimit limit = {0};

	if (!notices->log)
		return;
	if (error == -EMFILE) {
		(void)getrlimit(RLIMIT_NOFILE, &limit);
		nc_notice(notices, NC_NOTICE_DESCRIPTORS,
			  "units that need another segment are refused: all file descriptors that "
			  "the cache may have (max_descriptors), or all %llu of this process, are in "
			  "use; raise RLIMIT_NOFILE (ulimit -n, LimitNOFILE=)",
			  (unsigned long long)limit.rlim_cur);
	} else if (error == -ENFILE) {
		nc_notice(notices, NC_NOTICE_DESCRIPTORS,
			  "all file descriptors of the system are in use; raise fs.file-max");
	}
}
