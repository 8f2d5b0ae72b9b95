# SPDX-License-Identifier: MIT
# The server.  Its sources see nabc.h and nabc-worker.h of the library alone.
if SWEET
sbin_PROGRAMS += sweet/sweet
noinst_LIBRARIES += sweet/libsweet.a
endif

sweet_libsweet_a_SOURCES = \
	sweet/auth/apr1.c sweet/auth/apr1.h \
	sweet/auth/htpasswd.c sweet/auth/htpasswd.h \
	sweet/auth/ip-acl.c sweet/auth/ip-acl.h \
	sweet/backend/accel.c sweet/backend/accel.h \
	sweet/backend/backend-call-internal.h \
	sweet/backend/backend-call-response.c \
	sweet/backend/backend-call.c sweet/backend/backend-call.h \
	sweet/backend/backend-thread.h \
	sweet/backend/backpressure.c sweet/backend/backpressure.h \
	sweet/backend/cache-store.c sweet/backend/cache-store.h \
	sweet/backend/cache-validate.c sweet/backend/cache-validate.h \
	sweet/backend/call-queue.c \
	sweet/backend/pool.h \
	sweet/backend/protocol.h \
	sweet/backend/read-buffer.c sweet/backend/read-buffer.h \
	sweet/backend/request-spool.c sweet/backend/request-spool.h \
	sweet/backend/response-again.c \
	sweet/backend/response-queue.c sweet/backend/response-queue.h \
	sweet/backend/response-spool.c sweet/backend/response-spool.h \
	sweet/backend/response-stream-head.c \
	sweet/backend/response-stream-internal.h \
	sweet/backend/response-stream-send.c \
	sweet/backend/response-stream.c sweet/backend/response-stream.h \
	sweet/base/address.c sweet/base/address.h \
	sweet/base/balancer.c sweet/base/balancer.h \
	sweet/base/body-queue.c sweet/base/body-queue.h \
	sweet/base/budget.h \
	sweet/base/byte-rate.h \
	sweet/base/clock.h \
	sweet/base/container.h \
	sweet/base/counter.h \
	sweet/base/date.c sweet/base/date.h \
	sweet/base/decimal.h \
	sweet/base/escape.c sweet/base/escape.h \
	sweet/base/histogram.c sweet/base/histogram.h \
	sweet/base/holds.h \
	sweet/base/json.c sweet/base/json.h \
	sweet/base/list.h \
	sweet/base/low-priority.h \
	sweet/base/path-prefix.h \
	sweet/base/peer-addresses.c sweet/base/peer-addresses.h \
	sweet/base/random-id.c sweet/base/random-id.h \
	sweet/base/record-ring.c sweet/base/record-ring.h \
	sweet/base/scan.h \
	sweet/base/siphash.c sweet/base/siphash.h \
	sweet/base/slice.h \
	sweet/base/spare-memory.c sweet/base/spare-memory.h \
	sweet/base/symlinks.h \
	sweet/base/syntax.c sweet/base/syntax.h \
	sweet/base/timer.c sweet/base/timer.h \
	sweet/base/user-open.c sweet/base/user-open.h \
	sweet/coding/coded-fields.c sweet/coding/coded-fields.h \
	sweet/coding/compress-rule.c sweet/coding/compress-rule.h \
	sweet/coding/encoder.c sweet/coding/encoder.h \
	sweet/config/arch.c sweet/config/arch.h \
	sweet/config/config-chain.c sweet/config/config-chain.h \
	sweet/config/config-effect.c sweet/config/config-effect.h \
	sweet/config/config-file.c sweet/config/config-file.h \
	sweet/config/config-key-find.c \
	sweet/config/config-key.c sweet/config/config-key.h \
	sweet/config/config-log.c sweet/config/config-log.h \
	sweet/config/config-map.c sweet/config/config-map.h \
	sweet/config/config-pool.c sweet/config/config-pool.h \
	sweet/config/config-read.c sweet/config/config-read.h \
	sweet/config/config-resolve.c sweet/config/config-resolve.h \
	sweet/config/config-rule.c sweet/config/config-rule.h \
	sweet/config/config-scope.c sweet/config/config-scope.h \
	sweet/config/config-script.c sweet/config/config-script.h \
	sweet/config/config-startup.c sweet/config/config-startup.h \
	sweet/config/config-store.c sweet/config/config-store.h \
	sweet/config/config-trace.c sweet/config/config-trace.h \
	sweet/config/config-tree.c sweet/config/config-tree.h \
	sweet/config/config-value.c sweet/config/config-value.h \
	sweet/config/config-webdav.c sweet/config/config-webdav.h \
	sweet/config/configuration.c sweet/config/configuration.h \
	sweet/config/effect-of-scope.c sweet/config/effect-of-scope.h \
	sweet/config/path-rules.c sweet/config/path-rules.h \
	sweet/config/pool-config.c sweet/config/pool-config.h \
	sweet/conn/conn-thread.c sweet/conn/conn-thread.h \
	sweet/conn/connection-admit.c \
	sweet/conn/connection-base.h \
	sweet/conn/connection-body.c \
	sweet/conn/connection-cipher.c \
	sweet/conn/connection-close.c \
	sweet/conn/connection-free.c \
	sweet/conn/connection-input.c \
	sweet/conn/connection-mux.h \
	sweet/conn/connection-request.c \
	sweet/conn/connection-send.c \
	sweet/conn/connection-socket.c \
	sweet/conn/connection-time.c \
	sweet/conn/connection-tls-internal.h \
	sweet/conn/connection-tls.c \
	sweet/conn/connection.c sweet/conn/connection.h \
	sweet/conn/listener.c sweet/conn/listener.h \
	sweet/core/access-log.c sweet/core/access-log.h \
	sweet/core/auth-cache.c \
	sweet/core/auth-check.h \
	sweet/core/auth-file.c \
	sweet/core/auth-internal.h \
	sweet/core/auth-queue.c \
	sweet/core/auth.c sweet/core/auth.h \
	sweet/core/cache-place.c sweet/core/cache-place.h \
	sweet/core/client-calls.c sweet/core/client-calls.h \
	sweet/core/file-path.c sweet/core/file-path.h \
	sweet/core/log-set.c sweet/core/log-set.h \
	sweet/core/logs.c sweet/core/logs.h \
	sweet/core/page-memory.h \
	sweet/core/request-memory.c sweet/core/request-memory.h \
	sweet/core/request-value.c sweet/core/request-value.h \
	sweet/core/server.c sweet/core/server.h \
	sweet/core/short-response.c sweet/core/short-response.h \
	sweet/core/site-tls.c sweet/core/site-tls.h \
	sweet/core/site.c sweet/core/site.h \
	sweet/core/socket-options.c sweet/core/socket-options.h \
	sweet/core/text-response.c sweet/core/text-response.h \
	sweet/core/thread-counters.h \
	sweet/core/thread-logs.c sweet/core/thread-logs.h \
	sweet/core/transaction-file.h \
	sweet/core/transaction.c sweet/core/transaction.h \
	sweet/dav/dav-body.c sweet/dav/dav-body.h \
	sweet/dav/dav-call.h \
	sweet/dav/dav-change.c \
	sweet/dav/dav-check.c \
	sweet/dav/dav-find.c \
	sweet/dav/dav-if.c sweet/dav/dav-if.h \
	sweet/dav/dav-live.c sweet/dav/dav-live.h \
	sweet/dav/dav-lock.c \
	sweet/dav/dav-locks.c sweet/dav/dav-locks.h \
	sweet/dav/dav-multistatus.c sweet/dav/dav-multistatus.h \
	sweet/dav/dav-patch.c \
	sweet/dav/dav-place.c sweet/dav/dav-place.h \
	sweet/dav/dav-properties.c sweet/dav/dav-properties.h \
	sweet/dav/dav-put.c \
	sweet/dav/dav-request.c sweet/dav/dav-request.h \
	sweet/dav/dav-temp.c sweet/dav/dav-temp.h \
	sweet/dav/dav-tree.c sweet/dav/dav-tree.h \
	sweet/dav/dav-xml.c sweet/dav/dav-xml.h \
	sweet/dav/dav.c sweet/dav/dav.h \
	sweet/event/client-limit.c sweet/event/client-limit.h \
	sweet/event/data-path-posix.c \
	sweet/event/data-path.c sweet/event/data-path.h \
	sweet/event/loop-backend.h \
	sweet/event/loop-bytes.c \
	sweet/event/loop-epoll.c \
	sweet/event/loop-internal.h \
	sweet/event/loop-send.c \
	sweet/event/loop-uring-internal.h \
	sweet/event/loop-uring-receive.c \
	sweet/event/loop-uring-send.c \
	sweet/event/loop-uring.c \
	sweet/event/loop.c sweet/event/loop.h \
	sweet/event/piece.h \
	sweet/event/sender.c sweet/event/sender.h \
	sweet/event/thread-pool.c sweet/event/thread-pool.h \
	sweet/exchange/exchange-thread.c sweet/exchange/exchange-thread.h \
	sweet/exchange/output-export.c \
	sweet/exchange/output-head.c \
	sweet/exchange/output-identity.c \
	sweet/exchange/output-log.c \
	sweet/exchange/output-time.c \
	sweet/exchange/output.c sweet/exchange/output.h \
	sweet/exchange/ready.c sweet/exchange/ready.h \
	sweet/files/compressor.c sweet/files/compressor.h \
	sweet/files/direct-read.c sweet/files/direct-read.h \
	sweet/files/docroot-open.c sweet/files/docroot-open.h \
	sweet/files/docroot.c sweet/files/docroot.h \
	sweet/files/file-cache-internal.h \
	sweet/files/file-cache-open.c \
	sweet/files/file-cache-read.c sweet/files/file-cache-read.h \
	sweet/files/file-cache-revalidate.c \
	sweet/files/file-cache-siblings.c \
	sweet/files/file-cache-table.c \
	sweet/files/file-cache-tick.c sweet/files/file-cache-tick.h \
	sweet/files/file-cache-variant.c \
	sweet/files/file-cache.c sweet/files/file-cache.h \
	sweet/files/filehead.c sweet/files/filehead.h \
	sweet/files/pagecache.c sweet/files/pagecache.h \
	sweet/files/read-directory.c sweet/files/read-directory.h \
	sweet/files/spool-folder.c sweet/files/spool-folder.h \
	sweet/files/spool.c sweet/files/spool.h \
	sweet/gateway/cache-fill.c sweet/gateway/cache-fill.h \
	sweet/gateway/cache-lookup.c sweet/gateway/cache-lookup.h \
	sweet/gateway/cgi-env.c sweet/gateway/cgi-env.h \
	sweet/gateway/cgi-internal.h \
	sweet/gateway/cgi-response.c \
	sweet/gateway/cgi.c \
	sweet/gateway/fastcgi-response.c \
	sweet/gateway/fastcgi-spawn.c \
	sweet/gateway/gateway-thread.h \
	sweet/gateway/gateway.c sweet/gateway/gateway.h \
	sweet/gateway/http-response.c \
	sweet/gateway/pool-load.c \
	sweet/gateway/pool-process-end.c sweet/gateway/pool-process-end.h \
	sweet/gateway/pool-process.c sweet/gateway/pool-process.h \
	sweet/gateway/process-leaving.c sweet/gateway/process-leaving.h \
	sweet/gateway/tunnel-limits.c sweet/gateway/tunnel-limits.h \
	sweet/gateway/upstream-internal.h \
	sweet/gateway/upstream-names.c \
	sweet/gateway/upstream-pool.c \
	sweet/gateway/upstream-request.c \
	sweet/gateway/upstream-response.c \
	sweet/gateway/upstream-tunnel.c \
	sweet/gateway/upstream-waiting.c \
	sweet/gateway/worker-channel-internal.h \
	sweet/gateway/worker-channel-response.c \
	sweet/gateway/worker-channel-slot.c \
	sweet/gateway/worker-channel-tunnel.c \
	sweet/gateway/worker-channel.c sweet/gateway/worker-channel.h \
	sweet/gateway/worker.c sweet/gateway/worker.h \
	sweet/h2/h2-thread.c sweet/h2/h2-thread.h \
	sweet/h2/session-closed.c \
	sweet/h2/session-end.c \
	sweet/h2/session-flood.c \
	sweet/h2/session-frames.c \
	sweet/h2/session-head.c \
	sweet/h2/session-internal.h \
	sweet/h2/session-message.c \
	sweet/h2/session-receive.c \
	sweet/h2/session-send.c \
	sweet/h2/session-stream.c \
	sweet/h2/session-work.c \
	sweet/h2/session.c sweet/h2/session.h \
	sweet/h2/stream-head.c sweet/h2/stream-head.h \
	sweet/handler/autoindex.c sweet/handler/autoindex.h \
	sweet/handler/coded-response.c sweet/handler/coded-response.h \
	sweet/handler/errorpage.c sweet/handler/errorpage.h \
	sweet/handler/file-response.c sweet/handler/file-response.h \
	sweet/handler/filestream-internal.h \
	sweet/handler/filestream-read.c \
	sweet/handler/filestream.c sweet/handler/filestream.h \
	sweet/handler/handler-thread.h \
	sweet/handler/local-redirect.c sweet/handler/local-redirect.h \
	sweet/handler/password-wait.c sweet/handler/password-wait.h \
	sweet/handler/phase-checks.c \
	sweet/handler/phase-folder.c \
	sweet/handler/phase-handler.c \
	sweet/handler/phase-header.c \
	sweet/handler/phase-index.c \
	sweet/handler/phase-password.c \
	sweet/handler/phase-pool.c \
	sweet/handler/phase-redirect.c \
	sweet/handler/phase-rewrite.c \
	sweet/handler/phase-script.c \
	sweet/handler/phase-target.c \
	sweet/handler/phase-try.c \
	sweet/handler/phase.h \
	sweet/handler/pool-respond.c sweet/handler/pool-respond.h \
	sweet/handler/route.c sweet/handler/route.h \
	sweet/handler/static-variant.c sweet/handler/static-variant.h \
	sweet/handler/static.c sweet/handler/static.h \
	sweet/handler/status-data.h \
	sweet/handler/status-field.c sweet/handler/status-field.h \
	sweet/handler/status-json.c sweet/handler/status-json.h \
	sweet/handler/status-metrics.c sweet/handler/status-metrics.h \
	sweet/handler/status-page.c sweet/handler/status-page.h \
	sweet/handler/status.c sweet/handler/status.h \
	sweet/http/accept.c sweet/http/accept.h \
	sweet/http/autoindex-render.c sweet/http/autoindex-render.h \
	sweet/http/body.c sweet/http/body.h \
	sweet/http/cachecontrol.c sweet/http/cachecontrol.h \
	sweet/http/cachekey.c sweet/http/cachekey.h \
	sweet/http/chunked.c sweet/http/chunked.h \
	sweet/http/conditional.c sweet/http/conditional.h \
	sweet/http/etag.c sweet/http/etag.h \
	sweet/http/field.c sweet/http/field.h \
	sweet/http/fields.c sweet/http/fields.h \
	sweet/http/forwarded.c sweet/http/forwarded.h \
	sweet/http/mime.c sweet/http/mime.h \
	sweet/http/multipart.c sweet/http/multipart.h \
	sweet/http/proxy-protocol.c sweet/http/proxy-protocol.h \
	sweet/http/range.c sweet/http/range.h \
	sweet/http/redirect.c sweet/http/redirect.h \
	sweet/http/request-escape.c sweet/http/request-escape.h \
	sweet/http/request-internal.h \
	sweet/http/request-keep.c sweet/http/request-keep.h \
	sweet/http/request-line.c \
	sweet/http/request-list.c sweet/http/request-list.h \
	sweet/http/request.c sweet/http/request.h \
	sweet/http/response.c sweet/http/response.h \
	sweet/http/traceparent.c sweet/http/traceparent.h \
	sweet/http/trailers.c sweet/http/trailers.h \
	sweet/http/uri.c sweet/http/uri.h \
	sweet/log/access-line.c sweet/log/access-line.h \
	sweet/log/log-format.c sweet/log/log-format.h \
	sweet/log/log-output.c sweet/log/log-output.h \
	sweet/log/log.c sweet/log/log.h \
	sweet/log/span-export.c sweet/log/span-export.h \
	sweet/log/span-json.c sweet/log/span-json.h \
	sweet/log/span-send.h \
	sweet/log/span.c sweet/log/span.h \
	sweet/log/template-line.c sweet/log/template-line.h \
	sweet/pressure/held.c \
	sweet/pressure/leave.c \
	sweet/pressure/lent.c \
	sweet/pressure/pace.c sweet/pressure/pace.h \
	sweet/pressure/pressure-internal.h \
	sweet/pressure/pressure-thread.c sweet/pressure/pressure-thread.h \
	sweet/pressure/pressure.h \
	sweet/pressure/slow.c sweet/pressure/slow.h \
	sweet/pressure/unsent.c sweet/pressure/unsent.h \
	sweet/process/endpoint.c sweet/process/endpoint.h \
	sweet/process/endpoints.c sweet/process/endpoints.h \
	sweet/process/filter-program.h \
	sweet/process/memory-limit.c sweet/process/memory-limit.h \
	sweet/process/pidfile.c sweet/process/pidfile.h \
	sweet/process/privileges.c sweet/process/privileges.h \
	sweet/process/readonly.c sweet/process/readonly.h \
	sweet/process/reload-call.c sweet/process/reload-call.h \
	sweet/process/sandbox.c sweet/process/sandbox.h \
	sweet/process/supervisor.c sweet/process/supervisor.h \
	sweet/process/syscall-filter.c sweet/process/syscall-filter.h \
	sweet/program/cacheable.c sweet/program/cacheable.h \
	sweet/program/cgihead.c sweet/program/cgihead.h \
	sweet/program/fcgi.c sweet/program/fcgi.h \
	sweet/program/meta.c sweet/program/meta.h \
	sweet/program/upstream-head.c sweet/program/upstream-head.h \
	sweet/program/upstream-reply.c sweet/program/upstream-reply.h \
	sweet/program/upstream-request.c sweet/program/upstream-request.h \
	sweet/respcache/respcache-entry.c \
	sweet/respcache/respcache-flight.c \
	sweet/respcache/respcache-internal.h \
	sweet/respcache/respcache-purge.c \
	sweet/respcache/respcache-variant.c \
	sweet/respcache/respcache.c sweet/respcache/respcache.h \
	sweet/rules/header-rule.c sweet/rules/header-rule.h \
	sweet/rules/path-pattern.c sweet/rules/path-pattern.h \
	sweet/rules/request-rule.c sweet/rules/request-rule.h \
	sweet/rules/template.c sweet/rules/template.h \
	sweet/rules/variable-expand.h \
	sweet/rules/variable.c sweet/rules/variable.h \
	sweet/server/check-config.c sweet/server/check-config.h \
	sweet/server/reload.c sweet/server/reload.h \
	sweet/server/thread-modules.c sweet/server/thread-modules.h \
	sweet/server/thread.c sweet/server/thread.h \
	sweet/spawn/cgi-input.c sweet/spawn/cgi-input.h \
	sweet/spawn/cgi-run.c sweet/spawn/cgi-run.h \
	sweet/spawn/group-guard.c sweet/spawn/group-guard.h \
	sweet/spawn/helper-process.c sweet/spawn/helper-process.h \
	sweet/spawn/key-opener.c sweet/spawn/key-opener.h \
	sweet/spawn/program-log.c sweet/spawn/program-log.h \
	sweet/spawn/reader-filter.c sweet/spawn/reader-filter.h \
	sweet/spawn/spawn-child.c sweet/spawn/spawn-child.h \
	sweet/spawn/spawn-table.c sweet/spawn/spawn-table.h \
	sweet/spawn/spawner-channel.c \
	sweet/spawn/spawner-exec.c sweet/spawn/spawner-exec.h \
	sweet/spawn/spawner-internal.h \
	sweet/spawn/spawner-monitor.c \
	sweet/spawn/spawner-places.c sweet/spawn/spawner-places.h \
	sweet/spawn/spawner-process.c sweet/spawn/spawner-process.h \
	sweet/spawn/spawner-program.c sweet/spawn/spawner-program.h \
	sweet/spawn/spawner-wire.h \
	sweet/spawn/spawner.c sweet/spawn/spawner.h \
	sweet/tls/client-hello.c sweet/tls/client-hello.h \
	sweet/tls/record/tls-memory.c sweet/tls/record/tls-memory.h \
	sweet/tls/record/tls-record.c sweet/tls/record/tls-record.h \
	sweet/tls/record/tls-secrets.c sweet/tls/record/tls-secrets.h \
	sweet/tls/record/tls-stream.c sweet/tls/record/tls-stream.h \
	sweet/tls/tls-challenge.c sweet/tls/tls-challenge.h \
	sweet/tls/tls-kernel.c sweet/tls/tls-kernel.h \
	sweet/tls/tls-openssl-channel.c \
	sweet/tls/tls-openssl-client.c \
	sweet/tls/tls-openssl-file.c \
	sweet/tls/tls-openssl-hello.c \
	sweet/tls/tls-openssl-internal.h \
	sweet/tls/tls-openssl.c \
	sweet/tls/tls-output.c sweet/tls/tls-output.h \
	sweet/tls/tls-records.h \
	sweet/tls/tls-tickets.c sweet/tls/tls-tickets.h \
	sweet/tls/tls.h \
	sweet/upstream/capacity.c sweet/upstream/capacity.h \
	sweet/upstream/fcgi-message.c sweet/upstream/fcgi-message.h \
	sweet/upstream/http-message.c sweet/upstream/http-message.h \
	sweet/upstream/name-lookup.c sweet/upstream/name-lookup.h \
	sweet/upstream/permits.c sweet/upstream/permits.h \
	sweet/upstream/resolver.c sweet/upstream/resolver.h \
	sweet/upstream/upstream-link.c sweet/upstream/upstream-link.h \
	sweet/upstream/upstream-table.c sweet/upstream/upstream-table.h
