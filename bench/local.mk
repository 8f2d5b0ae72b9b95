# SPDX-License-Identifier: MIT
# Benchmarks are run from the source tree: bench/bench --help.
# What "bench library" runs is built with the rest.
if SWEET
noinst_PROGRAMS += bench/library
endif
bench_library_SOURCES = \
	bench/library-handover.c \
	bench/library-lookup.c \
	bench/library-threads.c \
	bench/library.c bench/library.h
bench_library_LDADD = libnabc/libnabc-internal.la $(URING_LIBS) -lpthread
bench_library_LDFLAGS = $(AM_LDFLAGS) -static
EXTRA_DIST += bench/lib/idle.py bench/lib/library.py bench/lib/reload.py
# What "bench replacement" runs: the library's own replacement, on a list of requests.
if SWEET
noinst_PROGRAMS += bench/replay
endif
bench_replay_SOURCES = \
	bench/bounds.c \
	bench/replay.c \
	bench/requests.c bench/requests.h \
	bench/simulate.c bench/simulate.h
bench_replay_LDADD = libnabc/libnabc-internal.la $(URING_LIBS) -lpthread -lm
EXTRA_DIST += bench/lib/replacement.py bench/traces/README.md bench/traces/semicomplete-2015.tsv.gz

EXTRA_DIST += \
	bench/README.md \
	bench/bench \
	bench/fcgi-generate.c \
	bench/lib/__init__.py \
	bench/lib/experiments.py \
	bench/lib/load.py \
	bench/lib/process.py \
	bench/lib/report.py \
	bench/lib/servers.py \
	bench/urls.lua
# Results and what is made of them.
EXTRA_DIST += bench/lib/plot.py bench/lib/results.py bench/lib/sanity.py bench/lib/weave.py
# Experiments on files.
EXTRA_DIST += bench/lib/files.py bench/lib/fixed.py bench/lib/h2o.py \
	bench/lib/haproxy.py bench/lib/tux.py bench/lib/varnish.py

# What no server of "bench dynamic" can do without.
if SWEET
noinst_PROGRAMS += bench/null-generate
endif
bench_null_generate_SOURCES = bench/null-generate.c

# What SWEET is to reach beside its peers; latencies at a rate.
EXTRA_DIST += bench/lib/bars.py bench/lib/before.py bench/lib/latency.py bench/sections/latency.md
# What no server of "bench fixed" can do without.
if SWEET
noinst_PROGRAMS += bench/null-server
endif
bench_null_server_SOURCES = \
	bench/null-epoll.c \
	bench/null-server.c bench/null-server.h \
	bench/null-uring.c
bench_null_server_LDADD = $(URING_LIBS)

# The same over TLS, with HTTP/1.1 and HTTP/2, and what measures handshakes.
if SWEET
noinst_PROGRAMS += bench/handshakes bench/null-h2 bench/null-tls
endif
bench_null_tls_SOURCES = bench/null-cipher.c bench/null-cipher.h bench/null-tls.c
bench_null_tls_CFLAGS = $(AM_CFLAGS) $(OPENSSL_CFLAGS)
bench_null_tls_LDADD = $(OPENSSL_LIBS)
bench_null_h2_SOURCES = bench/null-cipher.c bench/null-cipher.h bench/null-h2.c
bench_null_h2_CFLAGS = $(AM_CFLAGS) $(OPENSSL_CFLAGS) $(NGHTTP2_CFLAGS)
bench_null_h2_LDADD = $(OPENSSL_LIBS) $(NGHTTP2_LIBS)
bench_handshakes_SOURCES = \
	bench/load/client-answer.c bench/load/client-answer.h \
	bench/load/client-histogram.c bench/load/client-histogram.h \
	bench/load/handshakes.c
bench_handshakes_CFLAGS = $(AM_CFLAGS) $(OPENSSL_CFLAGS)
bench_handshakes_LDADD = $(OPENSSL_LIBS)
EXTRA_DIST += bench/lib/certificates.py bench/lib/groups.py bench/lib/http2.py bench/lib/tls.py \
	bench/sections/groups.md bench/sections/tls.md

# The wide-area link of "bench architectures".
if SWEET
noinst_PROGRAMS += bench/wan
endif
bench_wan_SOURCES = \
	bench/wan-link.c bench/wan-link.h \
	bench/wan-spoil.c bench/wan-spoil.h \
	bench/wan-tun.c bench/wan-tun.h \
	bench/wan.c
