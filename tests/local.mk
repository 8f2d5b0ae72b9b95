# SPDX-License-Identifier: MIT
# Tests: units by Check, one program for each file under test; the manual pages
# and the floors against the sources; then the whole server, by pytest.

# They run once, so compiling them counts: it takes a quarter of the time of -O2.  What they
# test is optimized.  Fortified calls need optimization.
tests/unit/%.o: CFLAGS += -O0 -U_FORTIFY_SOURCE

# They are never installed and need no shared library of the tree, so the compiler links them
# itself: libtool takes four times as long, nearly 400 times.  (test-glib needs such libraries.)
without_libtool = $(SHELL) -c 'while test "$${1\#--}" != "$$1"; do shift; done; exec "$$@"' sh
whole_library = libnabc/libnabc-internal.la
tests/unit/libnabc/% tests/unit/sweet/% tests/unit/nabcctl/% tests/unit/bench/% tests/fuzz/%: \
	private LIBTOOL = $(without_libtool)
tests/unit/libnabc/% tests/unit/sweet/% tests/unit/nabcctl/% tests/unit/bench/% tests/fuzz/%: \
	private whole_library = libnabc/.libs/libnabc-internal.a

NABC_UNITS = \
	tests/unit/libnabc/api/test-admin \
	tests/unit/libnabc/api/test-admin-strange \
	tests/unit/libnabc/api/test-nabc \
	tests/unit/libnabc/api/test-nabc-bare \
	tests/unit/libnabc/api/test-nabc-evict \
	tests/unit/libnabc/api/test-nabc-grant \
	tests/unit/libnabc/api/test-nabc-grant-bad \
	tests/unit/libnabc/api/test-nabc-hold \
	tests/unit/libnabc/api/test-nabc-ids \
	tests/unit/libnabc/api/test-nabc-insert \
	tests/unit/libnabc/api/test-nabc-name \
	tests/unit/libnabc/api/test-nabc-pin \
	tests/unit/libnabc/api/test-nabc-pressure \
	tests/unit/libnabc/api/test-nabc-process \
	tests/unit/libnabc/api/test-nabc-refused \
	tests/unit/libnabc/api/test-nabc-send \
	tests/unit/libnabc/api/test-nabc-share \
	tests/unit/libnabc/api/test-nabc-sizes \
	tests/unit/libnabc/api/test-nabc-sums \
	tests/unit/libnabc/api/test-nabc-sums-bad \
	tests/unit/libnabc/api/test-nabc-wait \
	tests/unit/libnabc/api/test-recorded \
	tests/unit/libnabc/base/test-checksum \
	tests/unit/libnabc/base/test-crc32c \
	tests/unit/libnabc/base/test-extent \
	tests/unit/libnabc/base/test-fragment \
	tests/unit/libnabc/base/test-hash-table \
	tests/unit/libnabc/base/test-id \
	tests/unit/libnabc/cache/test-evictions \
	tests/unit/libnabc/cache/test-grant \
	tests/unit/libnabc/cache/test-grant-imports \
	tests/unit/libnabc/cache/test-grant-marks \
	tests/unit/libnabc/cache/test-import \
	tests/unit/libnabc/cache/test-index \
	tests/unit/libnabc/cache/test-names \
	tests/unit/libnabc/cache/test-remote-member \
	tests/unit/libnabc/membership/test-collector \
	tests/unit/libnabc/membership/test-collector-thread \
	tests/unit/libnabc/membership/test-disposal \
	tests/unit/libnabc/membership/test-grant-ops \
	tests/unit/libnabc/membership/test-handle \
	tests/unit/libnabc/membership/test-handle-grow \
	tests/unit/libnabc/membership/test-handle-huge \
	tests/unit/libnabc/membership/test-handle-read \
	tests/unit/libnabc/membership/test-handle-sums \
	tests/unit/libnabc/membership/test-name-ops \
	tests/unit/libnabc/membership/test-rpc-server \
	tests/unit/libnabc/membership/test-rpc-server-bad \
	tests/unit/libnabc/membership/test-serve \
	tests/unit/libnabc/membership/test-serve-access \
	tests/unit/libnabc/os/test-cork \
	tests/unit/libnabc/os/test-device \
	tests/unit/libnabc/os/test-identity \
	tests/unit/libnabc/os/test-interface \
	tests/unit/libnabc/os/test-peer \
	tests/unit/libnabc/os/test-pin \
	tests/unit/libnabc/os/test-process \
	tests/unit/libnabc/os/test-queue \
	tests/unit/libnabc/os/test-queue-threads \
	tests/unit/libnabc/os/test-random \
	tests/unit/libnabc/os/test-registered \
	tests/unit/libnabc/os/test-registered-limits \
	tests/unit/libnabc/os/test-ring \
	tests/unit/libnabc/os/test-segment \
	tests/unit/libnabc/os/test-segment-pin \
	tests/unit/libnabc/os/test-socket \
	tests/unit/libnabc/policy/test-cleaning \
	tests/unit/libnabc/policy/test-expiry \
	tests/unit/libnabc/policy/test-replacement \
	tests/unit/libnabc/policy/test-replacement-model \
	tests/unit/libnabc/send/test-async \
	tests/unit/libnabc/send/test-async-end \
	tests/unit/libnabc/send/test-choice \
	tests/unit/libnabc/send/test-epoch \
	tests/unit/libnabc/send/test-kernel \
	tests/unit/libnabc/send/test-kernel-buffer \
	tests/unit/libnabc/send/test-kernel-unit \
	tests/unit/libnabc/send/test-kernel-worker \
	tests/unit/libnabc/send/test-message \
	tests/unit/libnabc/send/test-ring-buffers \
	tests/unit/libnabc/send/test-ring-buffers-steps \
	tests/unit/libnabc/send/test-route \
	tests/unit/libnabc/send/test-route-table \
	tests/unit/libnabc/send/test-send-op \
	tests/unit/libnabc/send/test-send-op-end \
	tests/unit/libnabc/send/test-sendfile \
	tests/unit/libnabc/send/test-transmit \
	tests/unit/libnabc/send/test-transmit-cork \
	tests/unit/libnabc/send/test-transmit-hold \
	tests/unit/libnabc/send/test-transmit-learn \
	tests/unit/libnabc/send/test-transmit-local \
	tests/unit/libnabc/send/test-transmit-reasons \
	tests/unit/libnabc/send/test-transmit-refused \
	tests/unit/libnabc/send/test-transmit-registered \
	tests/unit/libnabc/send/test-transmit-room \
	tests/unit/libnabc/send/test-transmit-texts \
	tests/unit/libnabc/send/test-transmit-wire \
	tests/unit/libnabc/store/test-eviction \
	tests/unit/libnabc/store/test-member \
	tests/unit/libnabc/store/test-member-attached \
	tests/unit/libnabc/store/test-member-eviction \
	tests/unit/libnabc/store/test-member-resize \
	tests/unit/libnabc/store/test-revocation-map \
	tests/unit/libnabc/store/test-store \
	tests/unit/libnabc/store/test-unit \
	tests/unit/libnabc/store/test-unit-checksum \
	tests/unit/libnabc/store/test-unit-checksum-make \
	tests/unit/libnabc/store/test-unit-snapshot \
	tests/unit/libnabc/test-blocking \
	tests/unit/libnabc/test-blocking-locks \
	tests/unit/libnabc/test-blocking-worker \
	tests/unit/libnabc/test-degradation \
	tests/unit/libnabc/test-degradation-zerocopy \
	tests/unit/libnabc/test-hostile \
	tests/unit/libnabc/test-hostile-greed \
	tests/unit/libnabc/test-hostile-kill \
	tests/unit/libnabc/test-hostile-table \
	tests/unit/libnabc/wire/test-pending \
	tests/unit/libnabc/wire/test-pending-tags \
	tests/unit/libnabc/wire/test-pipe-reader \
	tests/unit/libnabc/wire/test-rpc-client \
	tests/unit/libnabc/wire/test-send-window \
	tests/unit/libnabc/wire/test-wire \
	tests/unit/libnabc/wire/test-wire-worker \
	tests/unit/libnabc/worker/test-backend \
	tests/unit/libnabc/worker/test-backend-bad \
	tests/unit/libnabc/worker/test-backend-body \
	tests/unit/libnabc/worker/test-backend-heads \
	tests/unit/libnabc/worker/test-backend-pending \
	tests/unit/libnabc/worker/test-backend-posix \
	tests/unit/libnabc/worker/test-backend-start \
	tests/unit/libnabc/worker/test-backend-stream \
	tests/unit/libnabc/worker/test-backend-withdraw \
	tests/unit/libnabc/worker/test-responder \
	tests/unit/libnabc/worker/test-responder-heads \
	tests/unit/libnabc/worker/test-responder-loop \
	tests/unit/libnabc/worker/test-responder-threads \
	tests/unit/libnabc/worker/test-response-head \
	tests/unit/libnabc/worker/test-stream
