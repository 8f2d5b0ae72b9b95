/* SPDX-License-Identifier: MIT */
/*
 * fuzz-certificate.c - the files of a certificate (sweet/tls/tls-openssl-file.c): they are accepted,
 * or refused with a reason that names a file.
 *
 * Input: a byte for what the rest is: certificate and key, authorities, or a staple.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tls/tls.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct tls_file none = {.fd = -1};
	struct tls_file file = {.name = "file", .fd = memfd_create("file", MFD_CLOEXEC)};
	struct tls_certificate certificate = {.chain = file, .key = file, .staple = none};
	struct tls_options options = {.name = "host", .client_ca = none};
	unsigned what = size ? data[0] % 3 : 0;
	struct tls_identity *identity;
	char *why;

	MUST(file.fd >= 0);
	if (size)
		MUST(write(file.fd, data + 1, size - 1) == (ssize_t)(size - 1));
	if (what == 1) {
		options.client = TLS_CLIENT_REQUIRED;
		options.client_ca = file;
	} else {
		options.certificates = &certificate;
		options.certificate_count = 1;
		if (what == 2)
			certificate.staple = file;
	}
	identity = tls_library->identity_open(&options, &why);
	MUST(!identity == !!why);
	if (!identity)
		MUST(strstr(why, " \"file\": "));
	free(why);
	tls_library->identity_close(identity);
	close(file.fd);
	return 0;
}
