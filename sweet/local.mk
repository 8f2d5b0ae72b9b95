# SPDX-License-Identifier: MIT
# The server.  Its sources see nabc.h and nabc-worker.h of the library alone.
if SWEET
sbin_PROGRAMS += sweet/sweet
noinst_LTLIBRARIES += sweet/libsweet.la
endif

sweet_libsweet_la_SOURCES = \
	sweet/slice.h sweet/clock.h \
	sweet/scan.h sweet/sender.c sweet/sender.h sweet/syntax.c sweet/syntax.h \
	sweet/decimal.h \
	sweet/data-path.c sweet/data-path.h sweet/data-path-posix.c \
	sweet/uri.c sweet/uri.h \
	sweet/redirect.c sweet/redirect.h \
	sweet/request.c sweet/request.h \
	sweet/field.c sweet/field.h \
	sweet/cachecontrol.c sweet/cachecontrol.h \
	sweet/cgihead.c sweet/cgihead.h \
	sweet/fcgi.c sweet/fcgi.h \
	sweet/upstream.c sweet/upstream.h \
	sweet/chunked.c sweet/chunked.h \
	sweet/body.c sweet/body.h \
	sweet/response.c sweet/response.h \
	sweet/date.c sweet/date.h \
	sweet/etag.c sweet/etag.h \
	sweet/range.c sweet/range.h \
	sweet/conditional.c sweet/conditional.h \
	sweet/multipart.c sweet/multipart.h \
	sweet/mime.c sweet/mime.h \
	sweet/meta.c sweet/meta.h \
	sweet/config-value.c sweet/config-value.h \
	sweet/config-file.c sweet/config-file.h \
	sweet/pool-config.c sweet/pool-config.h \
	sweet/configuration.c sweet/configuration.h \
	sweet/config-rule.c sweet/config-rule.h \
	sweet/config-key.c sweet/config-key.h \
	sweet/config-draft.c sweet/config-draft.h \
	sweet/config-pool.c sweet/config-pool.h \
	sweet/arch.c sweet/arch.h \
	sweet/config-arch.c sweet/config-arch.h \
	sweet/config-settle.c sweet/config-settle.h \
	sweet/config-read.c sweet/config-read.h \
	sweet/generation.c sweet/generation.h \
	sweet/access.c sweet/access.h \
	sweet/siphash.c sweet/siphash.h \
	sweet/limit.c sweet/limit.h \
	sweet/apr1.c sweet/apr1.h \
	sweet/htpasswd.c sweet/htpasswd.h \
	sweet/accept.c sweet/accept.h \
	sweet/listing.c sweet/listing.h \
	sweet/address.c sweet/address.h \
	sweet/endpoint.c sweet/endpoint.h \
	sweet/socket-options.c sweet/socket-options.h \
	sweet/supervisor.c sweet/supervisor.h \
	sweet/privileges.c sweet/privileges.h \
	sweet/starter-wire.h \
	sweet/starter-program.c sweet/starter-program.h \
	sweet/starter-exec.c sweet/starter-exec.h \
	sweet/starter-process.c sweet/starter-process.h \
	sweet/starter-keeper.c sweet/starter-keeper.h \
	sweet/starter.c sweet/starter.h \
	sweet/programs.c sweet/programs.h \
	sweet/pieces.c sweet/pieces.h \
	sweet/cgi-input.c sweet/cgi-input.h \
	sweet/cgi-run.c sweet/cgi-run.h \
	sweet/gw-cgi.c sweet/gw-cgi.h \
	sweet/gw-cgi-answer.c sweet/gw-cgi-inside.h \
	sweet/readonly.c sweet/readonly.h \
	sweet/syscall-filter.c sweet/syscall-filter.h \
	sweet/auth.c sweet/auth.h \
	sweet/log.c sweet/log.h \
	sweet/access-log.c sweet/access-log.h \
	sweet/logs.c sweet/logs.h \
	sweet/escape.c sweet/escape.h \
	sweet/access-line.c sweet/access-line.h \
	sweet/proxy-protocol.c sweet/proxy-protocol.h \
	sweet/ends.c sweet/ends.h \
	sweet/timer.c sweet/timer.h \
	sweet/histogram.c sweet/histogram.h \
	sweet/loop.c sweet/loop.h \
	sweet/loop-backend.h \
	sweet/loop-uring.c \
	sweet/loop-epoll.c \
	sweet/helper.c sweet/helper.h \
	sweet/spool.c sweet/spool.h \
	sweet/spool-unit.c sweet/spool-unit.h \
	sweet/docroot.c sweet/docroot.h \
	sweet/folder.c sweet/folder.h \
	sweet/filehead.c sweet/filehead.h \
	sweet/content-read.c sweet/content-read.h \
	sweet/content.c sweet/content.h \
	sweet/content-inside.h \
	sweet/content-table.c \
	sweet/content-fresh.c \
	sweet/content-turn.c sweet/content-turn.h \
	sweet/site.c sweet/site.h \
	sweet/cacheable.c sweet/cacheable.h \
	sweet/cachekey.c sweet/cachekey.h \
	sweet/respcache.c sweet/respcache.h \
	sweet/respcache-inside.h \
	sweet/respcache-entry.c \
	sweet/respcache-flight.c \
	sweet/respcache-purge.c \
	sweet/transaction.c sweet/transaction.h \
	sweet/server.h \
	sweet/filestream.c sweet/filestream.h \
	sweet/pagecache.c sweet/pagecache.h \
	sweet/selection.c sweet/selection.h \
	sweet/textbody.c sweet/textbody.h \
	sweet/errorpage.c sweet/errorpage.h \
	sweet/browse.c sweet/browse.h \
	sweet/static.c sweet/static.h \
	sweet/gw-child.c sweet/gw-child.h \
	sweet/gw-process.c sweet/gw-process.h \
	sweet/gw-call.c sweet/gw-call.h \
	sweet/gw-pace.c sweet/gw-pace.h \
	sweet/gw-upload.c sweet/gw-upload.h \
	sweet/gw-variables.c sweet/gw-variables.h \
	sweet/gw-place.c sweet/gw-place.h \
	sweet/page-memory.h \
	sweet/gw-keep.c sweet/gw-keep.h \
	sweet/gw-fetch.c sweet/gw-fetch.h \
	sweet/gw-cache.c sweet/gw-cache.h \
	sweet/gw-window.c sweet/gw-window.h \
	sweet/gw-stream.c sweet/gw-stream.h \
	sweet/gw-spool.c sweet/gw-spool.h \
	sweet/gw-parts.c sweet/gw-parts.h \
	sweet/gw-lane.c sweet/gw-lane.h \
	sweet/gw-lane-answer.c sweet/gw-lane-inside.h \
	sweet/gw-worker.c sweet/gw-worker.h \
	sweet/permits.c sweet/permits.h \
	sweet/fcgi-link.c sweet/fcgi-link.h \
	sweet/passrights.c sweet/passrights.h \
	sweet/fcgi-spawn.c sweet/fcgi-spawn.h \
	sweet/gw-fastcgi.c sweet/gw-fastcgi.h \
	sweet/gw-fastcgi-request.c sweet/gw-fastcgi-inside.h \
	sweet/gw-fastcgi-answer.c \
	sweet/gateway.c sweet/gateway.h \
	sweet/status.c sweet/status.h \
	sweet/status-data.h \
	sweet/status-field.c sweet/status-field.h \
	sweet/status-json.c sweet/status-json.h \
	sweet/status-metrics.c sweet/status-metrics.h \
	sweet/status-page.c sweet/status-page.h \
	sweet/status-html.h \
	sweet/route.c sweet/route.h \
	sweet/output.c sweet/output.h \
	sweet/connection.c sweet/connection.h \
	sweet/connection-inside.h \
	sweet/connection-body.c \
	sweet/connection-send.c sweet/connection-slow.c sweet/connection-unsent.c \
	sweet/connection-time.c \
	sweet/listener.c sweet/listener.h \
	sweet/pidfile.c sweet/pidfile.h \
	sweet/endpoints.c sweet/endpoints.h \
	sweet/config-fixed.c sweet/config-fixed.h \
	sweet/confine.c sweet/confine.h \
	sweet/runner.c sweet/runner.h \
	sweet/check-config.c sweet/check-config.h \
	sweet/reload.c sweet/reload.h \
	sweet/reload-call.c sweet/reload-call.h \
	sweet/memory-limit.c sweet/memory-limit.h \
	sweet/connection-proxy.c