SWEET_UNITS = \
	tests/unit/sweet/auth/test-apr1 \
	tests/unit/sweet/auth/test-htpasswd \
	tests/unit/sweet/auth/test-ip-acl \
	tests/unit/sweet/backend/test-backend-call \
	tests/unit/sweet/backend/test-backend-call-response \
	tests/unit/sweet/backend/test-backpressure \
	tests/unit/sweet/backend/test-call-queue \
	tests/unit/sweet/backend/test-read-buffer \
	tests/unit/sweet/backend/test-response-queue \
	tests/unit/sweet/base/test-address \
	tests/unit/sweet/base/test-balancer \
	tests/unit/sweet/base/test-body-queue \
	tests/unit/sweet/base/test-byte-rate \
	tests/unit/sweet/base/test-date \
	tests/unit/sweet/base/test-date-parse \
	tests/unit/sweet/base/test-escape \
	tests/unit/sweet/base/test-histogram \
	tests/unit/sweet/base/test-json \
	tests/unit/sweet/base/test-list \
	tests/unit/sweet/base/test-peer-addresses \
	tests/unit/sweet/base/test-random-id \
	tests/unit/sweet/base/test-record-ring \
	tests/unit/sweet/base/test-scan \
	tests/unit/sweet/base/test-siphash \
	tests/unit/sweet/base/test-spare-memory \
	tests/unit/sweet/base/test-timer \
	tests/unit/sweet/base/test-user-open \
	tests/unit/sweet/coding/test-coded-fields \
	tests/unit/sweet/coding/test-compress-rule \
	tests/unit/sweet/coding/test-encoder \
	tests/unit/sweet/config/test-config \
	tests/unit/sweet/config/test-config-effect \
	tests/unit/sweet/config/test-config-log \
	tests/unit/sweet/config/test-config-scopes \
	tests/unit/sweet/config/test-config-script \
	tests/unit/sweet/config/test-config-startup \
	tests/unit/sweet/config/test-path-rules \
	tests/unit/sweet/config/test-pool-config \
	tests/unit/sweet/conn/test-connection-body \
	tests/unit/sweet/conn/test-connection-many \
	tests/unit/sweet/conn/test-listener \
	tests/unit/sweet/core/test-access-log \
	tests/unit/sweet/core/test-auth \
	tests/unit/sweet/core/test-auth-clients \
	tests/unit/sweet/core/test-file-path \
	tests/unit/sweet/core/test-page-memory \
	tests/unit/sweet/core/test-request-memory \
	tests/unit/sweet/core/test-site \
	tests/unit/sweet/core/test-socket-options \
	tests/unit/sweet/core/test-text-response \
	tests/unit/sweet/core/test-thread-logs \
	tests/unit/sweet/core/test-transaction \
	tests/unit/sweet/dav/test-dav-body \
	tests/unit/sweet/dav/test-dav-if \
	tests/unit/sweet/dav/test-dav-locks \
	tests/unit/sweet/dav/test-dav-multistatus \
	tests/unit/sweet/dav/test-dav-properties \
	tests/unit/sweet/dav/test-dav-request \
	tests/unit/sweet/dav/test-dav-temp \
	tests/unit/sweet/dav/test-dav-tree \
	tests/unit/sweet/dav/test-dav-xml \
	tests/unit/sweet/event/test-client-limit \
	tests/unit/sweet/event/test-data-path \
	tests/unit/sweet/event/test-loop \
	tests/unit/sweet/event/test-loop-bytes \
	tests/unit/sweet/event/test-loop-close \
	tests/unit/sweet/event/test-loop-pause \
	tests/unit/sweet/event/test-loop-queue \
	tests/unit/sweet/event/test-loop-send \
	tests/unit/sweet/event/test-loop-send-end \
	tests/unit/sweet/event/test-loop-tasks \
	tests/unit/sweet/event/test-loop-uring-receive \
	tests/unit/sweet/event/test-loop-uring-send \
	tests/unit/sweet/event/test-loop-uring-send-zerocopy \
	tests/unit/sweet/event/test-loop-watch \
	tests/unit/sweet/event/test-piece \
	tests/unit/sweet/event/test-thread-pool \
	tests/unit/sweet/event/test-thread-pool-turns \
	tests/unit/sweet/files/test-compressor \
	tests/unit/sweet/files/test-direct-read \
	tests/unit/sweet/files/test-docroot \
	tests/unit/sweet/files/test-docroot-open \
	tests/unit/sweet/files/test-file-cache \
	tests/unit/sweet/files/test-file-cache-change \
	tests/unit/sweet/files/test-file-cache-modes \
	tests/unit/sweet/files/test-file-cache-read \
	tests/unit/sweet/files/test-file-cache-siblings \
	tests/unit/sweet/files/test-file-cache-table \
	tests/unit/sweet/files/test-file-cache-tick \
	tests/unit/sweet/files/test-file-cache-variant \
	tests/unit/sweet/files/test-file-cache-waiters \
	tests/unit/sweet/files/test-filehead \
	tests/unit/sweet/files/test-pagecache \
	tests/unit/sweet/files/test-read-directory \
	tests/unit/sweet/files/test-spool \
	tests/unit/sweet/gateway/test-cgi-env \
	tests/unit/sweet/gateway/test-worker-channel \
	tests/unit/sweet/gateway/test-worker-channel-response \
	tests/unit/sweet/gateway/test-worker-channel-withdraw \
	tests/unit/sweet/h2/test-session \
	tests/unit/sweet/h2/test-session-body \
	tests/unit/sweet/h2/test-session-end \
	tests/unit/sweet/h2/test-session-frames \
	tests/unit/sweet/h2/test-session-many \
	tests/unit/sweet/h2/test-session-message \
	tests/unit/sweet/h2/test-session-turn \
	tests/unit/sweet/h2/test-stream-head \
	tests/unit/sweet/handler/test-autoindex \
	tests/unit/sweet/handler/test-coded-response \
	tests/unit/sweet/handler/test-status \
	tests/unit/sweet/handler/test-status-field \
	tests/unit/sweet/handler/test-status-json \
	tests/unit/sweet/handler/test-status-metrics \
	tests/unit/sweet/handler/test-status-page \
	tests/unit/sweet/http/test-accept \
	tests/unit/sweet/http/test-autoindex-render \
	tests/unit/sweet/http/test-body \
	tests/unit/sweet/http/test-cachecontrol \
	tests/unit/sweet/http/test-cachekey \
	tests/unit/sweet/http/test-chunked \
	tests/unit/sweet/http/test-conditional \
	tests/unit/sweet/http/test-etag \
	tests/unit/sweet/http/test-field \
	tests/unit/sweet/http/test-fields \
	tests/unit/sweet/http/test-forwarded \
	tests/unit/sweet/http/test-mime \
	tests/unit/sweet/http/test-multipart \
	tests/unit/sweet/http/test-proxy-protocol \
	tests/unit/sweet/http/test-range \
	tests/unit/sweet/http/test-redirect \
	tests/unit/sweet/http/test-request \
	tests/unit/sweet/http/test-request-contents \
	tests/unit/sweet/http/test-request-escape \
	tests/unit/sweet/http/test-request-head \
	tests/unit/sweet/http/test-request-keep \
	tests/unit/sweet/http/test-request-line \
	tests/unit/sweet/http/test-request-list \
	tests/unit/sweet/http/test-response \
	tests/unit/sweet/http/test-traceparent \
	tests/unit/sweet/http/test-trailers \
	tests/unit/sweet/http/test-uri \
	tests/unit/sweet/log/test-access-line \
	tests/unit/sweet/log/test-curl-library \
	tests/unit/sweet/log/test-log \
	tests/unit/sweet/log/test-log-format \
	tests/unit/sweet/log/test-span-export \
	tests/unit/sweet/log/test-span-json \
	tests/unit/sweet/log/test-template-line \
	tests/unit/sweet/process/test-endpoint \
	tests/unit/sweet/process/test-endpoints \
	tests/unit/sweet/process/test-memory-limit \
	tests/unit/sweet/process/test-pidfile \
	tests/unit/sweet/process/test-privileges \
	tests/unit/sweet/process/test-readonly \
	tests/unit/sweet/process/test-supervisor \
	tests/unit/sweet/process/test-syscall-filter \
	tests/unit/sweet/program/test-cacheable \
	tests/unit/sweet/program/test-cgihead \
	tests/unit/sweet/program/test-cgihead-library \
	tests/unit/sweet/program/test-fcgi \
	tests/unit/sweet/program/test-meta \
	tests/unit/sweet/program/test-upstream-head \
	tests/unit/sweet/program/test-upstream-reply \
	tests/unit/sweet/program/test-upstream-request \
	tests/unit/sweet/respcache/test-respcache \
	tests/unit/sweet/respcache/test-respcache-entry \
	tests/unit/sweet/respcache/test-respcache-flight \
	tests/unit/sweet/respcache/test-respcache-purge \
	tests/unit/sweet/respcache/test-respcache-threads \
	tests/unit/sweet/respcache/test-respcache-variant \
	tests/unit/sweet/rules/test-header-rule \
	tests/unit/sweet/rules/test-path-pattern \
	tests/unit/sweet/rules/test-request-rule \
	tests/unit/sweet/rules/test-template \
	tests/unit/sweet/rules/test-variable \
	tests/unit/sweet/spawn/test-key-opener \
	tests/unit/sweet/spawn/test-spawn-child \
	tests/unit/sweet/spawn/test-spawn-table \
	tests/unit/sweet/spawn/test-spawner \
	tests/unit/sweet/spawn/test-spawner-death \
	tests/unit/sweet/spawn/test-spawner-process \
	tests/unit/sweet/spawn/test-spawner-program \
	tests/unit/sweet/tls/record/test-tls-memory \
	tests/unit/sweet/tls/record/test-tls-record \
	tests/unit/sweet/tls/record/test-tls-secrets \
	tests/unit/sweet/tls/record/test-tls-stream \
	tests/unit/sweet/tls/test-client-hello \
	tests/unit/sweet/tls/test-tls-challenge \
	tests/unit/sweet/tls/test-tls-openssl \
	tests/unit/sweet/tls/test-tls-openssl-channel \
	tests/unit/sweet/tls/test-tls-openssl-file \
	tests/unit/sweet/tls/test-tls-output \
	tests/unit/sweet/tls/test-tls-tickets \
	tests/unit/sweet/upstream/test-capacity \
	tests/unit/sweet/upstream/test-http-message \
	tests/unit/sweet/upstream/test-name-lookup \
	tests/unit/sweet/upstream/test-permits \
	tests/unit/sweet/upstream/test-resolver \
	tests/unit/sweet/upstream/test-upstream-link \
	tests/unit/sweet/upstream/test-upstream-link-http \
	tests/unit/sweet/upstream/test-upstream-table

