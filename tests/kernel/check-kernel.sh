#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check-kernel.sh - builds nabc.ko for Debian 12's kernels and tests it in guests of
# QEMU with full emulation, so that any user can run it and the machine's own kernel
# is never touched.
#
# A guest succeeds if its exit status and its last line say so, and its kernel
# reported no error.
# Arguments: programs by name (test-calls), instead of all of them.
# Environment: srcdir and builddir, the tops of sources and build; CC; KERNELS,
# words of "6.1 6.12"; FUZZ_SECONDS, how long a guest's test-fuzz runs (60),
# and FUZZ_SEED, what it begins with (the time; in the log); TORTURE_SECONDS,
# how long a guest's test-torture-tls runs (16), TORTURE_SEED, TORTURE_IO and
# TORTURE_SPOIL, which it describes;
# NABC_KERNEL_CACHE, where fetched kernels are kept ($builddir/kernels);
# NABC_NO_SKIP=1, so that what is missing is a failure.
# Exit status: 0 good, 1 not, 77 when QEMU, the tools or the kernels are missing.

me=check-kernel
srcdir=$(cd "${srcdir:-$(dirname "$0")/../..}" && pwd) || exit 1
builddir=$(cd "${builddir:-$srcdir/build}" && pwd) || exit 1
here=$srcdir/tests/kernel
kept=${NABC_KERNEL_CACHE:-$builddir/kernels}
# Of its own for each choice of kernels, so that two of them can be tested beside each other.
work=$builddir/tests/kernel/guests${KERNELS:+-$(echo "$KERNELS" | tr ' ' -)}
CC=${CC:-cc}
PATH=$PATH:/usr/sbin:/sbin

missing()
{
	echo "$me: skipped: $*"
	[ -z "$NABC_NO_SKIP" ] || exit 1
	exit 77
}

fail()
{
	echo "$me: $*"
	exit 1
}

wants="qemu-system-x86_64=qemu-system-x86 busybox=busybox-static cpio=cpio curl=curl depmod=kmod
	ip=iproute2 tc=iproute2 xz=xz-utils gcc-12=gcc-12"
for pair in $wants; do
	command -v "${pair%=*}" >/dev/null ||
		missing "no ${pair%=*}; on Debian: apt-get install ${pair#*=}"
done
# The dynamic busybox needs a loader, which does not exist yet.
ldd "$(command -v busybox)" >/dev/null 2>&1 &&
	missing "busybox is not linked statically; on Debian: apt-get install busybox-static"

