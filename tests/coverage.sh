#!/bin/sh
# SPDX-License-Identifier: MIT
#
# coverage.sh - builds all with clang's counters in $builddir/coverage, runs units,
# fuzz corpora and each system test with its first parameters, and prints which
# lines ran (coverage.py, which also takes that build to print more).
#
# Environment: srcdir, builddir: the top of the sources and of the build; MAKE.
# Exit status: 0; 1 when a test failed or less ran than must; 77 without clang.

srcdir=$(cd "${srcdir:-$(dirname "$0")/..}" && pwd) || exit 1
here=${builddir:-.}/coverage
make=${MAKE:-make}
for tool in clang llvm-profdata llvm-cov; do
	command -v $tool >/dev/null && continue
	echo "coverage: $tool is missing; on Debian: apt-get install clang llvm"
	exit 77
done
mkdir -p "$here" && cd "$here" || exit 1
here=$PWD
[ -f Makefile ] || "$srcdir/configure" -q --enable-coverage CC=clang >configure.log || exit 1
$make -s -j"$(nproc)" all || exit 1
# Only these programs count, including their processes of other users.
rm -rf counts
mkdir -m 1777 counts || exit 1

status=0
units='$(NABC_UNITS) $(GLIB_UNITS) $(SWEET_UNITS) $(CTL_UNITS) $(FUZZ_TARGETS)'
$make -j"$(nproc)" check TESTS="$units" >units.log 2>&1 || status=1
grep -E '^(FAIL|ERROR): |^# (TOTAL|PASS|FAIL)' units.log
# A program that runs as another user continues its counts of the first run.
for program in sweet/sweet nabcctl/nabcctl tests/system/* cgi-examples/*; do
	[ -f "$program" ] && [ -x "$program" ] && "./$program" --help >help.log 2>&1 </dev/null
done
chmod -R a+rw counts
srcdir=$srcdir builddir=$here sh "$srcdir/tests/check-system.sh" --thin --backends=epoll,none || status=1
"$srcdir/tests/coverage.py" "$here" --at-least libnabc=95 --at-least nabcctl=90 --at-least sweet=90 || status=1
exit $status