FCGI_UNITS = \
	tests/unit/libnabc-fcgi/test-fcgx-stream \
	tests/unit/libnabc-fcgi/test-head \
	tests/unit/libnabc-fcgi/test-input \
	tests/unit/libnabc-fcgi/test-mode \
	tests/unit/libnabc-fcgi/test-output
GLIB_UNITS = tests/unit/libnabc-glib/test-glib
CTL_UNITS = \
	tests/unit/nabcctl/test-ctl \
	tests/unit/nabcctl/test-ctl-counter
# The pure parts of the benchmarks' client.
BENCH_UNITS = \
	tests/unit/bench/load/test-client-answer \
	tests/unit/bench/load/test-client-requests \
	tests/unit/bench/load/test-client-schedule \
	tests/unit/bench/load/test-client-times \
	tests/unit/bench/load/test-surge \
	tests/unit/bench/test-wan-link

# A unit test of the library links all of it, hidden names included.
LDADD = $(whole_library) $(CHECK_LIBS) $(URING_LIBS) -lpthread
if HAVE_CHECK
check_PROGRAMS += $(NABC_UNITS) tests/unit/worker-fixture
TESTS += $(NABC_UNITS)
if SWEET
check_PROGRAMS += $(FCGI_UNITS) $(GLIB_UNITS) $(SWEET_UNITS) $(CTL_UNITS) $(BENCH_UNITS)
TESTS += $(FCGI_UNITS) $(GLIB_UNITS) $(SWEET_UNITS) $(CTL_UNITS) $(BENCH_UNITS)
endif
endif