# The page in the program: its bytes as numbers, which any compiler takes.
nodist_sweet_libsweet_la_SOURCES = sweet/status-html.c
sweet/status-html.c: $(srcdir)/sweet/status.html
	$(AM_V_GEN)$(MKDIR_P) sweet && { \
	  echo '#include <status-html.h>'; \
	  echo 'const unsigned char status_html[] = {'; \
	  od -An -v -tx1 $(srcdir)/sweet/status.html | sed 's/\([0-9a-f][0-9a-f]\)/0x\1,/g'; \
	  echo '};'; \
	  echo 'const size_t status_html_length = sizeof(status_html);'; } >$@.tmp && mv $@.tmp $@
CLEANFILES += sweet/status-html.c
EXTRA_DIST += sweet/status.html

sweet_libsweet_la_CPPFLAGS = -D_GNU_SOURCE -I$(srcdir)/sweet -I$(srcdir)/libnabc $(COVER_CPPFLAGS) \
	-DPACKAGE_VERSION='"$(PACKAGE_VERSION)"'
sweet_libsweet_la_CFLAGS = $(AM_CFLAGS) $(GLIB_CFLAGS) $(URING_CFLAGS)
sweet_libsweet_la_LIBADD = $(GLIB_LIBS) $(URING_LIBS) $(CRYPT_LIBS)

sweet_sweet_SOURCES = sweet/main.c sweet/service.c sweet/service.h \
	sweet/processes.c sweet/processes.h
sweet_sweet_CPPFLAGS = $(sweet_libsweet_la_CPPFLAGS)
sweet_sweet_CFLAGS = $(sweet_libsweet_la_CFLAGS)
# Complete in itself: runs from the build folder as it will when installed.
sweet_sweet_LDFLAGS = $(AM_LDFLAGS) -static
sweet_sweet_LDADD = sweet/libsweet.la libnabc/libnabc.la $(GLIB_LIBS) $(URING_LIBS) \
	$(CRYPT_LIBS) -lpthread

# What quickstart serves.
EXTRA_DIST += sweet/demo/index.html sweet/demo/style.css sweet/demo/picture.svg \
	sweet/demo/notes.txt

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
	  -e 's|@sysconfdir[@]|$(sysconfdir)|' $(srcdir)/sweet/sweet.service.in >$@.tmp && mv $@.tmp $@
CLEANFILES += sweet/sweet.service
EXTRA_DIST += sweet/sweet.service.in
