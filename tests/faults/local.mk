# SPDX-License-Identifier: MIT
# Faults: what is preloaded into a program to make its calls fail.
# A module, and without sanitizers: it stands below them.
check_LTLIBRARIES = tests/faults/fault.la
tests_faults_fault_la_SOURCES = \
	tests/faults/fault-calls.c \
	tests/faults/fault-internal.h \
	tests/faults/fault-memory.c \
	tests/faults/fault-parts.c \
	tests/faults/fault-ring.c \
	tests/faults/fault.c tests/faults/fault.h
tests_faults_fault_la_CFLAGS = -std=gnu11 $(NABC_CFLAGS) $(URING_CFLAGS)
tests_faults_fault_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
# What the library does under them: it runs with the module before it.
check_PROGRAMS += tests/faults/library
tests_faults_library_SOURCES = \
	tests/faults/library.c \
	tests/faults/scenario-owner.c \
	tests/faults/scenario-registered.c \
	tests/faults/scenario-sends.c \
	tests/faults/scenario-units.c \
	tests/faults/scenario-worker.c \
	tests/faults/scenario.h
tests_faults_library_CFLAGS = $(AM_CFLAGS) $(URING_CFLAGS)
tests_faults_library_LDADD = libnabc/libnabc.la $(URING_LIBS)
tests_faults_library_LDFLAGS = $(AM_LDFLAGS) -static
EXTRA_DIST += \
	tests/system/support/fault_library.py \
	tests/system/support/fault_plan.py \
	tests/system/support/fault_walk.py \
	tests/system/system-calls/test_faults.py \
	tests/torture/faults.py
TORTURE_NEEDS += tests/faults/fault.la tests/faults/library