# All units, without what only other tests use.
unit-programs: $(NABC_UNITS) $(FCGI_UNITS) $(GLIB_UNITS) $(SWEET_UNITS) $(CTL_UNITS) \
	$(BENCH_UNITS) tests/unit/worker-fixture $(FUZZ_TARGETS)
.PHONY: unit-programs

tests_unit_worker_fixture_SOURCES = \
	tests/unit/worker-fixture-stream.c \
	tests/unit/worker-fixture.c tests/unit/worker-fixture.h

# What units are compiled with, and link: by folder, so that a unit is one line of a list above.
# (What automake knows of a single program goes before; its objects then have names of their own.)
# The kernel module's calls, for its model.
tests/unit/libnabc/%: private more_cppflags = -I$(srcdir)/kernel-shim
tests/unit/libnabc/%: private more_cflags = $(CHECK_CFLAGS)

# The objects of the library, in which a test stands for the server.
tests/unit/libnabc-fcgi/%: private more_cppflags = -I$(srcdir)/libnabc-fcgi
tests/unit/libnabc-fcgi/%: private more_cflags = $(CHECK_CFLAGS)
tests/unit/libnabc-fcgi/%: private LDADD = libnabc-fcgi/libnabc-fcgi-internal.la \
	libnabc/libnabc.la $(CHECK_LIBS) -lpthread
$(FCGI_UNITS): libnabc-fcgi/libnabc-fcgi-internal.la libnabc/libnabc.la

# Through the public calls alone, so that it links what is installed.
tests/unit/libnabc-glib/%: private more_cppflags = -I$(srcdir)/libnabc-glib
tests/unit/libnabc-glib/%: private more_cflags = $(GLIB_CFLAGS) $(CHECK_CFLAGS)
tests/unit/libnabc-glib/%: private LDADD = libnabc-glib/libnabc-glib.la libnabc/libnabc.la \
	$(GLIB_LIBS) $(CHECK_LIBS) -lpthread
$(GLIB_UNITS): libnabc-glib/libnabc-glib.la libnabc/libnabc.la

sweet_unit_cppflags = $(sweet_libsweet_a_CPPFLAGS) -I$(srcdir)/libnabc -I$(srcdir)/tests/unit
sweet_unit_ldadd = sweet/libsweet.a $(whole_library) \
	$(GLIB_LIBS) $(CHECK_LIBS) $(URING_LIBS) $(CRYPT_LIBS) $(OPENSSL_LIBS) $(NGHTTP2_LIBS) \
	$(PCRE2_LIBS) $(EXPAT_LIBS) $(coding_libs) -lpthread
tests/unit/sweet/%: private AM_CPPFLAGS = $(sweet_unit_cppflags)
tests/unit/sweet/%: private more_cflags = $(GLIB_CFLAGS) $(CHECK_CFLAGS) $(OPENSSL_CFLAGS) \
	$(NGHTTP2_CFLAGS) $(PCRE2_CFLAGS)
tests/unit/sweet/%: private LDADD = $(sweet_unit_ldadd)
$(SWEET_UNITS): sweet/libsweet.a
if HAVE_BROTLI
decoding_libs = -lbrotlidec
endif
tests_unit_sweet_coding_test_encoder_LDADD = $(sweet_unit_ldadd) $(decoding_libs)

tests/unit/nabcctl/%: private more_cppflags = -I$(srcdir)/nabcctl -I$(srcdir)/sweet
tests/unit/nabcctl/%: private more_cflags = $(GLIB_CFLAGS) $(CHECK_CFLAGS)
tests/unit/nabcctl/%: private LDADD = nabcctl/libnabcctl.a $(whole_library) \
	$(GLIB_LIBS) $(CHECK_LIBS) $(URING_LIBS) -lm -lpthread
$(CTL_UNITS): nabcctl/libnabcctl.a

tests/unit/bench/%: private more_cppflags = -I$(srcdir)/bench -I$(srcdir)/bench/load
tests/unit/bench/%: private more_cflags = $(CHECK_CFLAGS)
tests/unit/bench/%: private LDADD = $(CHECK_LIBS) -lm -lpthread
# Beside the test, the sources that it is of.
tests_unit_bench_load_test_client_answer_SOURCES = \
	bench/load/client-answer.c \
	tests/unit/bench/load/test-client-answer.c
