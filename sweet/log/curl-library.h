/* SPDX-License-Identifier: MIT */
/*
 * curl-library.h - the functions of libcurl, which is loaded when spans are configured: a server
 * without them does without it and the twenty-five libraries that Debian's build of it requires.
 */
#ifndef SWEET_CURL_LIBRARY_H
#define SWEET_CURL_LIBRARY_H

#include <curl/curl.h>

#define CURL_LIBRARY_FILE "libcurl.so.4"

/* As in curl/curl.h, whose names begin with curl_. */
#define CURL_LIBRARY_FUNCTIONS(x)                                                                  \
	x(global_init) x(global_cleanup) x(slist_append) x(slist_free_all) x(easy_init)            \
		x(easy_cleanup) x(easy_reset) x(easy_setopt) x(easy_getinfo) x(easy_strerror)      \
			x(multi_init) x(multi_cleanup) x(multi_add_handle) x(multi_remove_handle)  \
				x(multi_perform) x(multi_poll) x(multi_wakeup) x(multi_info_read)

struct curl_library {
#define CURL_LIBRARY_MEMBER(name) __typeof__(&curl_##name) name;
	CURL_LIBRARY_FUNCTIONS(CURL_LIBRARY_MEMBER)
#undef CURL_LIBRARY_MEMBER
};

/* Returns the functions, which remain until the process ends, or NULL.  Any thread. */
const struct curl_library *curl_library_load(void);

#endif
