# SPDX-License-Identifier: MIT
# Workers to learn from; they use the installed headers' names alone.
EXTRA_DIST += cgi-examples/hello.sh
noinst_PROGRAMS += cgi-examples/generate
cgi_examples_generate_SOURCES = cgi-examples/generate.c
cgi_examples_generate_LDADD = libnabc/libnabc.la
cgi_examples_generate_LDFLAGS = $(AM_LDFLAGS) -static
