# SPDX-License-Identifier: MIT
# Fuzz targets, one a program (README.md here).  Without a fuzzer they run over
# their corpora, as tests like others; ./configure --enable-fuzzing gives each
# one a fuzzer, and make fuzz runs them all.
FUZZ_TARGETS = \
	tests/fuzz/fuzz-accept \
	tests/fuzz/fuzz-access \
	tests/fuzz/fuzz-backend \
	tests/fuzz/fuzz-backend-racing \
	tests/fuzz/fuzz-cachekey \
	tests/fuzz/fuzz-certificate \
	tests/fuzz/fuzz-cgihead \
	tests/fuzz/fuzz-chunked \
	tests/fuzz/fuzz-conditional \
	tests/fuzz/fuzz-config \
	tests/fuzz/fuzz-date \
	tests/fuzz/fuzz-dav-body \
	tests/fuzz/fuzz-dav-if \
	tests/fuzz/fuzz-escape \
	tests/fuzz/fuzz-fcgi \
	tests/fuzz/fuzz-htpasswd \
	tests/fuzz/fuzz-meta \
	tests/fuzz/fuzz-mime \
	tests/fuzz/fuzz-pipe-reader \
	tests/fuzz/fuzz-proxy \
	tests/fuzz/fuzz-range \
	tests/fuzz/fuzz-remote-member \
	tests/fuzz/fuzz-remote-member-racing \
	tests/fuzz/fuzz-request \
	tests/fuzz/fuzz-responder \
	tests/fuzz/fuzz-rpc-client \
	tests/fuzz/fuzz-rpc-server \
	tests/fuzz/fuzz-serve \
	tests/fuzz/fuzz-session \
	tests/fuzz/fuzz-spawner \
	tests/fuzz/fuzz-stream-head \
	tests/fuzz/fuzz-tls \
	tests/fuzz/fuzz-tls-stream \
	tests/fuzz/fuzz-upstream \
	tests/fuzz/fuzz-uri \
	tests/fuzz/fuzz-welcome \
	tests/fuzz/fuzz-wire
if HAVE_HTTP_PARSER
FUZZ_TARGETS += \
	tests/fuzz/fuzz-chunked-differential \
	tests/fuzz/fuzz-request-differential
endif

if !FUZZING
fuzz_main = tests/fuzz/libmain.a
check_LIBRARIES = $(fuzz_main)
tests_fuzz_libmain_a_SOURCES = tests/fuzz/fuzz.h tests/fuzz/main.c
if SWEET
TESTS += $(FUZZ_TARGETS)
endif
endif
if SWEET
check_PROGRAMS += $(FUZZ_TARGETS)
endif

# For all of them, so that a target is one line of the list above.
fuzz_ldadd = $(fuzz_main) sweet/libsweet.a $(whole_library) $(GLIB_LIBS) $(URING_LIBS) \
	$(CRYPT_LIBS) $(OPENSSL_LIBS) $(NGHTTP2_LIBS) $(PCRE2_LIBS) $(EXPAT_LIBS) $(coding_libs) $(CURL_LIBS) \
	-lpthread
tests/fuzz/fuzz-%: private AM_CPPFLAGS = $(sweet_unit_cppflags)
tests/fuzz/fuzz-%: private more_cflags = $(GLIB_CFLAGS) $(OPENSSL_CFLAGS) $(NGHTTP2_CFLAGS)
tests/fuzz/fuzz-%: private more_ldflags = $(FUZZ_ENGINE)
tests/fuzz/fuzz-%: private LDADD = $(fuzz_ldadd)
$(FUZZ_TARGETS): $(fuzz_main) sweet/libsweet.a
tests_fuzz_fuzz_chunked_differential_LDADD = $(fuzz_ldadd) -lhttp_parser
tests_fuzz_fuzz_request_differential_LDADD = $(fuzz_ldadd) -lhttp_parser

# Each target for $FUZZ_SECONDS, with clang's fuzzer; in a build for it, or one made here.
fuzz_environment = srcdir='$(abs_srcdir)'; builddir='$(abs_builddir)'; MAKE='$(MAKE)'; \
	export srcdir builddir MAKE;
if FUZZING
fuzz: $(FUZZ_TARGETS)
	$(fuzz_environment) sh $(srcdir)/tests/fuzz/fuzz.sh $(FUZZ_TARGETS)
else
fuzz:
	$(fuzz_environment) sh $(srcdir)/tests/fuzz/fuzz.sh --build
endif
.PHONY: fuzz

EXTRA_DIST += \
	tests/fuzz/README.md \
	tests/fuzz/corpus \
	tests/fuzz/descriptors.h \
	tests/fuzz/dictionary \
	tests/fuzz/frames.h \
	tests/fuzz/fuzz.sh \
	tests/fuzz/head.h \
	tests/fuzz/racer.h \
	tests/fuzz/server.h \
	tests/fuzz/stranger.h \
	tests/fuzz/theirs.h \
	tests/fuzz/withdraw.h
