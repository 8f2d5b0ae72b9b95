#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check-calls.sh - no function of a lower folder calls one of an upper folder, not even by a
# declaration of its own, which tests/check-floors.sh cannot see.  By the objects of a build; the
# order is in tests/folders.txt.  A table of functions of an upper folder may have a name below: it
# is how a mechanism is chosen.
#
# Environment: srcdir, the top of the sources (default: above this script); builddir (.); NM.
# Exit status: 0 good, 1 not, 77 without nm.

export LC_ALL=C
srcdir=${srcdir:-$(dirname "$0")/..}
builddir=${builddir:-.}
NM=${NM:-nm}
command -v "$NM" >/dev/null || {
	echo "check-calls: nm is missing; on Debian: apt-get install binutils"
	exit 77
}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# check PART OBJECTS FOLDER...: OBJECTS, a pattern of names of objects before that of the source.
check()
{
	part=$1 objects=$2
	shift 2
	find "$builddir/$part" -name "$objects*.o" | sort | while read -r object; do
		folder=${object#"$builddir/$part/"}
		folder=${folder%/*}
		source=${folder%/.libs}/${object##*/"$objects"}
		# Of a source that was removed, an old object may be left.
		[ ! -e "$srcdir/$part/${source%.o}.c" ] || echo "$object"
	done >"$work/objects"
	xargs -r "$NM" -A <"$work/objects" | awk -v part="$part" -v folders="$*" \
		-v start="$builddir/$part/" -v objects="$objects" '
	BEGIN {
		count = split(folders, name, " ")
		for (i = 1; i <= count; i++)
			floor[name[i]] = i
	}
	{
		path = substr($0, length(start) + 1)
		rest = path
		sub(/:.*/, "", path)
		sub(/^[^:]*:/, "", rest)
		fields = split(rest, field, " ")
		kind = field[fields - 1]
		if (kind == "U") {
			uses++
			user[uses] = path
			what[uses] = field[fields]
		} else if (kind == "T" || kind == "W") {
			home[field[fields]] = path
		}
	}
	function source(path) {
		sub(/\/\.libs\//, "/", path)
		sub("/" objects, "/", path)
		sub(/\.o$/, ".c", path)
		return part "/" path
	}
	function folder(path) {
		sub(/\/(\.libs\/)?[^\/]*$/, "", path)
		return floor[path]
	}
	END {
		for (i = 1; i <= uses; i++)
			if (what[i] in home && folder(home[what[i]]) > folder(user[i]))
				print "check-calls: " source(user[i]) " calls " what[i] "() of the upper " \
					source(home[what[i]])
		if (!uses)
			print "check-calls: " part ": no objects"
	}' >>"$work/wrong"
}

: >"$work/wrong"
while read -r part folders; do
	# Split into words.
	case $part in
	libnabc) check libnabc libnabc_internal_la- $folders ;;
	sweet) [ ! -d "$builddir/sweet/base" ] || check sweet libsweet_a- $folders ;;
	esac
done <"$srcdir/tests/folders.txt"
cat "$work/wrong"
[ ! -s "$work/wrong" ] || exit 1
echo "check-calls: no function calls one of an upper folder"
