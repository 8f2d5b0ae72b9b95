#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check-memory.sh - SECURITY.md lists the sources of SWEET for which GLib allocates memory, so that
# they end the server where there is none; each other one can do without.  By the objects of a build,
# whatever the sources call it.
#
# Environment: srcdir, the top of the sources (default: above this script); builddir (.); NM.
# Exit status: 0 good, 1 not, 77 without nm.

export LC_ALL=C
srcdir=${srcdir:-$(dirname "$0")/..}
builddir=${builddir:-.}
NM=${NM:-nm}
command -v "$NM" >/dev/null || {
	echo "check-memory: nm is missing; on Debian: apt-get install binutils"
	exit 77
}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# Calls of GLib that return memory or make something larger; g_try_malloc() is none.
ALLOCATE='g_(malloc|realloc|memdup|strn?dup|strconcat|strjoin|strsplit|ascii_str|build_|path_get_|key_file_|uri_parse'
ALLOCATE="$ALLOCATE|bytes_new|s?list_|string_(new|sized|append|prepend|insert|v?printf|overwrite|assign|chunk_(new|insert))"
ALLOCATE="$ALLOCATE|(ptr_|byte_)?array_(new|sized|add|append|prepend|insert|set_size)"
ALLOCATE="$ALLOCATE|hash_table_(new|insert|add|replace|get_)|queue_(new|push_(head|tail)\$))"

# FOLDER/NAME of each source with such a call, from the names of objects: FOLDER/PROGRAM-NAME.o.
find "$builddir/sweet" -name 'libsweet_a-*.o' -o -name 'sweet-*.o' | while read -r object; do
	name=${object##*/}
	name=${name#libsweet_a-}
	name=${name#sweet-}
	folder=${object#"$builddir/sweet/"}
	name=${folder%/*}/${name%.o}
	# Of a source that was removed, an old object may be left.
	[ -e "$srcdir/sweet/$name.c" ] || continue
	! "$NM" -u "$object" | grep -Eq " U $ALLOCATE" || echo "$name"
done | sort -u >"$work/calls"
[ -s "$work/calls" ] || {
	echo "check-memory: $builddir has no objects of the server"
	exit 1
}

# The table's first column.
sed -n '/^<!-- GLib -->$/,/^<!-- GLib -->$/s/^| \([^|]*\)|.*/\1/p' "$srcdir/SECURITY.md" |
	tr -s ', ' '\n\n' | sed -n 's/^`\(.*\)`$/\1/p' >"$work/rows"
sort -u "$work/rows" >"$work/listed"
{
	sort "$work/rows" | uniq -d | sed 's/.*/SECURITY.md: lists & twice/'
	comm -23 "$work/calls" "$work/listed" | sed 's/.*/sweet\/&.c: GLib allocates memory for it, and aborts without: \
use malloc() and handle its failure, or list it in SECURITY.md, at "Memory limits"/' | sed 'N; s/\n//'
	comm -13 "$work/calls" "$work/listed" |
		sed 's/.*/SECURITY.md: lists &, for which GLib allocates nothing: remove it/'
} >"$work/wrong"
sed 's/^/check-memory: /' "$work/wrong"
[ ! -s "$work/wrong" ] || exit 1
echo "check-memory: SECURITY.md lists the $(wc -l <"$work/calls") sources for which GLib allocates memory"
