#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check-library.sh - configure --disable-sweet: the library alone builds on a
# system that has neither GLib nor crypt.h, and installs nothing of the server.
#
# Environment: srcdir, the top of the sources, where ./bootstrap ran; builddir,
# in whose folder library/ it is built.
# Exit status: 0 good, 1 not.

srcdir=$(cd "${srcdir:-$(dirname "$0")/..}" && pwd) || exit 1
builddir=$(cd "${builddir:-$srcdir/build}" && pwd) || exit 1
build=$builddir/library
rm -rf "$build" && mkdir -p "$build" && cd "$build" || exit 1

die()
{
	echo "check-library: $*"
	exit 1
}

# A pkg-config that does not find GLib.
real=$(command -v "${PKG_CONFIG:-pkg-config}") || die "pkg-config is missing"
cat >pkg-config <<END
#!/bin/sh
case "\$*" in *glib*) exit 1 ;; esac
exec $real "\$@"
END
chmod +x pkg-config
configure()
{
	PKG_CONFIG=$build/pkg-config ac_cv_header_crypt_h=no ac_cv_header_fcgiapp_h=no \
		"$srcdir/configure" --quiet --prefix=/usr/local --disable-static "$@" >out 2>&1
}

configure && die "the server can do without crypt.h and GLib?"
grep -q "crypt.h is missing" out || die "configure does not say what is missing: $(cat out)"
configure --disable-sweet --enable-werror || die "configure --disable-sweet fails: $(cat out)"
make -s -j"$(nproc)" >out 2>&1 || die "the library alone does not build: $(tail out)"
make -s install DESTDIR="$build/installed" >out 2>&1 || die "make install fails: $(tail out)"

cd installed/usr/local || exit 1
others=$(find . ! -type d ! -name 'libnabc.*' ! -name 'NC_*.3' ! -name 'nabc.[47]' \
	! -path './include/nabc*.h' ! -path ./lib/pkgconfig/nabc.pc ! -path './share/doc/nabc/*')
[ -z "$others" ] || die "installs more than the library:" $others
for file in include/nabc-glib.h share/man/man3/NC_source_new.3 share/doc/nabc/sweet.conf; do
	[ ! -e "$file" ] || die "installs $file"
done
echo '#include <nabc-worker.h>
int main(void) { return NC_cache_close(0) == 0; }' >"$build/user.c"
flags=$(PKG_CONFIG_SYSROOT_DIR=$build/installed PKG_CONFIG_PATH=lib/pkgconfig \
	"$build/pkg-config" --cflags --libs nabc) || die "pkg-config does not know nabc"
# Without quotes: a list of words.
cc -o "$build/user" "$build/user.c" $flags && LD_LIBRARY_PATH=lib "$build/user" ||
	die "a program with the installed library fails"
cd "$builddir" && rm -rf "$build"
echo "check-library: the library alone needs liburing, and installs itself alone"
