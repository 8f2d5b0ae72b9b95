# SPDX-License-Identifier: MIT
# nabcctl(1): of the library it sees nabc.h alone, of SWEET the writer of JSON.
if SWEET
bin_PROGRAMS += nabcctl/nabcctl
noinst_LIBRARIES += nabcctl/libnabcctl.a
endif
nabcctl_libnabcctl_a_SOURCES = \
	nabcctl/ctl-counter.c nabcctl/ctl-counter.h \
	nabcctl/ctl-grants.c \
	nabcctl/ctl-purge.c \
	nabcctl/ctl-route.c \
	nabcctl/ctl-show.c nabcctl/ctl-show.h \
	nabcctl/ctl-top.c \
	nabcctl/ctl-unit.c \
	nabcctl/ctl-word.c \
	nabcctl/ctl.c nabcctl/ctl.h \
	sweet/base/decimal.h \
	sweet/base/json.c sweet/base/json.h
nabcctl_libnabcctl_a_CPPFLAGS = $(public_cppflags) -I$(srcdir)/sweet -DPACKAGE_VERSION='"$(PACKAGE_VERSION)"'
nabcctl_libnabcctl_a_CFLAGS = $(AM_CFLAGS) $(GLIB_CFLAGS)

nabcctl_nabcctl_SOURCES = nabcctl/nabcctl.c
nabcctl_nabcctl_CPPFLAGS = $(nabcctl_libnabcctl_a_CPPFLAGS)
nabcctl_nabcctl_CFLAGS = $(nabcctl_libnabcctl_a_CFLAGS)
# Complete in itself: runs from the build folder as it will when installed.
nabcctl_nabcctl_LDFLAGS = $(AM_LDFLAGS) -static
nabcctl_nabcctl_LDADD = nabcctl/libnabcctl.a libnabc/libnabc.la $(GLIB_LIBS) $(URING_LIBS) \
	-lm -lpthread
