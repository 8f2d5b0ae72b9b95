#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check-analysis.sh - gcc -fanalyzer and cppcheck over libraries and server; clang
# compiles them without a warning, as fuzzing and coverage need.
# tests/analysis-exceptions.txt must list each finding with the reason why it is no
# defect; and each listed one must still be found, otherwise the list would hide a
# new one.  Prints what is wrong, and the number of findings.
#
# Environment: srcdir, the top of the sources (default: above this script); CC
# (gcc); CLANG (clang); CPPCHECK (cppcheck); PKG_CONFIG (pkg-config).
# Exit status: 0 good, 1 not, 77 without cppcheck, clang or a gcc, or with other
# versions than the exceptions are recorded with: then only clang compiles.

export LC_ALL=C
cd "${srcdir:-$(dirname "$0")/..}" || exit 1
exceptions=$PWD/tests/analysis-exceptions.txt
compiler=${CC:-gcc}
cppcheck=${CPPCHECK:-cppcheck}
clang=${CLANG:-clang}
for tool in "$cppcheck" "$clang"; do
	command -v "$tool" >/dev/null || {
		echo "check-analysis: $tool is missing; on Debian: apt-get install cppcheck clang"
		exit 77
	}
done
# The exceptions are for this analyzer.
if $compiler --version | grep -q clang || ! $compiler -fanalyzer -E -x c /dev/null >/dev/null 2>&1; then
	echo "check-analysis: $compiler has no -fanalyzer; CC=gcc"
	exit 77
fi
versions="gcc $($compiler -dumpversion | cut -d. -f1), cppcheck $($cppcheck --version | cut -d' ' -f2)"
recorded=$(sed -n 's/.*recorded with: //p' "$exceptions")
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM
cpus=$(nproc)
packages=$(${PKG_CONFIG:-pkg-config} --cflags glib-2.0 liburing) || exit 1

# As lines "TOOL KIND FILE" followed by ":LINE: MESSAGE".
[ "$versions" != "$recorded" ] || $cppcheck -j "$cpus" -q --std=c11 --enable=warning,performance,portability -D_GNU_SOURCE \
	--library=gnu,posix -Ilibnabc/include -Ilibnabc -Isweet -Ikernel-shim \
	--template='cppcheck {id} {file}:{line}: {message}' libnabc libnabc-fcgi libnabc-glib nabcctl sweet \
	>"$folder/found" 2>&1 || exit 1

# Each source separately, as it is compiled.
flags="-std=gnu11 -D_GNU_SOURCE -DPACKAGE_VERSION=\"0\" -DPKGLIBDIR=\"/usr/lib/nabc\" $packages"
analyse="$compiler $flags -O1 -fanalyzer -c -o /dev/null"
[ "$versions" = "$recorded" ] || analyse=:
compile="$clang $flags -Wall -Wextra -Werror -fsyntax-only"
ls libnabc/*/*.c libnabc-fcgi/*.c libnabc-glib/*.c nabcctl/*.c sweet/*/*.c | xargs -P "$cpus" -I{} sh -c '
	case $1 in
	sweet/* | nabcctl/*) includes="-Isweet -Ilibnabc/include" ;;
	*) includes="-Ilibnabc/include -Ilibnabc -Ikernel-shim" ;;
	esac
	said=$4/$(echo "$1" | tr / -).said
	$2 $includes "$1" >"$said" 2>&1 && $3 $includes "$1" >>"$said" 2>&1 || : >"$4/failed"
	' sh {} "$analyse" "$compile" "$folder"
cat "$folder"/*.said >"$folder/said"
if [ -e "$folder/failed" ]; then
	grep -h 'error:' "$folder/said"
	echo "check-analysis: not all of it compiles"
	exit 1
fi
if [ "$versions" != "$recorded" ]; then
	echo "check-analysis: clang has no warning; the exceptions are for $recorded, not for $versions"
	exit 77
fi
sed -n 's/^\([^: ]*\):\([0-9]*\):[0-9]*: warning: \(.*\) \[-W\(analyzer-[a-z-]*\)\]$/gcc \4 \1:\2: \3/p' \
	"$folder/said" >>"$folder/found"

awk -v list="$exceptions" '
	FILENAME == list {
		if ($0 ~ /^[^# \t]/ && NF == 3)
			excepted[$1 " " $2 " " $3] = 1
		else if ($0 ~ /^[^# \t]/) {
			print list ": not TOOL KIND FILE: " $0
			bad = 1
		}
		next
	}
	{
		file = $3
		sub(/:.*/, "", file)
		for (i = 1; i <= 2; i++) {
			key = $1 " " $2 " " (i == 1 ? file : "*")
			if (key in excepted) {
				seen[key] = 1
				known++
				next
			}
		}
		print
		fresh++
	}
	END {
		for (key in excepted)
			if (!(key in seen)) {
				print "no longer found: " key
				bad = 1
			}
		printf "check-analysis: %d new findings, %d that are explained\n", fresh, known
		exit bad || fresh > 0
	}' "$exceptions" "$folder/found"
