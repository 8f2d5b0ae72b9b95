#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check-headers.sh - a source with a phase of requests (sweet/handler/phase.h) sees little of the
# rest: the compiler says which private headers of SWEET each of them includes, itself or by
# others.  What a header declares for other sources alone is for a header of its own, and what a
# folder keeps for itself is behind a pointer to an incomplete struct (sweet/core/server.h).
#
# Prints the number for each source, and, where there are too many, their names.
#
# Environment: srcdir, the top of the sources (default: above this script); CC (cc).
# Exit status: 0 good, 1 not.

# How many are permitted: of a source with one phase, or with what phases share; of one with several phases;
# of core/server.h, which most sources include.  Lower them when there are fewer.
ONE=15
SEVERAL=19
SERVER=1

export LC_ALL=C
cd "${srcdir:-$(dirname "$0")/..}" || exit 1
faults=$(mktemp) || exit 1
trap 'rm -f "$faults"' EXIT

# Prints the private headers that a source or header includes, but for itself.
headers()
{
	# Of other headers, also of missing ones, only the names matter.
	${CC:-cc} -MM -MG -D_GNU_SOURCE -Isweet -idirafter libnabc/include "$1" |
		tr -s ' \\' '\n' | grep '^sweet/.*\.h$' | grep -vxF "$1" | sort -u
}

# check PATH MOST
check()
{
	all=$(headers "$1")
	count=$(printf '%s\n' "$all" | grep -c .)
	echo "$count $1"
	[ "$count" -gt 0 ] || echo "check-headers: $1: the compiler names no header" >>"$faults"
	# Split into words.
	[ "$count" -le "$2" ] ||
		echo "check-headers: $1 includes $count headers; at most $2 are permitted:" $all >>"$faults"
}

# The table of them.
phases=$(grep -o '= phase_[a-z]*' sweet/handler/route.c | sed 's/= //')
sources=$(grep -l '^enum phase phase_' sweet/*/*.c)
[ -n "$phases" ] && [ -n "$sources" ] || echo "check-headers: no phase is found" >>"$faults"
for path in $sources; do
	own=$(sed -n 's/^enum phase \(phase_[a-z]*\)(.*/\1/p' "$path" | grep -cxF "$phases")
	[ "$own" -gt 1 ] && most=$SEVERAL || most=$ONE
	check "$path" "$most"
done
check sweet/core/server.h "$SERVER"

cat "$faults"
test ! -s "$faults"
