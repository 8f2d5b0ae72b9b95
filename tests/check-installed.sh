#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check-installed.sh - what is installed, by make or by a package, can be used: with
# pkg-config, README's programs and the examples compile; the libraries export only
# NC_ names.
#
# Environment: srcdir, the top of the sources (default: above this script); PREFIX,
# where it is installed (default: /usr); LIBRARIES, the folder of the libraries, and
# EXAMPLES, the folders of the examples (default: those of make install).  pkg-config
# finds the libraries (through PKG_CONFIG_PATH and the like); check-readme.sh runs first.
# Exit status: 0 good, 1 not, 77 without curl.

srcdir=$(cd "${srcdir:-$(dirname "$0")/..}" && pwd) || exit 1
PREFIX=${PREFIX:-/usr}
export srcdir PREFIX

die()
{
	echo "check-installed: $*"
	exit 1
}

folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM

"$srcdir/tests/check-readme.sh"
status=$?
[ $status = 0 ] || [ $status = 77 ] || die "README's programs fail with what was installed"

# The installed examples compile as described in their first comments.
for name in epoll-server uring-server glib-server; do
	example=
	for place in ${EXAMPLES:-"$PREFIX/share/doc/nabc/examples"}; do
		[ ! -f "$place/$name.c" ] || example=$place/$name.c
	done
	[ -n "$example" ] || die "the example $name.c is not installed"
	packages=$(sed -n 's/^ \*.* --libs \([a-z -]*\))$/\1/p' "$example")
	[ -n "$packages" ] || die "$example does not say how to compile it"
	# Without quotes: these are lists of words.
	${CC:-cc} -Wall -Wextra -Werror -o "$folder/example" "$example" \
		$(pkg-config --cflags --libs $packages) ||
		die "the example $example does not compile"
done

# So do a server, its worker and their client, with a Makefile.
for place in ${EXAMPLES:-"$PREFIX/share/doc/nabc/examples"}; do
	[ ! -d "$place/consumer" ] || cp -R "$place/consumer" "$folder" || exit 1
done
make -s -C "$folder/consumer" CC="${CC:-cc}" ||
	die "the example consumer is not installed, or does not compile"

libraries=${LIBRARIES:-$PREFIX/lib}
nm -D --defined-only "$libraries/libnabc.so" | grep -q ' T NC_alloc@@' ||
	die "libnabc.so does not export NC_alloc"
for library in libnabc libnabc-glib; do
	strangers=$(nm -D --defined-only "$libraries/$library.so" |
		grep -v ' NC_[a-z_]*@@NABC_[A-Z0-9._]*$' | grep -v ' A NABC_[A-Z0-9._]*$')
	[ -z "$strangers" ] || die "$library.so exports more than NC_ names: $strangers"
done
echo "check-installed: what is installed is found, and works"
exit $status
