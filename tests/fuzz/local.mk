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

fuzz_cflags = $(AM_CFLAGS) $(GLIB_CFLAGS) $(OPENSSL_CFLAGS) $(NGHTTP2_CFLAGS)
fuzz_ldflags = $(AM_LDFLAGS) $(FUZZ_ENGINE)
fuzz_libnabc_ldadd = $(fuzz_main) $(whole_library) $(URING_LIBS) -lpthread
fuzz_sweet_cppflags = $(sweet_libsweet_a_CPPFLAGS)
fuzz_sweet_ldadd = $(fuzz_main) sweet/libsweet.a $(whole_library) $(GLIB_LIBS) $(URING_LIBS) \
	$(CRYPT_LIBS) $(OPENSSL_LIBS) $(NGHTTP2_LIBS) $(PCRE2_LIBS) $(EXPAT_LIBS) $(coding_libs) $(CURL_LIBS) \
	-lpthread

tests_fuzz_fuzz_wire_SOURCES = tests/fuzz/fuzz-wire.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_wire_CFLAGS = $(fuzz_cflags)
tests_fuzz_fuzz_wire_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_wire_LDADD = $(fuzz_libnabc_ldadd)
tests_fuzz_fuzz_pipe_reader_SOURCES = tests/fuzz/fuzz-pipe-reader.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_pipe_reader_CFLAGS = $(fuzz_cflags)
tests_fuzz_fuzz_pipe_reader_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_pipe_reader_LDADD = $(fuzz_libnabc_ldadd)
tests_fuzz_fuzz_rpc_client_SOURCES = tests/fuzz/fuzz-rpc-client.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_rpc_client_CFLAGS = $(fuzz_cflags)
tests_fuzz_fuzz_rpc_client_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_rpc_client_LDADD = $(fuzz_libnabc_ldadd)
tests_fuzz_fuzz_welcome_SOURCES = tests/fuzz/fuzz-welcome.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_welcome_CFLAGS = $(fuzz_cflags)
tests_fuzz_fuzz_welcome_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_welcome_LDADD = $(fuzz_libnabc_ldadd)
tests_fuzz_fuzz_serve_SOURCES = tests/fuzz/fuzz-serve.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_serve_CFLAGS = $(fuzz_cflags)
tests_fuzz_fuzz_serve_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_serve_LDADD = $(fuzz_libnabc_ldadd)
tests_fuzz_fuzz_rpc_server_SOURCES = tests/fuzz/fuzz-rpc-server.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_rpc_server_CFLAGS = $(fuzz_cflags)
tests_fuzz_fuzz_rpc_server_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_rpc_server_LDADD = $(fuzz_libnabc_ldadd)
tests_fuzz_fuzz_remote_member_SOURCES = tests/fuzz/fuzz-remote-member.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_remote_member_CFLAGS = $(fuzz_cflags)
tests_fuzz_fuzz_remote_member_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_remote_member_LDADD = $(fuzz_libnabc_ldadd)
tests_fuzz_fuzz_remote_member_racing_SOURCES = tests/fuzz/fuzz-remote-member-racing.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_remote_member_racing_CFLAGS = $(fuzz_cflags)
tests_fuzz_fuzz_remote_member_racing_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_remote_member_racing_LDADD = $(fuzz_libnabc_ldadd)
tests_fuzz_fuzz_backend_SOURCES = tests/fuzz/fuzz-backend.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_backend_CFLAGS = $(fuzz_cflags)
tests_fuzz_fuzz_backend_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_backend_LDADD = $(fuzz_libnabc_ldadd)
tests_fuzz_fuzz_backend_racing_SOURCES = tests/fuzz/fuzz-backend-racing.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_backend_racing_CFLAGS = $(fuzz_cflags)
tests_fuzz_fuzz_backend_racing_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_backend_racing_LDADD = $(fuzz_libnabc_ldadd)
tests_fuzz_fuzz_responder_SOURCES = tests/fuzz/fuzz-responder.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_responder_CFLAGS = $(fuzz_cflags)
tests_fuzz_fuzz_responder_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_responder_LDADD = $(fuzz_libnabc_ldadd)
tests_fuzz_fuzz_tls_stream_SOURCES = tests/fuzz/fuzz-tls-stream.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_tls_stream_CPPFLAGS = $(fuzz_sweet_cppflags)
tests_fuzz_fuzz_tls_stream_CFLAGS = $(fuzz_cflags)
tests_fuzz_fuzz_tls_stream_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_tls_stream_LDADD = $(fuzz_sweet_ldadd)
tests_fuzz_fuzz_tls_SOURCES = tests/fuzz/fuzz-tls.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_tls_CPPFLAGS = $(fuzz_sweet_cppflags)
tests_fuzz_fuzz_tls_CFLAGS = $(fuzz_cflags)
tests_fuzz_fuzz_tls_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_tls_LDADD = $(fuzz_sweet_ldadd)
tests_fuzz_fuzz_certificate_SOURCES = tests/fuzz/fuzz-certificate.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_certificate_CPPFLAGS = $(fuzz_sweet_cppflags)
tests_fuzz_fuzz_certificate_CFLAGS = $(fuzz_cflags)
tests_fuzz_fuzz_certificate_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_certificate_LDADD = $(fuzz_sweet_ldadd)
tests_fuzz_fuzz_stream_head_SOURCES = tests/fuzz/fuzz-stream-head.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_stream_head_CPPFLAGS = $(fuzz_sweet_cppflags)
tests_fuzz_fuzz_stream_head_CFLAGS = $(fuzz_cflags)
tests_fuzz_fuzz_stream_head_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_stream_head_LDADD = $(fuzz_sweet_ldadd)
tests_fuzz_fuzz_session_SOURCES = tests/fuzz/fuzz-session.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_session_CPPFLAGS = $(fuzz_sweet_cppflags)
tests_fuzz_fuzz_session_CFLAGS = $(fuzz_cflags)
tests_fuzz_fuzz_session_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_session_LDADD = $(fuzz_sweet_ldadd)
tests_fuzz_fuzz_request_SOURCES = tests/fuzz/fuzz-request.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_request_CPPFLAGS = $(fuzz_sweet_cppflags)
tests_fuzz_fuzz_request_CFLAGS = $(fuzz_cflags)
tests_fuzz_fuzz_request_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_request_LDADD = $(fuzz_sweet_ldadd)
tests_fuzz_fuzz_uri_SOURCES = tests/fuzz/fuzz-uri.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_uri_CPPFLAGS = $(fuzz_sweet_cppflags)
tests_fuzz_fuzz_uri_CFLAGS = $(fuzz_cflags)
tests_fuzz_fuzz_uri_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_uri_LDADD = $(fuzz_sweet_ldadd)
tests_fuzz_fuzz_chunked_SOURCES = tests/fuzz/fuzz-chunked.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_chunked_CPPFLAGS = $(fuzz_sweet_cppflags)
tests_fuzz_fuzz_chunked_CFLAGS = $(fuzz_cflags)
tests_fuzz_fuzz_chunked_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_chunked_LDADD = $(fuzz_sweet_ldadd)
tests_fuzz_fuzz_range_SOURCES = tests/fuzz/fuzz-range.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_range_CPPFLAGS = $(fuzz_sweet_cppflags)
tests_fuzz_fuzz_range_CFLAGS = $(fuzz_cflags)
tests_fuzz_fuzz_range_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_range_LDADD = $(fuzz_sweet_ldadd)
tests_fuzz_fuzz_date_SOURCES = tests/fuzz/fuzz-date.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_date_CPPFLAGS = $(fuzz_sweet_cppflags)
tests_fuzz_fuzz_date_CFLAGS = $(fuzz_cflags)
tests_fuzz_fuzz_date_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_date_LDADD = $(fuzz_sweet_ldadd)
tests_fuzz_fuzz_conditional_SOURCES = tests/fuzz/fuzz-conditional.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_conditional_CPPFLAGS = $(fuzz_sweet_cppflags)
tests_fuzz_fuzz_conditional_CFLAGS = $(fuzz_cflags)
tests_fuzz_fuzz_conditional_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_conditional_LDADD = $(fuzz_sweet_ldadd)
tests_fuzz_fuzz_dav_if_SOURCES = tests/fuzz/fuzz-dav-if.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_dav_if_CPPFLAGS = $(fuzz_sweet_cppflags)
tests_fuzz_fuzz_dav_if_CFLAGS = $(fuzz_cflags)
tests_fuzz_fuzz_dav_if_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_dav_if_LDADD = $(fuzz_sweet_ldadd)
tests_fuzz_fuzz_dav_body_SOURCES = tests/fuzz/fuzz-dav-body.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_dav_body_CPPFLAGS = $(fuzz_sweet_cppflags)
tests_fuzz_fuzz_dav_body_CFLAGS = $(fuzz_cflags)
tests_fuzz_fuzz_dav_body_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_dav_body_LDADD = $(fuzz_sweet_ldadd)
tests_fuzz_fuzz_upstream_SOURCES = tests/fuzz/fuzz-upstream.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_upstream_CPPFLAGS = $(fuzz_sweet_cppflags)
tests_fuzz_fuzz_upstream_CFLAGS = $(fuzz_cflags)
tests_fuzz_fuzz_upstream_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_upstream_LDADD = $(fuzz_sweet_ldadd)

