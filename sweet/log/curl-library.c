/* SPDX-License-Identifier: MIT */
/*
 * curl-library.c - see curl-library.h.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "log/curl-library.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects what follows */
static struct curl_library library;
static bool loaded;

static bool load(void)
{
	void *file = dlopen(CURL_LIBRARY_FILE, RTLD_NOW | RTLD_LOCAL);

	if (!file)
		return false;
#define FIND(name)                                                                                 \
	*(void **)&library.name = dlsym(file, "curl_" #name);                                      \
	if (!library.name)                                                                         \
		goto failed;
	CURL_LIBRARY_FUNCTIONS(FIND)
#undef FIND
	return true;
failed:
	dlclose(file);
	return false;
}

const struct curl_library *curl_library_load(void)
{
	bool good;

	pthread_mutex_lock(&lock);
	good = loaded = loaded || load();
	pthread_mutex_unlock(&lock);
	return good ? &library : NULL;
}
