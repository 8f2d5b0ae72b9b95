#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check-system.sh - runs the system tests (tests/system) against the server
# that was built: real processes, real clients.
#
# Environment: srcdir and builddir, the tops of sources and build; SWEET_UNDER,
# a command that the server is run under, such as "valgrind --quiet
# --error-exitcode=99 --leak-check=full --show-leak-kinds=definite,possible";
# loads are smaller then, and what it cannot do is skipped; SWEET_THREADS, how
# many threads it has where a test does not say; NABC_INSTALLED, where the build
# is installed (without, a test installs it); TMPDIR, where files of tests are;
# SWEET_OVER, tls or h2: what clients and servers speak where tests do not choose.
# SWEET_TLS_RECORDS, own or openssl: who makes the records of TLS 1.3, likewise.
# Arguments go to pytest: files and tests, instead of all; what
# tests/system/support/selection.py knows, such as --backends=epoll.
# Exit status: pytest's; 77 when pytest, curl, wrk or the program of SWEET_UNDER is missing.

srcdir=$(cd "${srcdir:-$(dirname "$0")/..}" && pwd) || exit 1
export srcdir
builddir=$(cd "${builddir:-$srcdir/build}" && pwd) || exit 1
export builddir
export PYTHONDONTWRITEBYTECODE=1

missing()
{
	echo "check-system: $1 is missing; on Debian: apt-get install $2"
	exit 77
}

# Debian's own python3 first: Debian's pytest belongs to it.
python=/usr/bin/python3
$python -c 'import pytest' 2>/dev/null || python=python3
$python -c 'import pytest' 2>/dev/null || missing pytest python3-pytest
[ "$SWEET_OVER" != h2 ] || $python -c 'import h2' 2>/dev/null || missing hyper-h2 python3-h2
command -v curl >/dev/null || missing curl curl
command -v wrk >/dev/null || missing wrk wrk
under=${SWEET_UNDER%% *}
[ -z "$under" ] || command -v "$under" >/dev/null || missing "$under" "$under"
for program in sweet/sweet nabcctl/nabcctl cgi-examples/generate \
	cgi-examples/cached-report cgi-examples/template cgi-examples/upload tests/system/deny-io-uring \
	tests/system/worker-heads tests/system/worker-many tests/system/worker-obey tests/system/worker-stream \
	tests/system/worker-told tests/system/cache-owner \
	examples/epoll-server \
	examples/uring-server examples/glib-server; do
	[ -x "$builddir/$program" ] && continue
	echo "check-system: $builddir/$program is not built; make check builds it"
	exit 1
done
# If files or folders are given, only these run.
for argument; do
	case $argument in
	/*) [ ! -e "${argument%%::*}" ] || named=yes ;;
	*test_*.py*) named=yes ;;
	esac
done
[ -n "$named" ] || set -- "$srcdir/tests/system" "$@"
exec $python -m pytest -p no:cacheprovider -q -rfEs "$@"
