#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check-blocking.sh - what each call can wait for stands in four places, which must agree:
#
#   page     the sentence "Blocking (see nabc(7)): ..." of each page of section 3, which names
#            every call of the page once
#   headers  every declared call has a page with such a sentence
#   guide    the table "What can block" of doc/embedding.md names the calls that wait
#   tests    the rows CALL(NC_call, WHAT, ...) of tests/unit/libnabc/test-blocking*.c make each call
#            of libnabc while its peer is stopped; UNTESTED() says why that is not possible.  A call
#            that can wait may also have a row NEVER, for the cases in which it does not
#
# Environment: srcdir, the top of the sources (default: above this script).
# Exit status: 0 good, 1 not.

export LC_ALL=C
srcdir=${srcdir:-$(dirname "$0")/..}
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
: >"$tmp/faults"

# One "CALL WHAT" line for each thing that a call of the page can wait for; WHAT is "never", too.
sentence()
{
	awk -v file="man/${1##*/}" '
	function fault(text) { print file ": " text >"/dev/stderr" }
	# Ends a clause: all its calls wait for the same.
	function end(text,    i, n, word) {
		if (text !~ /^(never waits?|can wait for (the|an?) [a-z]+( or (the|an?) [a-z]+)*)$/)
			fault("Blocking: not of the form: " text)
		sub(/^can wait for /, "", text)
		if (text ~ /^never/)
			text = "the never"
		n = split(text, word, / or /)
		for (i = 1; i <= n; i++) {
			sub(/^(the|an?) /, "", word[i])
			for (call = 1; call <= calls; call++)
				print name[call], word[i]
		}
		calls = 0
	}
	$0 == "Blocking" { inside = 1; sentences++; next }
	!inside { next }
	/^\.Pq see Xr nabc 7 :$/ || $0 == "and" { next }
	/^\.Fn / { name[++calls] = $2; next }
	/[;.]$/ && calls { inside = /;$/; end(substr($0, 1, length - 1)); next }
	{ fault("Blocking: unexpected: " $0); inside = 0 }
	END { if (sentences != 1) fault(sentences + 0 " sentences begin with Blocking, instead of 1") }
	' "$1" 2>>"$tmp/faults"
}

# declared FOLDER...: what the headers there declare.
declared()
{
	(cd "$srcdir" && for folder; do cat "$folder"/nabc*.h; done) | sed -e 's|/\*.*\*/||' |
		awk '/^ ?\*|^\/\*|^[ \t]+\*|^#|typedef|^template/ { next }
		{
			while (match($0, /NC_[a-z0-9_]+\(/)) {
				print substr($0, RSTART, RLENGTH - 1)
				$0 = substr($0, RSTART + RLENGTH)
			}
		}' | sort -u
}

# The calls of the guide's table, as those of pages; a row begins with what is waited for.
guide()
{
	awk -F'|' '
	/^## / { inside = $0 == "## What can block" }
	inside && $2 ~ /^ (the|an?) [a-z]+ $/ {
		split($2, word, " ")
		while (match($3, /NC_[a-z_]+\(3\)/)) {
			print substr($3, RSTART, RLENGTH - 3), word[2]
			$3 = substr($3, RSTART + RLENGTH)
		}
	}' "$srcdir/doc/embedding.md" | sort -u
}

# Rows of tests, as above.
rows()
{
	cat "$srcdir"/tests/unit/libnabc/test-blocking*.c |
		grep -oE '(CALL|UNTESTED)\(NC_[a-z_]+, [A-Z]+' |
		sed -E 's/^[A-Z]+\((NC_[a-z_]+), ([A-Z]+)/\1 \L\2/' | sort -u
}

# differ FILE FILE TEXT TEXT: the lines of one alone, with what to say of each.
differ()
{
	comm -23 "$1" "$2" | sed "s|^|$3: |" >>"$tmp/faults"
	comm -13 "$1" "$2" | sed "s|^|$4: |" >>"$tmp/faults"
}

for page in "$srcdir"/man/*.3; do
	grep -q '^\.so ' "$page" && continue
	sentence "$page" >"$tmp/page"
	awk '{ print $1 }' "$tmp/page" | sort -u >"$tmp/called"
	awk '/^\.Sh / { name = $2 == "NAME" } name && $1 == ".Nm" { print $2 }' "$page" | sort -u >"$tmp/named"
	differ "$tmp/named" "$tmp/called" "man/${page##*/}: Blocking does not name" \
		"man/${page##*/}: Blocking names a call of another page"
	cat "$tmp/page" >>"$tmp/all"
done
sort "$tmp/all" | uniq -d | sed 's/^/twice in the pages: /' >>"$tmp/faults"
sort -u "$tmp/all" >"$tmp/pages"

declared libnabc/include libnabc-glib >"$tmp/declared"
[ -s "$tmp/declared" ] || echo "no call is declared: check srcdir" >>"$tmp/faults"
awk '{ print $1 }' "$tmp/pages" | sort -u >"$tmp/called"
differ "$tmp/declared" "$tmp/called" "declared, without a sentence in a page" \
	"in a page, but not declared"

guide >"$tmp/guide"
grep -v ' never$' "$tmp/pages" >"$tmp/waiting"
differ "$tmp/waiting" "$tmp/guide" "in a page, but not in the table of doc/embedding.md" \
	"in the table of doc/embedding.md, but in no page"

# The small library for GLib has no call that waits.
declared libnabc/include >"$tmp/tested"
rows >"$tmp/rows"
join "$tmp/tested" "$tmp/pages" | sort >"$tmp/claimed"
grep -v ' never$' "$tmp/rows" | awk '{ print $1 }' | sort -u >"$tmp/can-wait"
{ grep -v ' never$' "$tmp/rows"; grep ' never$' "$tmp/rows" | join -v 1 - "$tmp/can-wait"; } |
	sort >"$tmp/shown"
differ "$tmp/claimed" "$tmp/shown" "in a page, without a row in tests/unit/libnabc/test-blocking*.c" \
	"in a row of tests/unit/libnabc/test-blocking*.c, but in no page"

if [ -s "$tmp/faults" ]; then
	sed 's/^/check-blocking: /' "$tmp/faults"
	exit 1
fi
echo "check-blocking: pages, table and tests agree on $(wc -l <"$tmp/called") calls"