tests_unit_bench_load_test_client_requests_SOURCES = \
	bench/load/client-requests.c \
	bench/load/client-workload-list.c \
	tests/unit/bench/load/test-client-requests.c
tests_unit_bench_load_test_client_schedule_SOURCES = \
	bench/load/client-schedule.c \
	bench/load/surge.c \
	tests/unit/bench/load/test-client-schedule.c
tests_unit_bench_load_test_client_times_SOURCES = \
	bench/load/client-histogram.c \
	bench/load/client-pause.c \
	tests/unit/bench/load/test-client-times.c
tests_unit_bench_load_test_surge_SOURCES = \
	bench/load/client-requests.c \
	bench/load/client-workload-surge.c \
	bench/load/surge.c \
	tests/unit/bench/load/test-surge.c
tests_unit_bench_test_wan_link_SOURCES = bench/wan-link.c tests/unit/bench/test-wan-link.c

# What the system tests need besides the server; they use no Check.
if SWEET
check_PROGRAMS += \
	tests/system/cache-owner \
	tests/system/deny-io-uring \
	tests/system/worker-heads \
	tests/system/worker-many \
	tests/system/worker-obey \
	tests/system/worker-stream \
	tests/system/worker-told
endif
tests_system_cache_owner_LDADD = libnabc/libnabc.la
tests_system_cache_owner_LDFLAGS = $(AM_LDFLAGS) -static
tests_system_deny_io_uring_LDADD =
tests_system_worker_heads_LDADD = libnabc/libnabc-internal.la
tests_system_worker_heads_LDFLAGS = $(AM_LDFLAGS) -static
tests_system_worker_many_LDADD = libnabc/libnabc.la
tests_system_worker_many_LDFLAGS = $(AM_LDFLAGS) -static
tests_system_worker_obey_CFLAGS = $(AM_CFLAGS) $(GLIB_CFLAGS)
tests_system_worker_obey_LDADD = libnabc/libnabc.la $(GLIB_LIBS)
tests_system_worker_obey_LDFLAGS = $(AM_LDFLAGS) -static
tests_system_worker_told_CFLAGS = $(AM_CFLAGS) $(GLIB_CFLAGS)
tests_system_worker_told_LDADD = libnabc/libnabc.la $(GLIB_LIBS)
tests_system_worker_told_LDFLAGS = $(AM_LDFLAGS) -static
tests_system_worker_stream_CFLAGS = $(AM_CFLAGS) $(GLIB_CFLAGS)
tests_system_worker_stream_LDADD = libnabc/libnabc.la $(GLIB_LIBS)
tests_system_worker_stream_LDFLAGS = $(AM_LDFLAGS) -static
# Programs of libfcgi, which the tests compile.
EXTRA_DIST += tests/system/fcgi-obey.c tests/system/fcgi-stdio.c tests/system/fcgi-threads.c
EXTRA_DIST += \
	tests/system/bench-torture/test_bench.py \
	tests/system/bench-torture/test_bench_absent.py \
	tests/system/bench-torture/test_bench_bars.py \
	tests/system/bench-torture/test_bench_before.py \
	tests/system/bench-torture/test_bench_client.py \
	tests/system/bench-torture/test_bench_logs.py \
	tests/system/bench-torture/test_bench_nic.py \
	tests/system/bench-torture/test_bench_tls.py \
	tests/system/bench-torture/test_torture.py \
	tests/system/bench-torture/test_torture_backends.py \
	tests/system/bench-torture/test_torture_bytes.py \
	tests/system/bench-torture/test_torture_figures.py \
	tests/system/bench-torture/test_torture_twins.py \
	tests/system/bench-torture/test_wan.py \
	tests/system/cache/test_authorized.py \
	tests/system/cache/test_caches.py \
	tests/system/cache/test_crowd.py \
	tests/system/cache/test_held.py \
	tests/system/cache/test_memory.py \
	tests/system/cache/test_memory_budget.py \
	tests/system/cache/test_page_cache.py \
	tests/system/cache/test_pin.py \
	tests/system/cache/test_response_cache.py \
	tests/system/cache/test_response_cache_compress.py \
	tests/system/cache/test_response_cache_end.py \
	tests/system/cache/test_response_cache_streams.py \
	tests/system/cgi-fastcgi/test_accel.py \
	tests/system/cgi-fastcgi/test_buffering.py \
	tests/system/cgi-fastcgi/test_cgi.py \
	tests/system/cgi-fastcgi/test_cgi_command.py \
	tests/system/cgi-fastcgi/test_cgi_limits.py \
	tests/system/cgi-fastcgi/test_cgi_variables.py \
	tests/system/cgi-fastcgi/test_fastcgi.py \
	tests/system/cgi-fastcgi/test_fastcgi_bad.py \
	tests/system/cgi-fastcgi/test_fastcgi_connections.py \
	tests/system/cgi-fastcgi/test_fastcgi_dying.py \
	tests/system/cgi-fastcgi/test_fastcgi_move.py \
	tests/system/cgi-fastcgi/test_fastcgi_programs.py \
	tests/system/cgi-fastcgi/test_fastcgi_spawned.py \
	tests/system/cgi-fastcgi/test_fastcgi_stale.py \
	tests/system/cgi-fastcgi/test_fastcgi_units.py \
	tests/system/cgi-fastcgi/test_few_processes.py \
	tests/system/cgi-fastcgi/test_held_starts.py \
	tests/system/cgi-fastcgi/test_long_heads.py \
	tests/system/cgi-fastcgi/test_protocols.py \
	tests/system/cgi-fastcgi/test_request_fields.py \
	tests/system/cgi-fastcgi/test_script_owners.py \
	tests/system/cgi-fastcgi/test_scripts.py \
	tests/system/cgi-fastcgi/test_slow_clients.py \
	tests/system/cgi-fastcgi/test_upload_fastcgi.py \
	tests/system/cgi-fastcgi/test_upload_programs.py \
	tests/system/config/test_check_config.py \
	tests/system/config/test_command_line.py \
	tests/system/config/test_config.py \
	tests/system/config/test_effects.py \
	tests/system/config/test_include.py \
	tests/system/conftest.py \
	tests/system/dav/test_litmus.py \
	tests/system/dav/test_webdav.py \
	tests/system/dav/test_webdav_config.py \
	tests/system/dav/test_webdav_locks.py \
	tests/system/dav/test_webdav_properties.py \
	tests/system/http2/test_h2spec.py \
	tests/system/http2/test_http2.py \
	tests/system/http2/test_http2_clients.py \
	tests/system/http2/test_http2_floods.py \
	tests/system/http2/test_http2_hostile.py \
	tests/system/http2/test_http2_resets.py \
	tests/system/library/test_cgi_readme.py \
	tests/system/library/test_consumer.py \
	tests/system/library/test_examples.py \
	tests/system/library/test_examples_cgi.py \
	tests/system/library/test_nabc_py.py \
	tests/system/library/test_nabcctl.py \
	tests/system/library/test_nabcctl_server.py \
	tests/system/library/test_nabcctl_units.py \
	tests/system/library/test_nabcctl_users.py \
	tests/system/operate/test_log.py \
	tests/system/operate/test_log_files.py \
	tests/system/operate/test_log_paths.py \
	tests/system/operate/test_log_programs.py \
	tests/system/operate/test_log_templates.py \
	tests/system/operate/test_log_unread.py \
	tests/system/operate/test_reload.py \
	tests/system/operate/test_reload_call.py \
	tests/system/operate/test_request_id.py \
	tests/system/operate/test_service.py \
	tests/system/operate/test_spans.py \
	tests/system/operate/test_status.py \
	tests/system/operate/test_status_listen.py \
	tests/system/operate/test_status_page.py \
	tests/system/operate/test_stop.py \
	tests/system/operate/test_supervisor.py \
	tests/system/operate/test_timing.py \
	tests/system/operate/test_trace.py \
	tests/system/other-programs/fetch.go \
	tests/system/other-programs/nginx-responses.json \
	tests/system/other-programs/test_clients.py \
	tests/system/other-programs/test_curl.py \
	tests/system/other-programs/test_haproxy.py \
	tests/system/other-programs/test_nginx.py \
	tests/system/protocol/protocol-cases.txt \
	tests/system/protocol/test_conditions.py \
	tests/system/protocol/test_error_pages.py \
	tests/system/protocol/test_frozen.py \
	tests/system/protocol/test_hosts.py \
	tests/system/protocol/test_limits.py \
	tests/system/protocol/test_pipeline.py \
	tests/system/protocol/test_protocol.py \
	tests/system/protocol/test_proxy_protocol.py \
	tests/system/protocol/test_ranges.py \
	tests/system/protocol/test_rate.py \
	tests/system/protocol/test_ready.py \
	tests/system/protocol/test_repeated_requests.py \
	tests/system/security/test_auth.py \
	tests/system/security/test_descriptors.py \
	tests/system/security/test_forwarded.py \
	tests/system/security/test_hostile.py \
	tests/system/security/test_led_elsewhere.py \
	tests/system/security/test_memory_of_connections.py \
	tests/system/security/test_memory_of_streams.py \
	tests/system/security/test_priorities.py \
	tests/system/security/test_privileges.py \
	tests/system/security/test_reused_pids.py \
	tests/system/security/test_rules.py \
	tests/system/security/test_scarce.py \
	tests/system/security/test_second_names.py \
	tests/system/static/test_changes.py \
	tests/system/static/test_compress.py \
	tests/system/static/test_escapes.py \
	tests/system/static/test_folders.py \
	tests/system/static/test_header_rules.py \
	tests/system/static/test_large.py \
	tests/system/static/test_left.py \
	tests/system/static/test_maps.py \
	tests/system/static/test_path_rules.py \
	tests/system/static/test_paths.py \
	tests/system/static/test_static.py \
	tests/system/static/test_symlinks.py \
	tests/system/static/test_try_files.py \
	tests/system/static/test_types.py \
	tests/system/static/test_variants.py \
	tests/system/support/behind_checks.py \
	tests/system/support/browser.py \
	tests/system/support/certificates/authority.pem \
	tests/system/support/certificates/client.key tests/system/support/certificates/client.pem \
	tests/system/support/certificates/ec.key tests/system/support/certificates/ec.pem \
	tests/system/support/certificates/other.key tests/system/support/certificates/other.pem \
	tests/system/support/certificates/rsa.key tests/system/support/certificates/rsa.pem \
	tests/system/support/certificates/stranger.key tests/system/support/certificates/stranger.pem \
	tests/system/support/client.py \
	tests/system/support/collector.py \
	tests/system/support/dav.py \
	tests/system/support/examples.py \
	tests/system/support/fastcgi.py \
	tests/system/support/files.py \
	tests/system/support/go_program.py \
	tests/system/support/held.py \
	tests/system/support/http1_requests.py \
	tests/system/support/http1_responses.py \
	tests/system/support/http2.py \
	tests/system/support/lingering.py \
	tests/system/support/memory_limit.py \
	tests/system/support/metrics.py \
	tests/system/support/moved_clock.py \
	tests/system/support/names.py \
	tests/system/support/ports.py \
	tests/system/support/postmortem.py \
	tests/system/support/priorities.py \
	tests/system/support/programs.py \
	tests/system/support/responder.py \
	tests/system/support/results.py \
	tests/system/support/selection.py \
	tests/system/support/server.py \
	tests/system/support/spellings.py \
	tests/system/support/stopped.py \
	tests/system/support/streams.py \
	tests/system/support/tls.py \
	tests/system/support/tools.py \
	tests/system/support/upstream.py \
	tests/system/support/website.lua tests/system/support/website.py \
	tests/system/system-calls/test_arch.py \
	tests/system/system-calls/test_batched_sends.py \
	tests/system/system-calls/test_data_path.py \
	tests/system/system-calls/test_fallback.py \
	tests/system/system-calls/test_load.py \
	tests/system/system-calls/test_offload.py \
	tests/system/system-calls/test_packets.py \
	tests/system/system-calls/test_socket_options.py \
	tests/system/system-calls/test_unix.py \
	tests/system/system-calls/test_zerocopy_limits.py \
	tests/system/tls/test_acme.py \
	tests/system/tls/test_keys_of_a_service.py \
	tests/system/tls/test_tls.py \
	tests/system/tls/test_tls_alpn.py \
	tests/system/tls/test_tls_config.py \
	tests/system/tls/test_tls_records.py \
	tests/system/tls/test_tls_segments.py \
	tests/system/upstream-http/test_abandoned_calls.py \
	tests/system/upstream-http/test_compress_uncached.py \
	tests/system/upstream-http/test_upstream_http.py \
	tests/system/upstream-http/test_upstream_http_bad.py \
	tests/system/upstream-http/test_upstream_http_cache.py \
	tests/system/upstream-http/test_upstream_http_connections.py \
	tests/system/upstream-http/test_upstream_http_early.py \
	tests/system/upstream-http/test_upstream_http_large.py \
	tests/system/upstream-http/test_upstream_http_passes.py \
	tests/system/upstream-http/test_upstream_http_programs.py \
	tests/system/upstream-http/test_upstream_http_tunnels.py \
	tests/system/upstream-http/test_upstream_http_upgrade.py \
	tests/system/upstream-http/test_upstream_http_validate.py \
	tests/system/upstream-http/test_upstream_http_websocket.py \
	tests/system/upstream-http/test_upstream_names.py \
	tests/system/workers/test_behind.py \
	tests/system/workers/test_fcgi_preload.py \
	tests/system/workers/test_generate.py \
	tests/system/workers/test_held_workers.py \
	tests/system/workers/test_pools.py \
	tests/system/workers/test_readers.py \
	tests/system/workers/test_upload.py \
	tests/system/workers/test_upload_pieces.py \
	tests/system/workers/test_worker_end.py \
	tests/system/workers/test_worker_interim.py \
	tests/system/workers/test_worker_many.py \
	tests/system/workers/test_worker_replace.py \
	tests/system/workers/test_worker_script.py \
	tests/system/workers/test_worker_stream.py \
	tests/system/workers/test_worker_switch.py \
	tests/system/workers/test_worker_trailers.py \
	tests/system/workers/test_worker_users.py \
	tests/system/workers/test_workers.py