if HAVE_ZSTD
sweet_libsweet_a_SOURCES += sweet/coding/encoder-zstd.c
endif
if HAVE_BROTLI
sweet_libsweet_a_SOURCES += sweet/coding/encoder-br.c
endif
if HAVE_ZLIB
sweet_libsweet_a_SOURCES += sweet/coding/encoder-gzip.c
endif
# Of the sources above, a server without this table has none.
if TLS_RECORDS
sweet_libsweet_a_SOURCES += sweet/tls/record/tls-records.c
else
sweet_libsweet_a_SOURCES += sweet/tls/tls-records-none.c
endif
if HAVE_CURL
sweet_libsweet_a_SOURCES += sweet/log/curl-library.c sweet/log/curl-library.h sweet/log/span-send.c
else
sweet_libsweet_a_SOURCES += sweet/log/span-send-none.c
endif
# The page in the program: its bytes as numbers, which any compiler takes.
nodist_sweet_libsweet_a_SOURCES = sweet/handler/status-html.c
sweet/handler/status-html.c: $(srcdir)/sweet/handler/status.html $(srcdir)/sweet/local.mk
	$(AM_V_GEN)$(MKDIR_P) sweet/handler && { \
	  echo '#include "handler/status-page.h"'; \
	  echo 'const unsigned char status_html[] = {'; \
	  od -An -v -tx1 $(srcdir)/sweet/handler/status.html | sed 's/\([0-9a-f][0-9a-f]\)/0x\1,/g'; \
	  echo '};'; \
	  echo 'const size_t status_html_length = sizeof(status_html);'; } >$@.tmp && mv $@.tmp $@
