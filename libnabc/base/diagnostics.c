/* SPDX-License-Identifier: MIT */
/* diagnostics.c - reports each thing once, through the program's log function. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/resource.h>
#include <syslog.h>

#include "base/diagnostics.h"

void nc_diagnostics_init(struct nc_diagnostics *diagnostics, NC_log log, void *context)
{
	*diagnostics = (struct nc_diagnostics){.log = log, .context = context};
}

static void warn(const struct nc_diagnostics *diagnostics, const char *format, va_list arguments)
{
	char text[512];

	(void)vsnprintf(text, sizeof(text), format, arguments);
	diagnostics->log(diagnostics->context, LOG_WARNING, text);
}

void nc_diagnostics_warn(const struct nc_diagnostics *diagnostics, const char *format, ...)
{
	va_list arguments;

	if (!diagnostics->log)
		return;
	va_start(arguments, format);
	warn(diagnostics, format, arguments);
	va_end(arguments);
}

void nc_diagnostics_report(struct nc_diagnostics *diagnostics, enum nc_diagnostic what,
			   const char *format, ...)
{
	va_list arguments;

	if (!diagnostics->log ||
	    (atomic_fetch_or_explicit(&diagnostics->said, 1u << what, memory_order_relaxed) &
	     1u << what))
		return;
	va_start(arguments, format);
	warn(diagnostics, format, arguments);
	va_end(arguments);
}

void nc_diagnostics_report_error(struct nc_diagnostics *diagnostics, int error)
{
	struct rlimit limit = {0};

	if (!diagnostics->log)
		return;
	if (error == -EMFILE) {
		(void)getrlimit(RLIMIT_NOFILE, &limit);
		nc_diagnostics_report(
			diagnostics, NC_DIAGNOSTIC_DESCRIPTORS,
			"units that need another segment are refused: all file descriptors that "
			"the cache may have (max_descriptors), or all %llu of this process, are in "
			"use; raise RLIMIT_NOFILE (ulimit -n, LimitNOFILE=)",
			(unsigned long long)limit.rlim_cur);
	} else if (error == -ENFILE) {
		nc_diagnostics_report(
			diagnostics, NC_DIAGNOSTIC_DESCRIPTORS,
			"all file descriptors of the system are in use; raise fs.file-max");
	} else if (error == -EFBIG) {
		(void)getrlimit(RLIMIT_FSIZE, &limit);
		nc_diagnostics_report(
			diagnostics, NC_DIAGNOSTIC_FILE_SIZE,
			"units that need another segment are refused: a segment is larger than the "
			"%llu bytes that files of this process may have; raise RLIMIT_FSIZE "
			"(ulimit -f, LimitFSIZE=)",
			(unsigned long long)limit.rlim_cur);
	}
}