TESTS += \
	tests/check-abi.sh \
	tests/check-blocking.sh \
	tests/check-calls.sh \
	tests/check-docs.sh \
	tests/check-floors.sh \
	tests/check-headers.sh \
	tests/check-lists.sh \
	tests/check-mirror.sh \
	tests/check-names.sh \
	tests/check-uses.sh \
	tests/check-version.sh \
	tests/check-words.sh
if SWEET
TESTS += tests/check-man.sh tests/check-memory.sh tests/check-readme.sh tests/check-system.sh
if HAVE_CHECK
# The system tests install, and so link libnabc-glib anew: not under its test.
# (By a variable: a rule for the name itself would replace automake's.)
system_log = tests/check-system.sh.log
$(system_log): tests/unit/libnabc-glib/test-glib.log
endif
if HARDENED
TESTS += tests/check-hardening.sh
endif
endif
EXTRA_DIST += \
	libnabc/libnabc.abi \
	tests/abi-exceptions.txt \
	tests/check-abi.sh \
	tests/check-blocking.sh \
	tests/check-calls.sh \
	tests/check-docs.sh \
	tests/check-hardening.sh \
	tests/check-headers.sh \
	tests/check-lists.sh \
	tests/check-memory.sh \
	tests/check-mirror.sh \
	tests/check-names.sh \
	tests/check-readme.sh \
	tests/check-uses.sh \
	tests/check-version.sh \
	tests/check-words.sh \
	tests/covered-by.txt \
	tests/words.txt
