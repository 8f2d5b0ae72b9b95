#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check-configure.sh - each library that configure.ac names, missing, too old and too new: configure
# says which version it found, which it needs and what to do, and ends, or continues without what the
# library is for.
#
# Environment: srcdir, the top of the sources, where ./bootstrap ran; builddir, in whose folder
# configure/ it works.
# Exit status: 0 good, 1 not.

srcdir=$(cd "${srcdir:-$(dirname "$0")/..}" && pwd) || exit 1
builddir=$(cd "${builddir:-$srcdir/build}" && pwd) || exit 1
work=$builddir/configure
rm -rf "$work" && mkdir -p "$work/pc" && cd "$work" || exit 1

die()
{
	echo "check-configure: $*"
	exit 1
}

# A pkg-config that does not find the module $WITHOUT.
real=$(command -v "${PKG_CONFIG:-pkg-config}") || die "pkg-config is missing"
cat >pkg-config <<END
#!/bin/sh
case " \$* " in *" \${WITHOUT:-nothing} "*) exit 1 ;; esac
exec $real "\$@"
END
chmod +x pkg-config

# --no-create: what is wanted are the words.
configure()
{
	PKG_CONFIG=$work/pkg-config PKG_CONFIG_PATH=$work/pc CONFIG_SHELL=/bin/sh \
		/bin/sh "$srcdir/configure" --quiet --no-create --cache-file="$work/cache" >out 2>&1
}

# fake MODULE VERSION: it is there in this version.
fake()
{
	printf 'Name: %s\nDescription: a version that does not exist\nVersion: %s\n' "$1" "$2" >"pc/$1.pc"
}

# said STATUS WANTED TEXT: configure ended with STATUS, as WANTED says, and said TEXT.
said()
{
	if [ "$2" = REQUIRE ]; then
		[ "$1" -ne 0 ] || die "configure goes on though: $3"
	else
		[ "$1" -eq 0 ] || die "configure ends though it can go on: $3: $(tail -n 3 out)"
	fi
	grep -qF -- "$3" out || die "configure does not say \"$3\" but: $(tail -n 3 out)"
}

configure || die "configure fails with all that it needs: $(cat out)"
! grep -q WARNING out || die "this test wants each optional library: $(cat out)"

# KIND|MODULE|NAME|LEAST|NEXT|PACKAGE, from configure.ac.
sed -n "$(printf '%s' \
	's/^.*NABC_\(REQUIRE\|FIND\)(\[[A-Z0-9]*\], \[\([^]]*\)\], \[\([^]]*\)\], \[\([0-9.]*\)\], ' \
	'\[\([0-9.]*\)\], \[\([^]]*\)\]).*$/\1|\2|\3|\4|\5|\6/p')" "$srcdir/configure.ac" >modules
sed -n "$(printf '%s' \
	's/^.*NABC_CODING(\[[A-Z0-9]*\], \[\([^]]*\)\], \[[^]]*\], \[\([0-9.]*\)\], ' \
	'\[\([0-9.]*\)\], \[\([^]]*\)\]).*$/CODING|\1|\1|\2|\3|\4/p')" "$srcdir/configure.ac" >>modules
[ "$(wc -l <modules)" -ge 11 ] || die "only $(wc -l <modules) libraries found in configure.ac"
while IFS='|' read -r kind module name least next package; do
	status=0
	WITHOUT=$module configure || status=$?
	said $status $kind "$name $least or newer is missing; on Debian: apt-get install $package"
	for version in 0.0.1 "$next.0"; do
		fake "$module" $version
		status=0
		configure || status=$?
		case $version in
		0.0.1) said $status $kind "$name 0.0.1 is too old, $least or newer is needed" ;;
		*) said $status $kind "$name $version is too new, this nabc is for $least or newer" ;;
		esac
		rm "pc/$module.pc"
	done
done <modules || exit 1
cd "$builddir" && rm -rf "$work"
echo "check-configure: what is missing, too old or too new is named"
