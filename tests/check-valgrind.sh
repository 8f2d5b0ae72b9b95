#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check-valgrind.sh - every unit test program under Valgrind's memcheck: each
# test in a process of its own (Check forks), where any error and any leak is
# a failure.  Prints a line for each program, and what went wrong in it.
#
# Arguments: programs by name (test-loop), instead of all of them.
# Environment: builddir, where the programs were built (default: here);
# VALGRIND, which one to use; NABC_TEST_SCALE, what long loops are divided by
# (default 100).
# Exit status: 0 good, 1 not, 77 without Valgrind.

builddir=${builddir:-.}
valgrind=${VALGRIND:-valgrind}
if ! command -v "$valgrind" >/dev/null; then
	echo "no valgrind; on Debian: apt-get install valgrind"
	exit 77
fi
tests=${srcdir:-$(dirname "$0")/..}/tests/unit
if [ $# = 0 ]; then
	for source in "$tests"/*/test-*.c "$tests"/*/*/test-*.c; do
		set -- "$@" "$(basename "$source" .c)"
	done
fi

output=$(mktemp) || exit 1
trap 'rm -f "$output"' EXIT
CK_FORK=yes
NABC_TEST_SCALE=${NABC_TEST_SCALE:-100}
# Threads take turns: without fair-sched a spinning one can starve the others.
# Valgrind 3.19 stops all threads while one of them waits in io_uring, so the
# loops only run with epoll.
NABC_TEST_NO_URING=1
export CK_FORK NABC_TEST_SCALE NABC_TEST_NO_URING

good=0 bad=0
for name in "$@"; do
	# Its folder corresponds to that of its source.
	source=$(find "$tests" -name "$name.c")
	source=${source#"$tests"/}
	program=$builddir/tests/unit/${source%.c}
	if [ ! -f "$program" ] || [ ! -x "$program" ]; then
		echo "FAIL $name: not built (make check builds it)"
		bad=$((bad + 1))
		continue
	fi
	# A program with a libtool wrapper is run without the wrapper.
	timeout -k 5 300 "$builddir/libtool" --silent --mode=execute "$valgrind" --quiet --error-exitcode=99 \
		--read-inline-info=no --fair-sched=yes --leak-check=full \
		--child-silent-after-fork=no --suppressions="$tests/../valgrind.supp" \
		"$program" >"$output" 2>&1
	status=$?
	# Check takes a child's 99 for its failure; any message of Valgrind counts too.
	if [ $status = 0 ] && ! grep -q '^==[0-9]*==' "$output"; then
		echo "ok   $name: $(grep -o 'Checks: .*' "$output")"
		# Reasons for skipped tests, in its own words.
		sed -n '/^Running suite/d; /^[0-9]*%: /d; /^--[0-9]*--/d; s/^/     /p' "$output" | uniq
		good=$((good + 1))
	else
		echo "FAIL $name: exit status $status"
		# An unknown kernel feature in Valgrind is not an error of the program.
		sed '/^--[0-9]*-- /d; s/^/     /' "$output"
		bad=$((bad + 1))
	fi
done
echo "valgrind: $good programs good, $bad not"
[ $bad = 0 ]