# The applications of doc/recipes/; no part of make check.
EXTRA_DIST += tests/recipes/conftest.py tests/recipes/support/namespace.py tests/recipes/support/page.py \
	tests/recipes/support/php.py tests/recipes/support/recipe.py tests/recipes/support/visitor.py \
	tests/recipes/test_dokuwiki.py \
	tests/recipes/test_mediawiki.py \
	tests/recipes/test_phpmyadmin.py \
	tests/recipes/test_wordpress.py
EXTRA_DIST += tests/recipes/support/applications.py tests/recipes/support/repository.py \
	tests/recipes/test_cgit.py \
	tests/recipes/test_debian_mirror.py \
	tests/recipes/test_django.py \
	tests/recipes/test_fastapi.py \
	tests/recipes/test_flask.py \
	tests/recipes/test_git.py \
	tests/recipes/test_gitweb.py \
	tests/recipes/test_languages.py \
	tests/recipes/test_mapserver.py \
	tests/recipes/test_node.py \
	tests/recipes/test_rails.py \
	tests/recipes/test_single_page_application.py
# Minutes, and of one version of the tools; no part of make check.
EXTRA_DIST += tests/check-format.sh tests/check-includes.py tests/includes.imp
EXTRA_DIST += tests/analysis-exceptions.txt tests/check-analysis.sh tests/tsan-exceptions.txt
analyze:
	srcdir='$(srcdir)' PKG_CONFIG='$(PKG_CONFIG)' '$(srcdir)/tests/check-analysis.sh' || test $$? = 77
.PHONY: analyze
# Programs of others, partly from PyPI; no part of make check.
EXTRA_DIST += \
	tests/tls-proofs/fuzzer.py tests/tls-proofs/fuzzer.txt \
	tests/tls-proofs/proof.py \
	tests/tls-proofs/sslyze.py \
	tests/tls-proofs/testssl.py
EXTRA_DIST += \
	build-aux/chroot.py \
	tests/README.md \
	tests/again \
	tests/allowed-skips.txt \
	tests/bare \
	tests/check-bench.sh \
	tests/check-configure.sh \
	tests/check-container.sh \
	tests/check-dist.sh \
	tests/check-install.sh \
	tests/check-installed.sh \
	tests/check-library.sh \
	tests/check-tls-records.sh \
	tests/cross \
	tests/cross-exceptions.txt \
	tests/in-build.sh \
	tests/open-view.sh \
	tests/times.txt \
	tests/without
EXTRA_DIST += \
	tests/runner/alone.py \
	tests/runner/conftest.py \
	tests/runner/estimates.py \
	tests/runner/fake_nm.py \
	tests/runner/hide.py \
	tests/runner/load.py \
	tests/runner/main.py \
	tests/runner/pool.py \
	tests/runner/report.py \
	tests/runner/suites.py \
	tests/runner/test_again.py \
	tests/runner/test_calls.py \
	tests/runner/test_format.py \
	tests/runner/test_includes.py \
	tests/runner/test_lists.py \
	tests/runner/test_memory.py \
	tests/runner/test_names.py \
	tests/runner/test_pool.py \
	tests/runner/test_recipes.py \
	tests/runner/test_report.py \
	tests/runner/test_selection.py \
	tests/runner/test_steps.py \
	tests/runner/test_suites.py \
	tests/runner/test_tier_path.py \
	tests/runner/test_uses.py \
	tests/runner/test_without.py \
	tests/runner/tier_path.py
