#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check-man.sh - compares the manual pages with the public headers and with
# the symbol map, so that none of the three can change alone:
#
#   calls     every declared call has a page man/CALL.3, every name in a
#             page's NAME and SYNOPSIS is declared, alias pages lead home,
#             nabc(7) lists them all
#   words     every NC_ name in a page is in a header, every one of a header in
#             a page; every page is installed
#   map       each library's map exports what its headers declare
#   device    nabc(4) has the names and structures of the kernel module's header,
#             and the module's parameters, all of them and no others
#   strict    each public header compiles alone by the standard, without extensions,
#             and as C++ where there is a compiler for it
#   code      every SYNOPSIS compiles after its headers, every structure
#             shown is the header's, every example that is a file compiles
#   open      build-aux/man shows each alias page, where there is a man(1)
#   lint      mandoc (or groff, where mandoc is missing) has nothing to say
#   width     no line is longer than 80 columns, where there is mandoc
#
# Environment: srcdir, the top of the sources (default: above this script);
# CC (default: cc); CXX (default: c++); GLIB_CFLAGS (default: pkg-config's).
# Exit status: 0 good, 1 not, 77 no formatter to lint with.

export LC_ALL=C
srcdir=${srcdir:-$(dirname "$0")/..}
cc=${CC:-cc}
cxx=${CXX:-c++}
man=$srcdir/man
folders="libnabc/include libnabc-glib"
headers=$(for folder in $folders; do ls "$srcdir/$folder"/nabc*.h; done)
shim=$srcdir/kernel-shim

tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM

# In the place where it is installed.
mkdir -p "$tmp/include/linux" && cp "$shim/nabc-uapi.h" "$tmp/include/linux/nabc.h" || exit 1
includes="-I$srcdir/libnabc/include -I$srcdir/libnabc-glib -I$tmp/include
	${GLIB_CFLAGS-$(pkg-config --cflags glib-2.0)}"
flags="-fsyntax-only -Wall -Wextra -Werror -D_GNU_SOURCE $includes"

# complain WHAT HOW-TO-MEND; counted in a file because loops run in subshells.
complain()
{
	echo "$1"
	echo "    to mend: $2"
	echo >>"$tmp/faults"
}

# --- readers: each prints the content of one kind of file ------------------

# C text without comments and preprocessor lines.
strip_c()
{
	awk '{
		line = $0
		out = ""
		while (line != "") {
			if (inside) {
				end = index(line, "*/")
				if (!end)
					break
				line = substr(line, end + 2)
				inside = 0
				continue
			}
			start = index(line, "/*")
			if (!start) {
				out = out line
				break
			}
			out = out substr(line, 1, start - 1) " "
			line = substr(line, start + 2)
			inside = 1
		}
		if (directive || out ~ /^[ \t]*#/)
			directive = out ~ /\\$/
		else
			print out
	}' "$@"
}

declared_names()
{
	# What is inline is in the header alone.
	strip_c "$@" | awk '!/ inline / {
		while (match($0, /NC_[A-Za-z0-9_]+[ \t]*\(/)) {
			name = substr($0, RSTART, RLENGTH - 1)
			sub(/[ \t]+$/, "", name)
			print name
			$0 = substr($0, RSTART + RLENGTH)
		}
	}' | sort -u
}

exported_names()
{
	strip_c "$1" | awk '
		{ sub(/.*global:/, "global: ") }
		/global:/ { global = 1; sub(/global:/, "") }
		/local:/ { global = 0 }
		global { gsub(/[;{}]/, " "); for (i = 1; i <= NF; i++) print $i }' | sort -u
}

# Names in a page's NAME section.
named()
{
	awk '/^\.Sh / { name = $2 == "NAME" } name && $1 == ".Nm" { print $2 }' "$1" | sort -u
}

