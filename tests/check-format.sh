#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check-format.sh - clang-format would change no source (.clang-format).  The versions of Debian 12
# and 13, and those between, agree on all of them; where they do not on a line, write another one.
#
# Usage: check-format.sh [FILE...]    (all .c and .h of the tree by default)
# Environment: srcdir, the top of the sources (default: above this script); CLANG_FORMAT.
# Exit status: 0 good, 1 not, 77 without clang-format.

CLANG_FORMAT=${CLANG_FORMAT:-clang-format}
command -v "$CLANG_FORMAT" >/dev/null || {
	echo "check-format: clang-format is missing; on Debian: apt-get install clang-format"
	exit 77
}
version=$("$CLANG_FORMAT" --version | sed -n 's/.*version \([0-9]*\)\..*/\1/p')
if ! [ "${version:-0}" -ge 14 ] || [ "$version" -gt 19 ]; then
	echo "check-format: this is clang-format ${version:-of no version}; those from 14 to 19 agree on the sources"
	exit 77
fi
cd "${srcdir:-$(dirname "$0")/..}" || exit 1
for path; do
	[ -f "$path" ] || {
		echo "check-format: there is no file $path"
		exit 1
	}
done
faults=$(mktemp) || exit 1
trap 'rm -f "$faults"' EXIT

# Builds lie in folders of the tree, with sources that they have made.
sources()
{
	for folder in bench cgi-examples examples kernel-shim libnabc libnabc-fcgi libnabc-glib nabcctl sweet tests; do
		[ ! -d "$folder" ] || find "$folder" -name '*.[ch]' ! -path sweet/handler/status-html.c
	done
}

{ [ $# -gt 0 ] && printf '%s\n' "$@" || sources; } | sort |
	LC_ALL=C xargs -P "$(nproc)" -n 64 "$CLANG_FORMAT" --dry-run -Werror 2>"$faults"
wrong=$(sed -n 's/^\([^ :]*\):[0-9]*:[0-9]*: error: .*/\1/p' "$faults" | sort -u)
for path in $wrong; do
	"$CLANG_FORMAT" "$path" | diff --unchanged-line-format= --new-line-format= \
		--old-line-format="check-format: $path:%dn: clang-format has this line otherwise
" "$path" -
done
if [ -n "$wrong" ]; then
	echo "check-format: this mends them: clang-format -i" $wrong
	exit 1
fi
# Whatever else it says.
cat "$faults"
[ ! -s "$faults" ] || exit 1
[ $# -gt 0 ] || echo "check-format: clang-format $version changes no source"
