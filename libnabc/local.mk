# SPDX-License-Identifier: MIT
# The library: one set of objects, exported (libnabc) and whole for unit tests.
lib_LTLIBRARIES = libnabc/libnabc.la
noinst_LTLIBRARIES += libnabc/libnabc-internal.la

nabcincludedir = $(includedir)
nabcinclude_HEADERS = libnabc/nabc.h libnabc/nabc-async.h libnabc/nabc-worker.h
pkgconfigdir = $(libdir)/pkgconfig
nodist_pkgconfig_DATA = libnabc/nabc.pc

libnabc_libnabc_internal_la_SOURCES = \
	libnabc/id.h libnabc/lock.h \
	libnabc/fragment.c libnabc/fragment.h \
	libnabc/extent.c libnabc/extent.h \
	libnabc/checksum.c libnabc/checksum.h \
	libnabc/crc32c.c libnabc/crc32c.h \
	libnabc/replacement.c libnabc/replacement.h \
	libnabc/cleaning.c libnabc/cleaning.h \
	libnabc/wire.c libnabc/wire.h \
	libnabc/table.c libnabc/table.h \
	libnabc/notice.c libnabc/notice.h \
	libnabc/identity.c libnabc/identity.h \
	libnabc/segment.c libnabc/segment.h \
	libnabc/device.c libnabc/device.h \
	libnabc/ring.c libnabc/ring.h \
	libnabc/socket.c libnabc/socket.h \
	libnabc/cork.c libnabc/cork.h \
	libnabc/peer.c libnabc/peer.h \
	libnabc/process.c libnabc/process.h \
	libnabc/queue.c libnabc/queue.h libnabc/lane.h \
	libnabc/route.c libnabc/route.h \
	libnabc/unit.c libnabc/unit.h \
	libnabc/board.c libnabc/board.h \
	libnabc/grant.c libnabc/grant.h \
	libnabc/session.c libnabc/session.h \
	libnabc/store.c libnabc/store.h \
	libnabc/sums.c libnabc/sums.h \
	libnabc/expiry.c libnabc/expiry.h \
	libnabc/stock.c libnabc/stock.h \
	libnabc/room.c libnabc/room.h \
	libnabc/member.c libnabc/member.h \
	libnabc/foreign.c libnabc/foreign.h \
	libnabc/loan.c libnabc/loan.h \
	libnabc/upkeep.c libnabc/upkeep.h \
	libnabc/cache.c libnabc/cache.h \
	libnabc/catalogue.c libnabc/catalogue.h \
	libnabc/share.c libnabc/share.h \
	libnabc/desk.c libnabc/desk.h \
	libnabc/attach.c libnabc/attach.h \
	libnabc/join.c libnabc/join.h \
	libnabc/handle.c libnabc/handle.h \
	libnabc/passage.c libnabc/passage.h libnabc/method.c libnabc/method.h \
	libnabc/splice.c libnabc/splice.h \
	libnabc/zerocopy.c libnabc/zerocopy.h \
	libnabc/kernel.c libnabc/kernel.h \
	libnabc/stream.c libnabc/stream.h \
	libnabc/transmit.c libnabc/transmit.h \
	libnabc/sendfile.c libnabc/sendfile.h \
	libnabc/collector.c libnabc/collector.h \
	libnabc/operator.c libnabc/operator.h \
	libnabc/operation.c libnabc/operation.h \
	libnabc/async.c libnabc/async-uring.c libnabc/async-epoll.c libnabc/async.h \
	libnabc/flow.c libnabc/flow.h \
	libnabc/intake.c libnabc/intake.h \
	libnabc/inflow.c libnabc/inflow.h \
	libnabc/exchange.c libnabc/exchange-tell.c libnabc/exchange.h \
	libnabc/responder.c libnabc/responder-stream.c libnabc/responder-posix.c \
	libnabc/responder.h \
	libnabc/face.c libnabc/face.h \
	libnabc/nabc.c libnabc/sharing.c libnabc/nabc-async.c libnabc/worker.c
# Of the kernel module, its calls alone.
libnabc_libnabc_internal_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/kernel-shim
libnabc_libnabc_internal_la_CFLAGS = $(AM_CFLAGS) $(URING_CFLAGS)
libnabc_libnabc_internal_la_LIBADD = $(URING_LIBS)

libnabc_libnabc_la_SOURCES =
libnabc_libnabc_la_LIBADD = libnabc/libnabc-internal.la $(URING_LIBS)
libnabc_libnabc_la_LDFLAGS = $(AM_LDFLAGS) -version-info 0:0:0 -no-undefined \
	-Wl,--version-script=$(srcdir)/libnabc/libnabc.map
EXTRA_libnabc_libnabc_la_DEPENDENCIES = libnabc/libnabc.map

EXTRA_DIST += libnabc/libnabc.map

# nabcctl(1): of the library it sees nabc.h alone.
if SWEET
bin_PROGRAMS += libnabc/nabcctl
noinst_LTLIBRARIES += libnabc/libnabcctl.la
endif
libnabc_libnabcctl_la_SOURCES = \
	libnabc/json.c libnabc/json.h \
	libnabc/ctl-counter.c libnabc/ctl-counter.h \
	libnabc/ctl.c libnabc/ctl.h libnabc/ctl-word.c \
	libnabc/ctl-show.c libnabc/ctl-show.h \
	libnabc/ctl-unit.c libnabc/ctl-top.c libnabc/ctl-route.c \
	libnabc/ctl-purge.c
libnabc_libnabcctl_la_CPPFLAGS = $(AM_CPPFLAGS) -DPACKAGE_VERSION='"$(PACKAGE_VERSION)"'
libnabc_libnabcctl_la_CFLAGS = $(AM_CFLAGS) $(GLIB_CFLAGS)
libnabc_libnabcctl_la_LIBADD = $(GLIB_LIBS) -lm

libnabc_nabcctl_SOURCES = libnabc/nabcctl.c
libnabc_nabcctl_CPPFLAGS = $(libnabc_libnabcctl_la_CPPFLAGS)
libnabc_nabcctl_CFLAGS = $(libnabc_libnabcctl_la_CFLAGS)
# Complete in itself: runs from the build folder as it will when installed.
libnabc_nabcctl_LDFLAGS = $(AM_LDFLAGS) -static
libnabc_nabcctl_LDADD = libnabc/libnabcctl.la libnabc/libnabc.la $(GLIB_LIBS) $(URING_LIBS) \
	-lpthread