# The SYNOPSIS of a page as C.
synopsis()
{
	awk '
		# Splits a macro line into words; quotes keep blanks in one.
		function words(line,    n, word)
		{
			n = 0
			sub(/^\.[A-Za-z]+[ \t]*/, "", line)
			while (line != "") {
				if (line ~ /^"/) {
					line = substr(line, 2)
					match(line, /"|$/)
				} else {
					match(line, /[ \t]|$/)
				}
				word = substr(line, 1, RSTART - 1)
				line = substr(line, RSTART + 1)
				sub(/^[ \t]+/, "", line)
				w[++n] = word
			}
			return n
		}
		function rest(n, from,    i, text)
		{
			for (i = from; i <= n; i++)
				text = text (i > from ? ", " : "") w[i]
			return text
		}
		/^\.Sh / { inside = $2 == "SYNOPSIS"; next }
		!inside { next }
		/^\.In / { print "#include <" $2 ">" }
		/^\.Ft / {
			type = $0
			sub(/^\.Ft[ \t]+/, "", type)
			gsub(/"/, "", type)
		}
		/^\.Fn / { n = words($0); print type " " w[1] "(" rest(n, 2) ");"; type = "" }
		/^\.Fo / { words($0); call = w[1]; list = "" }
		/^\.Fa / { n = words($0); list = list (list == "" ? "" : ", ") rest(n, 1) }
		/^\.Fc/ { print type " " call "(" list ");"; type = "" }' "$1"
}

# roff escapes that displays use, back to characters.
unescape()
{
	sed -e "s/\\\\(aq/'/g" -e 's/\\-/-/g' -e 's/\\&//g' -e 's/\\e/\\/g'
}

# Structures, each on a line of its own with blanks made single.
structures()
{
	strip_c "$@" | awk '
		/^struct (NC|nabc)_[a-z_]+ *\{/ { inside = 1; text = "" }
		inside { text = text " " $0 }
		inside && /^\}/ {
			inside = 0
			gsub(/[ \t]+/, " ", text)
			print text
		}' | sort
}

# Writes each display that begins with #include to PREFIX-N.c.
examples()
{
	unescape <"$1" | awk -v prefix="$2" '
		/^\.Bd / { inside = 1; first = 1; next }
		/^\.Ed/ { inside = 0; if (file != "") close(file); file = "" }
		inside && first { first = 0; if (/^#include/) file = prefix "-" ++n ".c" }
		inside && file != "" { print >file }'
}

compile()
{
	$cc $flags "$1" >"$tmp/out" 2>&1 && return
	sed 's/^/    /' "$tmp/out"
	complain "$2" "$3"
}

# --- strict ---------------------------------------------------------------

# No feature macro: what the headers need, they have by themselves.
strict="-fsyntax-only -pedantic -Wall -Wextra -Werror $includes"
for header in $headers; do
	name=${header##*/}
	echo "#include <$name>" >"$tmp/strict.c"
	echo "typedef int not_empty;" >>"$tmp/strict.c"
	for standard in c99 c11; do
		$cc -std=$standard $strict "$tmp/strict.c" >"$tmp/out" 2>&1 && continue
		sed 's/^/    /' "$tmp/out"
		complain "$name does not compile with -std=$standard -pedantic" \
			"use types and syntax of the standard alone"
	done
	command -v "$cxx" >/dev/null || continue
	for standard in c++11 c++20; do
		$cxx -std=$standard -x c++ $strict "$tmp/strict.c" >"$tmp/out" 2>&1 && continue
		sed 's/^/    /' "$tmp/out"
		complain "$name does not compile with -std=$standard" \
			"use what C and C++ have in common"
	done
done

# Each structure with an initialiser, as C++ fills it: a template, which needs no library.
{
	for header in $headers; do
		echo "#include <${header##*/}>"
	done
	echo "template <typename type> static int wrong()"
	echo "{"
	echo "	type all = NC_defaults<type>(), none = type();"
	echo "	none.size = sizeof(none);"
	echo "	return all.size != sizeof(type) || __builtin_memcmp(&all, &none, sizeof(all));"
	echo "}"
	echo "int main()"
	echo "{"
	sed -n 's/^#define NC_[A-Z_]*_INIT(\.\.\.) NC_INIT(struct \(NC_[a-z_]*\), .*/	if (wrong<struct \1>()) return 1;/p' \
		$headers
	echo "	return 0;"
	echo "}"
} >"$tmp/defaults.cc"
grep -q 'wrong<struct NC_cache_options>' "$tmp/defaults.cc" ||
	complain "no structure with an initialiser is found" "check the pattern in this script"
for standard in c++11 c++20; do
	command -v "$cxx" >/dev/null || break
	$cxx -std=$standard -Wpedantic -Wall -Wextra -Werror $includes -o "$tmp/defaults" \
		"$tmp/defaults.cc" >"$tmp/out" 2>&1 && "$tmp/defaults" && continue
	sed 's/^/    /' "$tmp/out"
	complain "NC_defaults() does not work with -std=$standard" "see nabc.h"
done

# --- calls ---------------------------------------------------------------

declared_names $headers >"$tmp/declared"
[ -s "$tmp/declared" ] || complain "no call is declared in $headers" "check srcdir"
structures $headers "$shim/nabc-uapi.h" >"$tmp/structures"

is_declared() { grep -qx "$1" "$tmp/declared"; }
is_alias() { [ "$(sed -n '/^\.[a-zA-Z]/{p;q;}' "$1" | cut -c1-4)" = ".so " ]; }

while read -r name; do
	[ -f "$man/$name.3" ] && continue
	complain "$name is declared, but man/$name.3 is missing" \
		"write the page, or one that only says .so man3/OTHER.3"
done <"$tmp/declared"

for page in "$man"/*.3; do
	[ -f "$page" ] || continue
	file=man/${page##*/}
	own=${page##*/}
	own=${own%.3}
	if is_alias "$page"; then
		target=$(sed -n 's/^\.so man3\/\(.*\)$/\1/p' "$page")
		printf '.\\" SPDX-License-Identifier: MIT\n.so man3/%s\n' "$target" >"$tmp/alias"
		cmp -s "$page" "$tmp/alias" ||
			complain "$file: not an alias page as they should be" \
				"two lines: the SPDX comment, and .so man3/OTHER.3"
		if [ ! -f "$man/$target" ] || is_alias "$man/$target"; then
			complain "$file: leads to '$target', which is no page" "name the page itself"
		elif ! named "$man/$target" | grep -qx "$own"; then
			complain "$file: leads to man/$target, whose NAME has no $own" \
				"add .Nm $own there, or remove the alias"
		fi
		continue
	fi
	named "$page" >"$tmp/named"
	synopsis "$page" >"$tmp/$own.c"
	declared_names "$tmp/$own.c" >"$tmp/shown"
	grep -qx "$own" "$tmp/named" ||
		complain "$file: its NAME has no $own" "rename the file or add .Nm $own"
	for name in $(cat "$tmp/named" "$tmp/shown" | sort -u); do
		is_declared "$name" ||
			complain "$file: $name is not declared in the headers" \
				"declare it, or remove it from NAME and SYNOPSIS"
		grep -qx "$name" "$tmp/named" ||
			complain "$file: $name is in SYNOPSIS but not in NAME" "add .Nm $name"
		grep -qx "$name" "$tmp/shown" ||
			complain "$file: $name is in NAME but not in SYNOPSIS" "add its prototype"
	done
	compile "$tmp/$own.c" "$file: the SYNOPSIS does not agree with the headers" \
		"make its .In, .Ft, .Fn, .Fo and .Fa those of the header"
done

while read -r name; do
	grep -q "^\.Xr $name 3" "$man/nabc.7" ||
		complain "man/nabc.7 does not list $name" "add .Xr $name 3 to All calls"
done <"$tmp/declared"

# --- words ---------------------------------------------------------------

# One a line, a page's title left out; NC_SEND_ stands for all that begin so.
names_in() { sed '/^\.Dt /d' "$@" | grep -oE '\<NC_[A-Za-z0-9_]+' | sort -u; }

names_in $headers >"$tmp/in-headers"
for page in "$man"/*.[1-9]; do
	[ -f "$page" ] || continue
	grep -q "^[^#]*man/${page##*/}\>" "$man/local.mk" ||
		complain "man/${page##*/} is not installed" "add it to man/local.mk"
	unescape <"$page" >"$tmp/plain"
	for name in $(names_in "$tmp/plain" | comm -23 - "$tmp/in-headers"); do
		case $name in
		*_) grep -q "^$name" "$tmp/in-headers" && continue ;;
		esac
		complain "man/${page##*/}: no header has $name" "correct the name, or declare it"
	done
done
cat "$man"/*.[1-9] | unescape | names_in >"$tmp/in-pages"
for name in $(comm -23 "$tmp/in-headers" "$tmp/in-pages"); do
	case $name in
	*_) continue ;;
	esac
	complain "$name is in a header, but in no page" "tell of it where it belongs"
done

# --- map -----------------------------------------------------------------

for folder in $folders; do
	part=${folder%%/*}
	map=$part/$part.map
	if [ ! -f "$srcdir/$map" ]; then
		complain "$map is missing" "write it: every NC_ call in its global: section"
		continue
	fi
	declared_names "$srcdir/$folder"/nabc*.h >"$tmp/own"
	exported_names "$srcdir/$map" >"$tmp/exported"
	for name in $(comm -23 "$tmp/own" "$tmp/exported"); do
		complain "$name is declared, but $map does not export it" \
			"add '$name;' to the global: section"
	done
	# A pattern must not be expanded to file names here.
	comm -13 "$tmp/own" "$tmp/exported" | while read -r name; do
		complain "$map exports $name, which no public header of $folder declares" \
			"remove it from the map, or declare it"
	done
done

# --- device --------------------------------------------------------------

# agree FILE FILE WHAT: both are sorted lists, of the module and of the page.
agree()
{
	for name in $(comm -23 "$1" "$2"); do
		complain "man/nabc.4 has no $3 $name" "tell of it, as kernel-shim/ has it"
	done
	for name in $(comm -13 "$1" "$2"); do
		complain "man/nabc.4: kernel-shim/ has no $3 $name" "correct the name"
	done
}

# Without macros that only form other names.
awk '/^#define NABC_/ { print $2 }' "$shim/nabc-uapi.h" |
	grep -v -e '(' -e '^NABC_IOC_MAGIC$' | sort -u >"$tmp/module"
unescape <"$man/nabc.4" | grep -oE '\<NABC_[A-Z0-9_]*[A-Z0-9]\>' | sort -u >"$tmp/page"
agree "$tmp/module" "$tmp/page" name

structures "$shim/nabc-uapi.h" | awk '{ print $2 }' | sort -u >"$tmp/module"
unescape <"$man/nabc.4" >"$tmp/plain"
structures "$tmp/plain" | awk '{ print $2 }' | sort -u >"$tmp/page"
agree "$tmp/module" "$tmp/page" structure

sed -n 's/^module_param(\([a-z_]*\),.*/\1/p' "$shim"/*.c | sort -u >"$tmp/module"
awk '/^\.Sh / { inside = $0 == ".Sh MODULE PARAMETERS" }
	inside && /^\.It Va / { print $3 }' "$man/nabc.4" | sort -u >"$tmp/page"
agree "$tmp/module" "$tmp/page" parameter

# --- code ----------------------------------------------------------------

for page in "$man"/*.[1-9]; do
	[ -f "$page" ] || continue
	file=man/${page##*/}
	unescape <"$page" >"$tmp/plain"
	structures "$tmp/plain" | while read -r text; do
		grep -qxF " $text" "$tmp/structures" ||
			complain "$file: not the header's structure: $text" "copy its fields from the header"
	done
	examples "$page" "$tmp/example-${page##*/}"
done
for example in "$tmp"/example-*.c; do
	[ -f "$example" ] || continue
	page=${example#"$tmp"/example-}
	compile "$example" "man/${page%-*}: example ${page##*-} does not compile" "correct the example"
done

# --- open ----------------------------------------------------------------

aliases=$(for page in "$man"/*.[1-9]; do
	is_alias "$page" && basename "${page%.*}"
done)
if command -v man >/dev/null 2>&1; then
	MANPAGER=cat "$srcdir/build-aux/man" $aliases >"$tmp/shown" 2>"$tmp/said"
	sed 's/^/    /' "$tmp/said"
	shown=$(grep -c '^NAME$' "$tmp/shown")
	if [ -s "$tmp/said" ] || [ "$shown" -ne "$(echo "$aliases" | wc -l)" ]; then
		complain "man: build-aux/man shows $shown of the alias pages" "see man(1), option -M"
	fi
fi

# --- lint ----------------------------------------------------------------

if command -v mandoc >/dev/null 2>&1; then
	lint() { mandoc -T lint -W warning "$1"; }
elif command -v groff >/dev/null 2>&1; then
	lint() { groff -ww -mandoc -Tutf8 "$1" 2>&1 >/dev/null; }
else
	lint() { :; }
	unlinted=yes
fi
for page in "$man"/*.[1-9]; do
	[ -f "$page" ] || continue
	# An alias was checked above; mandoc warns about any .so.
	is_alias "$page" && continue
	said=$(lint "$page" 2>&1)
	[ -z "$said" ] && continue
	echo "$said" | sed 's/^/    /'
	complain "man/${page##*/}: the formatter complains" "see mdoc(7)"
done

# --- width ---------------------------------------------------------------

if command -v mandoc >/dev/null 2>&1; then
	for page in "$man"/*.[1-9]; do
		[ -f "$page" ] && ! is_alias "$page" || continue
		mandoc -T ascii -O width=78 "$page" 2>/dev/null | sed "s/.$(printf '\b')//g" |
			awk 'length > 80' >"$tmp/out"
		[ -s "$tmp/out" ] || continue
		sed 's/^/    /' "$tmp/out"
		complain "man/${page##*/}: a terminal of 80 columns breaks these lines" "shorten them"
	done
fi

if [ -s "$tmp/faults" ]; then
	echo "check-man: $(wc -l <"$tmp/faults") faults"
	exit 1
fi
if [ -n "$unlinted" ]; then
	echo "check-man: neither mandoc nor groff is installed; pages are not linted"
	exit 77
fi
echo "check-man: $(wc -l <"$tmp/declared") calls, map and pages agree"
