# SPDX-License-Identifier: MIT
# Workers and CGI programs to learn from, installed as documentation; they use
# the installed headers' names alone.
if SWEET
cgiexamplesdir = $(docdir)/cgi-examples
dist_cgiexamples_DATA = \
	cgi-examples/README.md \
	cgi-examples/attach-fcgi.c \
	cgi-examples/cached-report.c \
	cgi-examples/generate.c \
	cgi-examples/nabc.py \
	cgi-examples/template.c \
	cgi-examples/upload.c
dist_cgiexamples_SCRIPTS = \
	cgi-examples/hello.sh \
	cgi-examples/hello_cgi.py \
	cgi-examples/hello_worker.py
endif

cgi_example_ldflags = $(AM_LDFLAGS) -static
if SWEET
noinst_PROGRAMS += cgi-examples/generate
endif
cgi_examples_generate_SOURCES = cgi-examples/generate.c
cgi_examples_generate_LDADD = libnabc/libnabc.la
cgi_examples_generate_LDFLAGS = $(cgi_example_ldflags)
cgi_examples_generate_CPPFLAGS = $(AM_CPPFLAGS)
if HAVE_LIBFCGI
cgi_examples_generate_CPPFLAGS += -DHAVE_LIBFCGI
cgi_examples_generate_LDADD += $(FCGI_LIBS)
endif

if SWEET
check_PROGRAMS += cgi-examples/cached-report cgi-examples/template cgi-examples/upload
endif
cgi_examples_cached_report_SOURCES = cgi-examples/cached-report.c
cgi_examples_cached_report_LDADD = libnabc/libnabc.la
cgi_examples_cached_report_LDFLAGS = $(cgi_example_ldflags)
cgi_examples_template_SOURCES = cgi-examples/template.c
cgi_examples_template_LDADD = libnabc/libnabc.la
cgi_examples_template_LDFLAGS = $(cgi_example_ldflags)
cgi_examples_upload_SOURCES = cgi-examples/upload.c
cgi_examples_upload_LDADD = libnabc/libnabc.la
cgi_examples_upload_LDFLAGS = $(cgi_example_ldflags)

if HAVE_LIBFCGI
check_PROGRAMS += cgi-examples/attach-fcgi
cgi_examples_attach_fcgi_SOURCES = cgi-examples/attach-fcgi.c
cgi_examples_attach_fcgi_LDADD = libnabc/libnabc.la $(FCGI_LIBS)
cgi_examples_attach_fcgi_LDFLAGS = $(cgi_example_ldflags)
endif
