# SPDX-License-Identifier: MIT
# The library for programs with GLib's main loop; it sees libnabc's public calls alone.
if SWEET
lib_LTLIBRARIES += libnabc-glib/libnabc-glib.la
nabcinclude_HEADERS += libnabc-glib/nabc-glib.h
nodist_pkgconfig_DATA += libnabc-glib/nabc-glib.pc
endif

libnabc_glib_libnabc_glib_la_SOURCES = libnabc-glib/nabc-glib.c libnabc-glib/nabc-glib.h
libnabc_glib_libnabc_glib_la_CFLAGS = $(AM_CFLAGS) $(GLIB_CFLAGS)
libnabc_glib_libnabc_glib_la_LIBADD = libnabc/libnabc.la $(GLIB_LIBS)
libnabc_glib_libnabc_glib_la_LDFLAGS = $(AM_LDFLAGS) -version-info 1:0:0 -no-undefined \
	-Wl,--version-script=$(srcdir)/libnabc-glib/libnabc-glib.map
EXTRA_libnabc_glib_libnabc_glib_la_DEPENDENCIES = libnabc-glib/libnabc-glib.map

EXTRA_DIST += libnabc-glib/libnabc-glib.map