CLEANFILES += sweet/handler/status-html.c
EXTRA_DIST += sweet/handler/status.html

sweet_libsweet_a_CPPFLAGS = $(public_cppflags) -I$(srcdir)/sweet \
	-DPACKAGE_VERSION='"$(PACKAGE_VERSION)"' $(CODINGS_CPPFLAGS)
# Where the libraries are that programs get by LD_PRELOAD.
sweet/config/libsweet_a-pool-config.$(OBJEXT): private CPPFLAGS += -DPKGLIBDIR='"$(pkglibdir)"'
coding_libs = $(ZSTD_LIBS) $(BROTLI_LIBS) $(ZLIB_LIBS)
sweet_libsweet_a_CFLAGS = $(AM_CFLAGS) $(GLIB_CFLAGS) $(URING_CFLAGS) $(OPENSSL_CFLAGS) $(NGHTTP2_CFLAGS) \
	$(PCRE2_CFLAGS) $(EXPAT_CFLAGS) $(ZSTD_CFLAGS) $(BROTLI_CFLAGS) $(ZLIB_CFLAGS) $(CURL_CFLAGS)

sweet_sweet_SOURCES = \
	sweet/server/main.c \
	sweet/server/prefork.c sweet/server/prefork.h \
	sweet/server/server-main-internal.h \
	sweet/server/server-main-open.c \
	sweet/server/server-main-privileged.c \
	sweet/server/server-main.c sweet/server/server-main.h