tests_fuzz_fuzz_cgihead_SOURCES = tests/fuzz/fuzz-cgihead.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_cgihead_CPPFLAGS = $(fuzz_sweet_cppflags)
tests_fuzz_fuzz_cgihead_CFLAGS = $(fuzz_cflags)
tests_fuzz_fuzz_cgihead_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_cgihead_LDADD = $(fuzz_sweet_ldadd)
tests_fuzz_fuzz_fcgi_SOURCES = tests/fuzz/fuzz-fcgi.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_fcgi_CPPFLAGS = $(fuzz_sweet_cppflags)
tests_fuzz_fuzz_fcgi_CFLAGS = $(fuzz_cflags)
tests_fuzz_fuzz_fcgi_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_fcgi_LDADD = $(fuzz_sweet_ldadd)
tests_fuzz_fuzz_meta_SOURCES = tests/fuzz/fuzz-meta.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_meta_CPPFLAGS = $(fuzz_sweet_cppflags)
tests_fuzz_fuzz_meta_CFLAGS = $(fuzz_cflags)
tests_fuzz_fuzz_meta_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_meta_LDADD = $(fuzz_sweet_ldadd)
tests_fuzz_fuzz_cachekey_SOURCES = tests/fuzz/fuzz-cachekey.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_cachekey_CPPFLAGS = $(fuzz_sweet_cppflags)
tests_fuzz_fuzz_cachekey_CFLAGS = $(fuzz_cflags)
tests_fuzz_fuzz_cachekey_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_cachekey_LDADD = $(fuzz_sweet_ldadd)
tests_fuzz_fuzz_accept_SOURCES = tests/fuzz/fuzz-accept.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_accept_CPPFLAGS = $(fuzz_sweet_cppflags)
tests_fuzz_fuzz_accept_CFLAGS = $(fuzz_cflags)
tests_fuzz_fuzz_accept_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_accept_LDADD = $(fuzz_sweet_ldadd)
tests_fuzz_fuzz_proxy_SOURCES = tests/fuzz/fuzz-proxy.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_proxy_CPPFLAGS = $(fuzz_sweet_cppflags)
tests_fuzz_fuzz_proxy_CFLAGS = $(fuzz_cflags)
tests_fuzz_fuzz_proxy_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_proxy_LDADD = $(fuzz_sweet_ldadd)
tests_fuzz_fuzz_access_SOURCES = tests/fuzz/fuzz-access.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_access_CPPFLAGS = $(fuzz_sweet_cppflags)
tests_fuzz_fuzz_access_CFLAGS = $(fuzz_cflags)
tests_fuzz_fuzz_access_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_access_LDADD = $(fuzz_sweet_ldadd)
tests_fuzz_fuzz_htpasswd_SOURCES = tests/fuzz/fuzz-htpasswd.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_htpasswd_CPPFLAGS = $(fuzz_sweet_cppflags)
tests_fuzz_fuzz_htpasswd_CFLAGS = $(fuzz_cflags)
tests_fuzz_fuzz_htpasswd_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_htpasswd_LDADD = $(fuzz_sweet_ldadd)
tests_fuzz_fuzz_escape_SOURCES = tests/fuzz/fuzz-escape.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_escape_CPPFLAGS = $(fuzz_sweet_cppflags)
tests_fuzz_fuzz_escape_CFLAGS = $(fuzz_cflags)
tests_fuzz_fuzz_escape_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_escape_LDADD = $(fuzz_sweet_ldadd)
tests_fuzz_fuzz_config_SOURCES = tests/fuzz/fuzz-config.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_config_CPPFLAGS = $(fuzz_sweet_cppflags)
tests_fuzz_fuzz_config_CFLAGS = $(fuzz_cflags)
tests_fuzz_fuzz_config_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_config_LDADD = $(fuzz_sweet_ldadd)
tests_fuzz_fuzz_mime_SOURCES = tests/fuzz/fuzz-mime.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_mime_CPPFLAGS = $(fuzz_sweet_cppflags)
tests_fuzz_fuzz_mime_CFLAGS = $(fuzz_cflags)
tests_fuzz_fuzz_mime_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_mime_LDADD = $(fuzz_sweet_ldadd)
tests_fuzz_fuzz_spawner_SOURCES = tests/fuzz/fuzz-spawner.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_spawner_CPPFLAGS = $(fuzz_sweet_cppflags)
tests_fuzz_fuzz_spawner_CFLAGS = $(fuzz_cflags)
tests_fuzz_fuzz_spawner_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_spawner_LDADD = $(fuzz_sweet_ldadd)
tests_fuzz_fuzz_request_differential_SOURCES = tests/fuzz/fuzz-request-differential.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_request_differential_CPPFLAGS = $(fuzz_sweet_cppflags)
tests_fuzz_fuzz_request_differential_CFLAGS = $(fuzz_cflags)
tests_fuzz_fuzz_request_differential_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_request_differential_LDADD = $(fuzz_sweet_ldadd) -lhttp_parser
tests_fuzz_fuzz_chunked_differential_SOURCES = tests/fuzz/fuzz-chunked-differential.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_chunked_differential_CPPFLAGS = $(fuzz_sweet_cppflags)
tests_fuzz_fuzz_chunked_differential_CFLAGS = $(fuzz_cflags)
tests_fuzz_fuzz_chunked_differential_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_chunked_differential_LDADD = $(fuzz_sweet_ldadd) -lhttp_parser

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