bench_wan_LDADD =
EXTRA_DIST += bench/lib/architectures.py bench/lib/cgroup.py bench/lib/disk.py bench/lib/wan.py \
	bench/sections/architectures.md

# The peers, and "bench dynamic".
EXTRA_DIST += bench/lib/apache.py bench/lib/dynamic.py bench/lib/fastcgi.py \
	bench/lib/few.py bench/lib/lighttpd.py bench/lib/nginx.py bench/sections/few.md

# Compares the library's own loops, which are not exported, with the C library's.
if SWEET
noinst_PROGRAMS += bench/checksum
endif
EXTRA_DIST += bench/lib/checksum.py
bench_checksum_LDADD = libnabc/libnabc-internal.la $(URING_LIBS) -lpthread

# Ways to fill a unit from a file.
if SWEET
noinst_PROGRAMS += bench/read-ways
endif
EXTRA_DIST += bench/lib/reads.py bench/sections/reads.md
bench_read_ways_LDADD = $(URING_LIBS)

# What was found, and the text that it is woven into.
EXTRA_DIST += bench/RESULTS.md bench/results
EXTRA_DIST += bench/sections/checksum.md bench/sections/dynamic.md bench/sections/fixed.md \
	bench/sections/idle.md bench/sections/library.md bench/sections/reload.md \
	bench/sections/replacement.md bench/sections/tux.md

# The papers' event-driven client; the pure parts have unit tests.
if SWEET
noinst_PROGRAMS += bench/client
endif
bench_client_SOURCES = \
	bench/load/client-answer.c bench/load/client-answer.h \
	bench/load/client-connection.c bench/load/client-connection.h \
	bench/load/client-histogram.c bench/load/client-histogram.h \
	bench/load/client-load.c bench/load/client-load.h \
	bench/load/client-pause.c bench/load/client-pause.h \
	bench/load/client-requests.c bench/load/client-requests.h \
	bench/load/client-schedule.c bench/load/client-schedule.h \
	bench/load/client-workload-list.c \
	bench/load/client-workload-surge.c \
	bench/load/client-workload.h \
	bench/load/client.c \
	bench/load/surge.c bench/load/surge.h
bench_client_LDADD = -lm
EXTRA_DIST += bench/lib/documents.py bench/lib/specweb.py bench/lib/surge.py \
	bench/lib/tracereplay.py bench/lib/weblog.py \
	bench/sections/specweb.md bench/sections/surge.md bench/sections/trace.md

# What happens between two network namespaces.
EXTRA_DIST += bench/lib/netns.py bench/lib/packets.py bench/lib/sendfile.py \
	bench/sections/packets.md bench/sections/sendfile.md
# Long downloads over the wide-area link; more threads than CPUs.
EXTRA_DIST += \
	bench/lib/pipe.py \
	bench/lib/scaling.py \
	bench/pull.py \
	bench/sections/pipe.md \
	bench/sections/scaling.md
# What runs in the guests of "bench kernel", which builds it; what makes guests is in tests/kernel.
EXTRA_DIST += bench/kernel/count.c bench/kernel/count.h bench/kernel/dynamic.c bench/kernel/guest.c \
	bench/kernel/kernel.h bench/kernel/peer.c bench/kernel/static.c bench/kernel/zc.c \
	bench/lib/guests.py bench/lib/kernel.py \
	bench/sections/kernel.md
# The same for "bench nic".
EXTRA_DIST += \
	bench/lib/nic.py \
	bench/nic/client.c \
	bench/nic/end.c \
	bench/nic/load.c \
	bench/nic/nic.h \
	bench/nic/server.c \
	bench/sections/nic.md
# What an HTTP server behind costs.
EXTRA_DIST += bench/lib/proxy.py bench/sections/proxy.md
# What compression costs.
EXTRA_DIST += bench/lib/compress.py bench/sections/compress.md
# What rules cost.
EXTRA_DIST += bench/lib/rules.py bench/sections/rules.md
# What each of SWEET's caches is worth.
EXTRA_DIST += bench/lib/large.py bench/lib/slow.py bench/sections/large.md bench/sections/slow.md
EXTRA_DIST += bench/lib/breakdown.py bench/sections/breakdown.md
