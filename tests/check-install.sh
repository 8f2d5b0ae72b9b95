#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check-install.sh - the installed library: with pkg-config, README's programs and
# the examples compile; it exports only NC_ names, and make uninstall removes
# everything.
#
# Environment: srcdir, builddir, the tops of sources and build, which is
# installed in $builddir/installed.
# Exit status: 0 good, 1 not.

srcdir=$(cd "${srcdir:-$(dirname "$0")/..}" && pwd) || exit 1
builddir=$(cd "${builddir:-$srcdir/build}" && pwd) || exit 1
# A copy: other tests use the existing one.
to=$builddir/uninstalled
rm -rf "$to" && cp -a "$builddir/installed" "$to" || exit 1
prefix=$to$(sed -n 's/^prefix = //p' "$builddir/Makefile")

die()
{
	echo "check-install: $*"
	exit 1
}

# The installed examples compile as described in their first comments.
check_examples()
{
	# GLib stays where it is, so a sysroot is unsuitable.
	mkdir -p "$prefix/moved" || return
	for name in nabc nabc-glib; do
		sed "s|^prefix=.*|prefix=$prefix|" "$prefix/lib/pkgconfig/$name.pc" \
			>"$prefix/moved/$name.pc" || return
	done
	for name in epoll-server uring-server glib-server; do
		packages=$(sed -n 's/^ \*.* --libs \([a-z -]*\))$/\1/p' \
			"$prefix/share/doc/nabc/examples/$name.c")
		[ -n "$packages" ] || return
		# Without quotes: these are lists of words.
		cc -Wall -Wextra -Werror -o "$prefix/moved/example" \
			"$prefix/share/doc/nabc/examples/$name.c" \
			$(PKG_CONFIG_PATH=$prefix/moved pkg-config --cflags --libs $packages) || return
	done
	rm -r "$prefix/moved"
}

PREFIX=$prefix PKG_CONFIG_SYSROOT_DIR=$to PKG_CONFIG_PATH=$prefix/lib/pkgconfig \
	"$srcdir/tests/check-readme.sh" || die "README's programs fail with what was installed"
check_examples || die "the installed examples do not compile"
nm -D --defined-only "$prefix/lib/libnabc.so" | grep -q ' T NC_alloc@@' ||
	die "libnabc.so does not export NC_alloc"
for library in libnabc libnabc-glib; do
	strangers=$(nm -D --defined-only "$prefix/lib/$library.so" |
		grep -v ' NC_[a-z_]*@@NABC_[A-Z0-9._]*$' | grep -v ' A NABC_[A-Z0-9._]*$')
	[ -z "$strangers" ] || die "$library.so exports more than NC_ names: $strangers"
done
make -C "$builddir" uninstall DESTDIR="$to" || die "make uninstall fails"
left=$(find "$to" ! -type d -print)
[ -z "$left" ] || die "make uninstall leaves: $left"
rm -rf "$to"
echo "check-install: what is installed is found, works, and goes"
