# SPDX-License-Identifier: MIT
# The library: one set of objects, exported (libnabc) and whole for unit tests.
lib_LTLIBRARIES = libnabc/libnabc.la
noinst_LTLIBRARIES += libnabc/libnabc-internal.la

nabcincludedir = $(includedir)
nabcinclude_HEADERS = \
	libnabc/include/nabc-async.h \
	libnabc/include/nabc-worker.h \
	libnabc/include/nabc.h
pkgconfigdir = $(libdir)/pkgconfig
nodist_pkgconfig_DATA = libnabc/nabc.pc

libnabc_libnabc_internal_la_SOURCES = \
	libnabc/api/admin.c libnabc/api/admin.h \
	libnabc/api/nabc-async.c \
	libnabc/api/nabc-grant.c \
	libnabc/api/nabc-hold.c \
	libnabc/api/nabc-name.c \
	libnabc/api/nabc-wait.c \
	libnabc/api/nabc.c \
	libnabc/api/registry.c libnabc/api/registry.h \
	libnabc/api/worker.c \
	libnabc/base/checksum.c libnabc/base/checksum.h \
	libnabc/base/crc32c.c libnabc/base/crc32c.h \
	libnabc/base/diagnostics.c libnabc/base/diagnostics.h \
	libnabc/base/extent.c libnabc/base/extent.h \
	libnabc/base/fragment.c libnabc/base/fragment.h \
	libnabc/base/hash-table.c libnabc/base/hash-table.h \
	libnabc/base/id.h \
	libnabc/base/lock.h \
	libnabc/base/versioned.h \
	libnabc/cache/evictions.c libnabc/cache/evictions.h \
	libnabc/cache/grant-export.c \
	libnabc/cache/grant-internal.h \
	libnabc/cache/grant-share.c \
	libnabc/cache/grant-subject.c \
	libnabc/cache/grant.c libnabc/cache/grant.h \
	libnabc/cache/hold.h \
	libnabc/cache/import-internal.h \
	libnabc/cache/import-name.c \
	libnabc/cache/import.c libnabc/cache/import.h \
	libnabc/cache/index-alloc.c \
	libnabc/cache/index-internal.h \
	libnabc/cache/index-lookup.c \
	libnabc/cache/index.c libnabc/cache/index.h \
	libnabc/cache/inspect.c libnabc/cache/inspect.h \
	libnabc/cache/names.c libnabc/cache/names.h \
	libnabc/cache/prefetch.c libnabc/cache/prefetch.h \
	libnabc/cache/remote-member.c libnabc/cache/remote-member.h \
	libnabc/membership/attach.c libnabc/membership/attach.h \
	libnabc/membership/collector.c libnabc/membership/collector.h \
	libnabc/membership/disposal.c libnabc/membership/disposal.h \
	libnabc/membership/grant-ops.c libnabc/membership/grant-ops.h \
	libnabc/membership/handle.c libnabc/membership/handle.h \
	libnabc/membership/name-ops.c libnabc/membership/name-ops.h \
	libnabc/membership/rpc-server-internal.h \
	libnabc/membership/rpc-server-ops.c \
	libnabc/membership/rpc-server.c libnabc/membership/rpc-server.h \
	libnabc/membership/serve-handshake.c \
	libnabc/membership/serve-internal.h \
	libnabc/membership/serve-listener.c \
	libnabc/membership/serve.c libnabc/membership/serve.h \
	libnabc/os/cork.c libnabc/os/cork.h \
	libnabc/os/descriptor.c libnabc/os/descriptor.h \
	libnabc/os/device.c libnabc/os/device.h \
	libnabc/os/futex.h \
	libnabc/os/identity.c libnabc/os/identity.h \
	libnabc/os/interface.c libnabc/os/interface.h \
	libnabc/os/peer.c libnabc/os/peer.h \
	libnabc/os/pin.c libnabc/os/pin.h \
	libnabc/os/process.c libnabc/os/process.h \
	libnabc/os/queue.c libnabc/os/queue.h \
	libnabc/os/random.c libnabc/os/random.h \
	libnabc/os/registered-internal.h \
	libnabc/os/registered-slots.c \
	libnabc/os/registered.c libnabc/os/registered.h \
	libnabc/os/release.c libnabc/os/release.h \
	libnabc/os/ring.c libnabc/os/ring.h \
	libnabc/os/segment.c libnabc/os/segment.h \
	libnabc/os/socket.c libnabc/os/socket.h \
	libnabc/os/thread.c libnabc/os/thread.h \
	libnabc/policy/cleaning.c libnabc/policy/cleaning.h \
	libnabc/policy/expiry.c libnabc/policy/expiry.h \
	libnabc/policy/replacement-gdsf.c \
	libnabc/policy/replacement-heap.c \
	libnabc/policy/replacement-internal.h \
	libnabc/policy/replacement-lru.c \
	libnabc/policy/replacement-sieve.c \
	libnabc/policy/replacement.c libnabc/policy/replacement.h \
	libnabc/send/async-epoll.c \
	libnabc/send/async-open.c \
	libnabc/send/async-uring.c \
	libnabc/send/async.c libnabc/send/async.h \
	libnabc/send/choice.c libnabc/send/choice.h \
	libnabc/send/epoch.c libnabc/send/epoch.h \
	libnabc/send/kernel.c libnabc/send/kernel.h \
	libnabc/send/message.c libnabc/send/message.h \
	libnabc/send/method.c libnabc/send/method.h \
	libnabc/send/ring-buffers.c libnabc/send/ring-buffers.h \
	libnabc/send/route-internal.h \
	libnabc/send/route-learn.c \
	libnabc/send/route-stat.c \
	libnabc/send/route.c libnabc/send/route.h \
	libnabc/send/send-op-open.c \
	libnabc/send/send-op.c libnabc/send/send-op.h \
	libnabc/send/sendfile.c libnabc/send/sendfile.h \
	libnabc/send/splice.c libnabc/send/splice.h \
	libnabc/send/transmit-internal.h \
	libnabc/send/transmit-plan.c \
	libnabc/send/transmit.c libnabc/send/transmit.h \
	libnabc/send/zerocopy.c libnabc/send/zerocopy.h \
	libnabc/store/compaction.c \
	libnabc/store/eviction-internal.h \
	libnabc/store/eviction.c libnabc/store/eviction.h \
	libnabc/store/maintenance.c libnabc/store/maintenance.h \
	libnabc/store/member-growth.c \
	libnabc/store/member-internal.h \
	libnabc/store/member-resize.c \
	libnabc/store/member-unit.c \
	libnabc/store/member.c libnabc/store/member.h \
	libnabc/store/memory-wait.h \
	libnabc/store/page-window.c \
	libnabc/store/pool.c libnabc/store/pool.h \
	libnabc/store/revocation-map.c libnabc/store/revocation-map.h \
	libnabc/store/store.c libnabc/store/store.h \
	libnabc/store/unit-checksum.c libnabc/store/unit-checksum.h \
	libnabc/store/unit.c libnabc/store/unit.h \
	libnabc/wire/channel.h \
	libnabc/wire/pending-tags.c libnabc/wire/pending-tags.h \
	libnabc/wire/pending.c libnabc/wire/pending.h \
	libnabc/wire/pipe-reader.c libnabc/wire/pipe-reader.h \
	libnabc/wire/rpc-client.c libnabc/wire/rpc-client.h \
	libnabc/wire/send-window.c libnabc/wire/send-window.h \
	libnabc/wire/wire.c libnabc/wire/wire.h \
	libnabc/worker/backend-requests.c \
	libnabc/worker/backend.c libnabc/worker/backend.h \
	libnabc/worker/responder-heads.c \
	libnabc/worker/responder-poll.c \
	libnabc/worker/responder-posix.c \
	libnabc/worker/responder-requests.c \
	libnabc/worker/responder-stream.c \
	libnabc/worker/responder-wait.c \
	libnabc/worker/responder.c libnabc/worker/responder.h \
	libnabc/worker/response-head.c libnabc/worker/response-head.h \
	libnabc/worker/stream.c libnabc/worker/stream.h
