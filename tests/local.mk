# SPDX-License-Identifier: MIT
# Tests: units by Check, one program for each file under test; the manual pages
# and the floors against the sources; then the whole server, by pytest.
NABC_UNITS = \
	tests/unit/test-id \
	tests/unit/test-fragment \
	tests/unit/test-extent \
	tests/unit/test-checksum \
	tests/unit/test-replacement \
	tests/unit/test-wire \
	tests/unit/test-segment \
	tests/unit/test-peer \
	tests/unit/test-process \
	tests/unit/test-queue \
	tests/unit/test-route \
	tests/unit/test-unit \
	tests/unit/test-store \
	tests/unit/test-member \
	tests/unit/test-member-joined \
	tests/unit/test-foreign \
	tests/unit/test-cache \
	tests/unit/test-attach \
	tests/unit/test-handle \
	tests/unit/test-handle-read \
	tests/unit/test-transmit \
	tests/unit/test-transmit-hold \
	tests/unit/test-exchange \
	tests/unit/test-exchange-bad \
	tests/unit/test-responder \
	tests/unit/test-nabc \
	tests/unit/test-nabc-process

# A unit test of the library links all of it, hidden names included.
LDADD = libnabc/libnabc-internal.la $(CHECK_LIBS) $(URING_LIBS) -lpthread
if HAVE_CHECK
check_PROGRAMS += $(NABC_UNITS) tests/unit/worker-fixture
TESTS += $(NABC_UNITS)
endif

TESTS += tests/check-man.sh tests/check-floors.sh
EXTRA_DIST += tests/check-man.sh tests/check-floors.sh \
	tests/check-valgrind.sh \
	tests/unit/suite.h \
	tests/unit/exchange-fixture.h \
	tests/unit/handle-fixture.h \
	tests/unit/member-fixture.h \
	tests/unit/nabc-fixture.h \
	tests/unit/transmit-fixture.h
AM_TESTS_ENVIRONMENT = srcdir='$(srcdir)'; builddir='$(abs_builddir)'; CC='$(CC)'; \
	export srcdir builddir CC;
