#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check-floors.sh - lower folders never call upper ones.  tests/folders.txt lists
# the folders of each part of the tree from the ground up.  A private header is
# included as "FOLDER/NAME.h", from the same folder or from one below; a public
# header of the library as <NAME.h>.  Only libnabc sees private headers of libnabc.
#
# ARCHITECTURE.md says in the same order what each folder of libnabc and SWEET holds.
#
# Environment: srcdir, the top of the sources (default: above this script).
# Exit status: 0 good, 1 not.

export LC_ALL=C
srcdir=${srcdir:-$(dirname "$0")/..}
cd "$srcdir" || exit 1
faults=$(mktemp) || exit 1
trap 'rm -f "$faults"' EXIT

# check PART FOLDER...
check()
{
	part=$1
	shift
	[ -n "$(find "$part" -name '*.[ch]' 2>/dev/null)" ] || echo "$part: no sources" >>"$faults"
	# A folder that is not listed would not be checked.
	find "$part" -name '*.[ch]' | while read -r path; do
		folder=${path#"$part"/}
		case $folder in */*) folder=${folder%/*} ;; *) folder=. ;; esac
		case " $* " in
		*" $folder "*) echo "$path" ;;
		*) echo "$path: its folder is not listed in tests/folders.txt" >>"$faults" ;;
		esac
	done | sort | awk -v part="$part" -v folders="$*" '
	function exists(path, line) {
		if (!(path in known)) {
			known[path] = (getline line < path) >= 0
			close(path)
		}
		return known[path]
	}
	BEGIN {
		count = split(folders, name, " ")
		for (i = 1; i <= count; i++)
			floor[name[i]] = i
	}
	{
		path = $0
		own = path
		sub(/^[^\/]*\//, "", own)
		if (!sub(/\/[^\/]*$/, "", own))
			own = "."
		while ((getline line < path) > 0) {
			if (line !~ /^[ \t]*#[ \t]*include[ \t]*[<"]/)
				continue
			split(line, piece, /[<">]/)
			header = piece[2]
			if (line !~ /"/) {
				for (i = 1; i <= count; i++)
					if (name[i] != "include" && exists(part "/" name[i] "/" header))
						print path ": <" header "> is private: include it as \"" \
						      (name[i] == "." ? "" : name[i] "/") header "\""
				continue
			}
			folder = header ~ /\// ? header : "./" header
			sub(/\/[^\/]*$/, "", folder)
			if (!(folder in floor) || !exists(part "/" header))
				print path ": there is no " part "/" header
			else if (floor[folder] > floor[own])
				print path ": includes " header " of a folder above"
		}
		close(path)
	}' >>"$faults"
}

# Prints the folders in the rows of the part's table.
described()
{
	sed -n "/^| $1\/.*| holds |\$/,/^\$/s/^| \(\(\`[a-z0-9/]*\/\`,* *\)*\)|.*/\1/p" ARCHITECTURE.md |
		tr -cd 'a-z0-9/ \n' | sed 's/\/\( \|$\)/ /g' | tr -s '\n ' ' '
}

# Comments as in shell.
while read -r part folders; do
	case $part in '' | '#'*) continue ;; esac
	# Split into words.
	check "$part" $folders
	case $part in
	libnabc | sweet)
		rows=$(described "$part")
		[ "${rows% }" = "$folders" ] ||
			echo "ARCHITECTURE.md: $part/: has rows for $rows, but tests/folders.txt has $folders" >>"$faults"
		;;
	esac
done <tests/folders.txt

cat "$faults"
test ! -s "$faults"
