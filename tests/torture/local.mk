# SPDX-License-Identifier: MIT
# Torture (README.md here): no part of make check, since it takes as long as it is told to.
EXTRA_DIST += tests/torture/README.md tests/torture/figures tests/torture/torture
EXTRA_DIST += \
	tests/torture/backend_answers.py \
	tests/torture/backend_clients.py \
	tests/torture/backend_files.py \
	tests/torture/backend_readers.py \
	tests/torture/backends.py
EXTRA_DIST += tests/torture/bytes.py tests/torture/kills.py tests/torture/mixed.py \
	tests/torture/soak.py tests/torture/tree.py tests/torture/twins.py \
	tests/torture/visitors.py

# What the stages need besides what make makes.
TORTURE_NEEDS = \
	tests/system/cache-owner \
	tests/system/deny-io-uring \
	tests/system/worker-obey \
	tests/system/worker-stream \
	tests/system/worker-told
TORTURE_SECONDS = 3600
torture:
	$(MAKE) $(AM_MAKEFLAGS) all
	$(MAKE) $(AM_MAKEFLAGS) $(TORTURE_NEEDS)
	python3 $(srcdir)/tests/torture/torture --build '$(abs_builddir)' \
		--seconds $(TORTURE_SECONDS) --results tests/torture/results.json $(TORTURE_OPTIONS)
CLEANFILES += tests/torture/results.json
.PHONY: torture

# The stage "bytes": files and pages that tell what they are, and who asks for them.
TORTURE_BYTES = tests/torture/client tests/torture/destroyer tests/torture/files tests/torture/pages
if SWEET
check_PROGRAMS += $(TORTURE_BYTES)
endif
TORTURE_NEEDS += $(TORTURE_BYTES)
tests_torture_client_SOURCES = \
	bench/load/client-answer.c \
	tests/torture/check.c tests/torture/check.h \
	tests/torture/client-tls.c tests/torture/client-tls.h \
	tests/torture/client.c \
	tests/torture/content.h \
	tests/torture/parts.c tests/torture/parts.h
tests_torture_client_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/bench/load
tests_torture_client_CFLAGS = $(AM_CFLAGS) -O2 $(OPENSSL_CFLAGS)
tests_torture_client_LDADD = $(OPENSSL_LIBS)
tests_torture_destroyer_SOURCES = tests/torture/content.h tests/torture/destroyer.c
tests_torture_destroyer_LDADD = libnabc/libnabc.la
tests_torture_destroyer_LDFLAGS = $(AM_LDFLAGS) -static
tests_torture_files_SOURCES = tests/torture/content.h tests/torture/files.c
tests_torture_files_LDADD =
tests_torture_pages_SOURCES = tests/torture/content.h tests/torture/pages.c
tests_torture_pages_LDADD = libnabc/libnabc.la
tests_torture_pages_LDFLAGS = $(AM_LDFLAGS) -static

# The stages "hostile", "handshakes" and "together": clients that mean well and ill, members and workers that mean ill.
TORTURE_HOSTILE = tests/torture/honest tests/torture/hostile-http \
	tests/torture/hostile-member tests/torture/hostile-worker
if SWEET
check_PROGRAMS += $(TORTURE_HOSTILE)
endif
TORTURE_NEEDS += $(TORTURE_HOSTILE)
EXTRA_DIST += \
	tests/torture/handshakes.py \
	tests/torture/hostile.h tests/torture/hostile.py \
	tests/torture/together.py
tests_torture_honest_SOURCES = \
	tests/torture/honest-tls.c tests/torture/honest-tls.h \
	tests/torture/honest.c
tests_torture_honest_CFLAGS = $(AM_CFLAGS) $(OPENSSL_CFLAGS)
tests_torture_honest_LDADD = $(OPENSSL_LIBS)
tests_torture_hostile_http_SOURCES = \
	tests/torture/hostile-frames.c tests/torture/hostile-frames.h \
	tests/torture/hostile-http.c
tests_torture_hostile_http_LDADD =
tests_torture_hostile_member_LDADD = libnabc/libnabc-internal.la $(URING_LIBS) -lpthread
tests_torture_hostile_worker_LDADD = libnabc/libnabc.la -lpthread
tests_torture_hostile_worker_LDFLAGS = $(AM_LDFLAGS) -static