EXTRA_DIST += \
	tests/check-floors.sh \
	tests/check-man.sh \
	tests/check-system.sh \
	tests/check-valgrind.sh \
	tests/folders.txt \
	tests/unit/async-fixture.h \
	tests/unit/backend-fixture.h \
	tests/unit/blocking-fixture.h \
	tests/unit/blocking-peer.h \
	tests/unit/by-method.h \
	tests/unit/call-fixture.h \
	tests/unit/channel-fixture.h \
	tests/unit/check-points.h \
	tests/unit/conn-fixture.h \
	tests/unit/connection-fixture.h \
	tests/unit/dav-fixture.h \
	tests/unit/device-model.h \
	tests/unit/docroot-fixture.h \
	tests/unit/fcgi-link-fixture.h \
	tests/unit/fcgi-pair.h \
	tests/unit/file-cache-fixture.h \
	tests/unit/handle-fixture.h \
	tests/unit/held-unit.h \
	tests/unit/hostile-fixture.h \
	tests/unit/kernel-fixture.h \
	tests/unit/libnabc/api/admin-fixture.h \
	tests/unit/libnabc/api/grants-fixture.h \
	tests/unit/libnabc/api/sums-fixture.h \
	tests/unit/libnabc/cache/grant-fixture.h \
	tests/unit/libnabc/degradation-fixture.h \
	tests/unit/libnabc/hostile-loot.h \
	tests/unit/libnabc/membership/collector-fixture.h \
	tests/unit/libnabc/membership/rpc-server-fixture.h \
	tests/unit/libnabc/membership/serve-fixture.h \
	tests/unit/libnabc/os/queue-fixture.h \
	tests/unit/libnabc/os/registered-fixture.h \
	tests/unit/libnabc/os/ring-fixture.h \
	tests/unit/libnabc/policy/replacement-fixture.h \
	tests/unit/libnabc/send/async-mechanism.h \
	tests/unit/libnabc/send/ring-buffers-fixture.h \
	tests/unit/libnabc/send/route-fixture.h \
	tests/unit/libnabc/send/send-op-fixture.h \
	tests/unit/libnabc/send/tcp-info.h \
	tests/unit/libnabc/send/transmit-learn-fixture.h \
	tests/unit/libnabc/store/unit-checksum-fixture.h \
	tests/unit/libnabc/worker/responder-fixture.h \
	tests/unit/loop-fixture.h \
	tests/unit/member-fixture.h \
	tests/unit/nabc-fixture.h \
	tests/unit/page-cache-fixture.h \
	tests/unit/pin-fixture.h \
	tests/unit/pinned.h \
	tests/unit/plain-ids.h \
	tests/unit/process-fixture.h \
	tests/unit/process-memory.h \
	tests/unit/request-fixture.h \
	tests/unit/respcache-fixture.h \
	tests/unit/route-seam.h \
	tests/unit/rpc-fixture.h \
	tests/unit/status-fixture.h \
	tests/unit/suite.h \
	tests/unit/sweet/config/config-fixture.h \
	tests/unit/sweet/core/auth-fixture.h \
	tests/unit/sweet/event/loop-pause-fixture.h \
	tests/unit/sweet/event/loop-send-fixture.h \
	tests/unit/sweet/event/loop-uring-fixture.h \
	tests/unit/sweet/h2/session-fixture.h \
	tests/unit/sweet/h2/session-responder.h \
	tests/unit/sweet/spawn/spawner-fixture.h \
	tests/unit/sweet/upstream/upstream-link-fixture.h \
	tests/unit/thread-fixture.h \
	tests/unit/tls-fixture.h \
	tests/unit/transmit-fixture.h \
	tests/unit/turn-fixture.h \
	tests/unit/unit-holds.h \
	tests/unit/worker-channel-fixture.h \
	tests/valgrind.supp
AM_TESTS_ENVIRONMENT = srcdir='$(srcdir)'; builddir='$(abs_builddir)'; CC='$(CC)'; \
	GLIB_CFLAGS='$(GLIB_CFLAGS)'; HARDENING='$(HARDENING)'; \
	export srcdir builddir CC GLIB_CFLAGS HARDENING;

# The kernel's module in guests of QEMU; no part of make check, since it fetches
# kernels.  Without QEMU it only says so.
kernel_tests = \
	tests/kernel/build-module.sh \
	tests/kernel/card.c \
	tests/kernel/card.h \
	tests/kernel/check-kernel.sh \
	tests/kernel/device.c \
	tests/kernel/device.h \
	tests/kernel/fetch-kernel.sh \
	tests/kernel/guest-image.sh \
	tests/kernel/guest.c \
	tests/kernel/guest.h \
	tests/kernel/init \
	tests/kernel/library.c \
	tests/kernel/library.h \
	tests/kernel/run-guest.sh \
	tests/kernel/server.sh \
	tests/kernel/test-access.c \
	tests/kernel/test-arena.c \
	tests/kernel/test-bytes.c \
	tests/kernel/test-card-limits.c \
	tests/kernel/test-card.c \
	tests/kernel/test-devices.c \
	tests/kernel/test-esp.c \
	tests/kernel/test-flight.c \
	tests/kernel/test-fuzz.c \
	tests/kernel/test-kill.c \
	tests/kernel/test-library.c \
	tests/kernel/test-limits.c \
	tests/kernel/test-pressure.c \
	tests/kernel/test-put.c \
	tests/kernel/test-race.c \
	tests/kernel/test-reload.c \
	tests/kernel/test-send.c \
	tests/kernel/test-sweet.sh \
	tests/kernel/test-tls.sh \
	tests/kernel/test-torture-tls.sh \
	tests/kernel/test-unit.c \
	tests/kernel/test-worker.c \
	tests/kernel/tls-client.c
EXTRA_DIST += $(kernel_tests)
check-kernel: sweet/sweet nabcctl/nabcctl cgi-examples/generate
	srcdir='$(srcdir)' builddir='$(abs_builddir)' CC='$(CC)' \
		'$(srcdir)/tests/kernel/check-kernel.sh' || test $$? = 77
clean-local:
	rm -rf tests/kernel/guests tests/kernel/guests-* tests/tls-proofs
distclean-local:
	rm -rf kernels
.PHONY: check-kernel

# Which lines the tests run: a build of its own, with clang.
coverage:
	srcdir='$(abs_srcdir)' builddir='$(abs_builddir)' MAKE='$(MAKE)' \
		sh '$(srcdir)/tests/coverage.sh' || test $$? = 77
.PHONY: coverage
EXTRA_DIST += tests/coverage.py tests/coverage.sh