# Of the kernel module, its calls alone.
libnabc_libnabc_internal_la_CPPFLAGS = $(libnabc_cppflags) -I$(srcdir)/kernel-shim
libnabc_libnabc_internal_la_CFLAGS = $(AM_CFLAGS) $(URING_CFLAGS)
libnabc_libnabc_internal_la_LIBADD = $(URING_LIBS)
# libtool makes both kinds of libnabc from the objects for a shared library; without this it
# compiles each file a second time, for nobody.
if SHARED
libnabc_libnabc_internal_la_LIBTOOLFLAGS = --tag=disable-static
endif
# check-abi.sh compares types, which are not in what is compiled in haste (build-aux/steps.sh).
libnabc/%.lo: private CFLAGS := $(subst -g1 -O2,-g -O2,$(CFLAGS))

libnabc_libnabc_la_SOURCES =
libnabc_libnabc_la_LIBADD = libnabc/libnabc-internal.la $(URING_LIBS)
libnabc_libnabc_la_LDFLAGS = $(AM_LDFLAGS) -version-info 1:0:0 -no-undefined \
	-Wl,--version-script=$(srcdir)/libnabc/libnabc.map
EXTRA_libnabc_libnabc_la_DEPENDENCIES = libnabc/libnabc.map

EXTRA_DIST += libnabc/libnabc.map
