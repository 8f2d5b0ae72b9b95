# SPDX-License-Identifier: MIT
# Servers to learn from, installed as documentation; make check builds and tests them.
examplesdir = $(docdir)/examples
dist_examples_DATA = \
	examples/epoll-server.c \
	examples/example.h \
	examples/glib-server.c \
	examples/uring-server.c
# The programs of a third party, a server and its worker: tests/system/library/test_consumer.py.
consumerdir = $(examplesdir)/consumer
dist_consumer_DATA = \
	tests/system/library/consumer/Makefile \
	tests/system/library/consumer/client.c \
	tests/system/library/consumer/fetch.c \
	tests/system/library/consumer/server.c \
	tests/system/library/consumer/worker.c

if SWEET
check_PROGRAMS += examples/epoll-server examples/glib-server examples/uring-server
endif
# Installed headers' names alone, and whatever else they need they define.
examples_cppflags = -I$(srcdir)/libnabc/include -I$(srcdir)/libnabc-glib
examples_epoll_server_SOURCES = examples/epoll-server.c examples/example.h
examples_epoll_server_CPPFLAGS = $(examples_cppflags)
examples_epoll_server_LDADD = libnabc/libnabc.la
examples_epoll_server_LDFLAGS = $(AM_LDFLAGS) -static
examples_uring_server_SOURCES = examples/example.h examples/uring-server.c
examples_uring_server_CPPFLAGS = $(examples_cppflags)
examples_uring_server_CFLAGS = $(AM_CFLAGS) $(URING_CFLAGS)
examples_uring_server_LDADD = libnabc/libnabc.la $(URING_LIBS)
examples_uring_server_LDFLAGS = $(AM_LDFLAGS) -static
examples_glib_server_SOURCES = examples/example.h examples/glib-server.c
examples_glib_server_CPPFLAGS = $(examples_cppflags)
examples_glib_server_CFLAGS = $(AM_CFLAGS) $(GLIB_CFLAGS)
examples_glib_server_LDADD = libnabc-glib/libnabc-glib.la libnabc/libnabc.la $(GLIB_LIBS)
examples_glib_server_LDFLAGS = $(AM_LDFLAGS) -static