sweet_sweet_CPPFLAGS = $(sweet_libsweet_a_CPPFLAGS)
sweet_sweet_CFLAGS = $(sweet_libsweet_a_CFLAGS)
# Complete in itself: runs from the build folder as it will when installed.
sweet_sweet_LDFLAGS = $(AM_LDFLAGS) -static
sweet_sweet_LDADD = sweet/libsweet.a libnabc/libnabc.la $(GLIB_LIBS) $(URING_LIBS) \
	$(CRYPT_LIBS) $(OPENSSL_LIBS) $(NGHTTP2_LIBS) \
	$(PCRE2_LIBS) $(EXPAT_LIBS) $(coding_libs) -lpthread

# What quickstart serves.
EXTRA_DIST += sweet/demo/index.html sweet/demo/notes.txt sweet/demo/picture.svg sweet/demo/style.css

# For systemd, with the names of this installation; and a configuration to start from.
if HAVE_SYSTEMD_UNITS
nodist_systemdsystemunit_DATA = sweet/sweet.service
dist_systemdsystemunit_DATA = sweet/sweet.socket
endif
if SWEET
dist_doc_DATA += sweet/sweet.conf
endif
sweet/sweet.service: $(srcdir)/sweet/sweet.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) sweet && sed -e 's|@sbindir[@]|$(sbindir)|' \
	  -e 's|@sysconfdir[@]|$(sysconfdir)|' \
	  -e 's|@SERVICE_USER[@]|$(SERVICE_USER)|' $(srcdir)/sweet/sweet.service.in >$@.tmp && mv $@.tmp $@
CLEANFILES += sweet/sweet.service
EXTRA_DIST += sweet/sweet.service.in