if [ $# = 0 ]; then
	for source in "$here"/test-*.c "$here"/test-*.sh; do
		name=${source##*/}
		set -- "$@" "${name%.*}"
	done
fi
tests=$(echo "$*" | tr ' ' ',')

# Those that use libnabc, compiled from the sources: a build may contain only the shared library.
of_library="test-card test-card-limits test-library test-worker"

# build_library TO
build_library()
{
	mkdir -p "$1" || return
	for source in "$srcdir"/libnabc/*/*.c; do
		object=$(basename "$source" .c)
		$CC -std=gnu11 -O2 -g0 -Wall -Wextra -Werror -D_GNU_SOURCE -pthread \
			-I"$srcdir/libnabc/include" -I"$srcdir/libnabc" -I"$srcdir/kernel-shim" \
			-c -o "$1/$object.o" "$source" ||
			return
	done
	rm -f "$1/libnabc.a" && ar rcs "$1/libnabc.a" "$1"/*.o
}

# build_tests TO PROGRAM...: scripts as they are; what is in C is linked statically.
build_tests()
{
	to=$1
	shift
	mkdir -p "$to" || return
	# Without quotes: CC may be more than one word.
	for name in "$@"; do
		if [ -f "$here/$name.sh" ]; then
			cp "$here/$name.sh" "$to/$name" || return
			continue
		fi
		also=
		case " $of_library " in
		*" $name "*)
			also="-I$srcdir/libnabc/include $here/library.c $here/card.c $work/libnabc/libnabc.a -luring"
			[ -e "$work/libnabc/libnabc.a" ] || build_library "$work/libnabc" || return
			;;
		esac
		$CC -std=gnu11 -O2 -g0 -Wall -Wextra -Werror -D_GNU_SOURCE -static -pthread \
			-o "$to/$name" "$here/$name.c" "$here/guest.c" "$here/device.c" \
			$also -I"$srcdir/kernel-shim" || return
	done
}

# build_program TO ARGUMENT...: those that are not linked statically.
build_program()
{
	to=$1
	shift
	$CC -std=gnu11 -O2 -g0 -Wall -Wextra -Werror -D_GNU_SOURCE -pthread \
		-I"$srcdir/libnabc/include" -I"$srcdir/bench/load" -o "$work/$to" "$@" || return
	clients="$clients $work/$to:/bin/$to"
}

# build_clients: for test-tls and test-torture-tls, and what else the latter needs.
build_clients()
{
	build_program tls-client "$here/tls-client.c" -lssl -lcrypto || return
	case ",$tests," in
	*,test-torture-tls,*) ;;
	*) return 0 ;;
	esac
	[ -e "$work/libnabc/libnabc.a" ] || build_library "$work/libnabc" || return
	from=$srcdir/tests/torture
	build_program torture-client "$from/client.c" "$from/client-tls.c" "$from/check.c" \
		"$from/parts.c" "$srcdir/bench/load/client-answer.c" -lssl -lcrypto &&
		build_program torture-files "$from/files.c" &&
		build_program pages "$from/pages.c" "$work/libnabc/libnabc.a" -luring
}

# All debug features of Debian's kernels: red zones and poison around every slab
# object, its last user, poison in free pages, guard pages, and checked copies to
# and from user memory.
debug="slub_debug=FZPU page_poison=1 kfence.sample_interval=5 hardened_usercopy=on"

# Messages of a kernel that has found an error.
wrong='BUG|WARNING:|WARN_ON|Oops|Bad page|Bad rss|bad pmd|refcount_t|general protection|page fault for|Call Trace|stack-protector|pagealloc:|KFENCE|KASAN|leak|list_(add|del) corruption|Redzone|Poison overwritten|Objects remaining|scheduling while atomic|hung_task|unregister_netdevice|Out of memory'

judge()
{
	tr -d '\r' <"$2" >"$2.text" && mv "$2.text" "$2"
	if grep -nE "$wrong" "$2"; then
		echo "$me: $3: its kernel complains (above)"
		return 1
	fi
	[ "$1" = 33 ] || {
		echo "$me: $3: exit status $1, not 33"
		return 1
	}
	grep -qx "guest: $4 programs good, 0 wrong" "$2" || {
		echo "$me: $3: no last line that says all is good"
		return 1
	}
}

modules="veth sch_netem tls xfrm_user esp4 esp6 gcm ctr ghash-generic sha512_generic sha3_generic jitterentropy_rng drbg
	seqiv echainiv authenc crypto_null chacha_generic poly1305_generic chacha20poly1305
	8021q bridge ipip sit e1000e"

# Two cards on one hub, for test-card and test-card-limits.
cards="-netdev hubport,hubid=0,id=here -device e1000e,netdev=here,romfile=
	-netdev hubport,hubid=0,id=there -device e1000e,netdev=there,romfile="

# Programs of the project, for test-sweet, test-tls and test-torture-tls.
programs="sweet/sweet nabcctl/nabcctl cgi-examples/generate"
for program in $programs; do
	[ -x "$builddir/$program" ] || fail "no $builddir/$program; make it first"
done

mkdir -p "$work" "$kept" || exit 1
rm -rf "$work"/*.log "$work/libnabc"
build_tests "$work/tests" "$@" >"$work/tests.log" 2>&1 || {
	cat "$work/tests.log"
	fail "the tests do not build"
}
clients=
case ",$tests," in
*,test-tls,* | *,test-torture-tls,*)
	build_clients >"$work/tests.log" 2>&1 || {
		cat "$work/tests.log"
		fail "the clients do not build"
	}
	;;
esac

status=0
for series in ${KERNELS:-6.1 6.12}; do
	"$here/fetch-kernel.sh" "$series" "$kept/$series" >"$work/$series-fetch.log" 2>&1
	case $? in
	0) ;;
	77) missing "$(tail -n 1 "$work/$series-fetch.log")" ;;
	*)
		cat "$work/$series-fetch.log"
		fail "Linux $series cannot be unpacked"
		;;
	esac
	"$here/build-module.sh" "$srcdir" "$kept/$series" "$work/$series" \
		>"$work/$series-module.log" 2>&1 || {
		cat "$work/$series-module.log"
		fail "nabc.ko does not build for Linux $series"
	}
	if grep -i warning "$work/$series-module.log"; then
		fail "warnings where nabc.ko is built for Linux $series"
	fi
	files="$here/init:/init $work/$series/nabc.ko:/nabc.ko"
	files="$files $(command -v ip):/sbin/ip $(command -v tc):/sbin/tc $(command -v curl):/bin/curl"
	for program in $programs; do
		files="$files $builddir/$program:/bin/${program##*/}"
	done
	files="$files $clients $here/server.sh:/tests/server.sh"
	for name in "$@"; do
		files="$files $work/tests/$name:/tests/$name"
	done
	# Without quotes: this is a list of words.
	"$here/guest-image.sh" "$kept/$series" "$work/$series.cpio" "$modules" $files \
		>"$work/$series-image.log" 2>&1 || {
		cat "$work/$series-image.log"
		fail "no initial file system for Linux $series"
	}
	log=$work/$series.log
	began=$(date +%s)
	GUEST_OPTIONS=$cards GUEST_SECONDS=$((1300 + ${TORTURE_SECONDS:-0})) \
		"$here/run-guest.sh" "$kept/$series" "$work/$series.cpio" \
		TESTS="$tests" TEST_SECONDS="$((480 + ${TORTURE_SECONDS:-0}))" \
		FUZZ_SECONDS="${FUZZ_SECONDS:-60}" FUZZ_SEED="${FUZZ_SEED:-$(date +%s)}" \
		TORTURE_SECONDS="${TORTURE_SECONDS:-16}" TORTURE_IO="$TORTURE_IO" \
		TORTURE_SEED="${TORTURE_SEED:-$(date +%s)}" TORTURE_SPOIL="$TORTURE_SPOIL" \
		$debug >"$log" 2>&1
	result=$?
	if judge $result "$log" "Linux $series" $#; then
		grep -E '^(PASS|FAIL|guest:) ' "$log"
		echo "$me: Linux $(cat "$kept/$series/release"): $# programs good," \
			"$(($(date +%s) - began)) s"
	else
		tail -n 60 "$log"
		echo "$me: Linux $(cat "$kept/$series/release"): FAILED, see $log"
		status=1
	fi
done
exit $status
