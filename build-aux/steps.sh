# SPDX-License-Identifier: MIT
# steps.sh - what quickstart and run-tests share: one line for each step, the
# tail of its log where it fails.  Sourced at the top of the tree; wants $me.

# For programs of tests and of a first look: a debugger finds lines, and it takes three quarters of
# the time of -g -O2.  (libnabc/local.mk keeps the types of the library, for check-abi.sh.)
QUICK_CFLAGS="-g1 -O2"
ROOM=200 # MiB that a build without tests takes, and what compilers write meanwhile

# What programs print is read, too, so in no other language.
export LC_ALL=C.UTF-8

BUILD_PACKAGES="gcc libc6-dev libcrypt-dev make autoconf automake libtool pkg-config liburing-dev libglib2.0-dev libssl-dev libnghttp2-dev libpcre2-dev libexpat1-dev libzstd-dev libbrotli-dev zlib1g-dev libcurl4-openssl-dev"

complain()
{
	echo "$me: $*" >&2
}

# step LOG TEXT COMMAND...: says TEXT and runs COMMAND, whose output goes to LOG.
step()
{
	log=$1
	echo "$me: $2"
	shift 2
	mkdir -p "$(dirname "$log")"
	("$@") >"$log" 2>&1 </dev/null && return
	tail -n 25 "$log" >&2
	complain "this failed: $*"
	complain "the whole log: $log"
	return 1
}

# ready MIB: whether the tree can be built where it is, with so much room.
ready()
{
	case $PWD in
	*[[:space:]]*)
		complain "make works in no folder with blanks in its path; move the tree: $PWD"
		return 1
		;;
	esac
	{ mkdir -p build && [ -w build ]; } 2>/dev/null || {
		complain "nothing can be written to $PWD; build in another folder: $PWD/configure && make (./bootstrap makes configure), or clone the tree"
		return 1
	}
	for place in "$PWD/build" "${TMPDIR:-/tmp}"; do
		room=$(df -Pk -- "$place" 2>/dev/null | awk 'NR == 2 { print int($4 / 1024) }')
		[ "${room:-0}" -ge "$1" ] || {
			complain "$place has ${room:-0} MiB left, and the build needs $1 MiB (TMPDIR chooses the folder of temporary files)"
			return 1
		}
	done
}

is_installed()
{
	dpkg-query -W -f '${db:Status-Status}\n' "$1" 2>/dev/null | grep -qx installed
}

# has_any A|B|...: whether one of these packages is installed.
has_any()
{
	for package in $(echo "$1" | tr '|' ' '); do
		! is_installed "$package" || return 0
	done
	return 1
}

# chosen A|B|... ...: prints of each the first one that the release has, by apt's lists.  "A|" is
# only wanted if the release has it.
chosen()
{
	for wanted in "$@"; do
		found=
		for package in $(echo "$wanted" | tr '|' ' '); do
			# Of a name that other packages only mention, apt-cache prints nothing.
			[ -n "$found" ] || [ -z "$(apt-cache show "$package" 2>/dev/null)" ] || found=$package
		done
		case $wanted in
		*'|') echo "$found" ;;
		*) echo "${found:-${wanted%%|*}}" ;;
		esac
	done
}

apt_install()
{
	# Lists that cannot be renewed may still be good enough; but where the archive is out of reach,
	# apt would try again for minutes, for each package.
	again=3
	apt-get -q -o APT::Update::Error-Mode=any update || again=0
	DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Acquire::Retries=$again install \
		--no-install-recommends $(chosen "$@")
}

# need PACKAGE...: installs those that are missing; without root only names them.  A|B: one of them.
need()
{
	# Elsewhere than on Debian configure tells what is missing.
	command -v dpkg-query >/dev/null || return 0
	lacking=
	for wanted in "$@"; do
		has_any "$wanted" || lacking="$lacking $wanted"
	done
	missing=$(echo $(chosen $lacking))
	[ -n "$missing" ] || return 0
	if [ "$(id -u)" -ne 0 ]; then
		complain "missing packages: $missing"
		complain "install them as root: apt-get install $missing"
		return 1
	fi
	step build/apt.log "installing $missing" apt_install $lacking && return
	complain "apt-get must reach an archive of /etc/apt; where it cannot, install by hand: $missing"
	return 1
}

# bootstrap: if it is due.
bootstrap()
{
	[ -f Makefile.in ] && [ configure -nt configure.ac ] ||
		step build/bootstrap.log bootstrapping ./bootstrap
}

# use_ccache TOP: from now on ccache's compilers, if it is there, stand before others: what was
# compiled before, in another clone, too, is not compiled again.
use_ccache()
{
	[ ! -d /usr/lib/ccache ] || PATH=/usr/lib/ccache:$PATH
	CCACHE_BASEDIR=$(cd "$1" && pwd) CCACHE_NOHASHDIR=1
	export CCACHE_BASEDIR CCACHE_NOHASHDIR
}

# build WHERE OPTION...: bootstraps, configures and makes $goals (all by default), each only if it
# is due.  The compiler is CC of the options, or of the environment.
# Without options whatever WHERE was configured for is good.
build()
{
	where=$1
	shift
	case " $*" in
	' ' | *' CC='*) ;;
	*) set -- "$@" ${CC:+"CC=$CC"} ;;
	esac
	bootstrap || return
	use_ccache "$PWD"
	if [ ! -f "$where/Makefile" ] ||
		{ [ $# -gt 0 ] && [ "$(cat "$where/options" 2>/dev/null)" != "$*" ]; }; then
		step "$where/configure.log" "configuring $where${*:+ $*}" \
			configure_in "$where" "$@" || return
		echo "$*" >"$where/options"
	fi
	step "$where/make.log" "building $where" make -C "$where" -j"$(nproc)" ${goals-}
}

# build_all WHERE OPTION...: like build, with all that tests run, and installed in WHERE/installed:
# libtool links anew to install, which must not happen while tests use what was linked.
build_all()
{
	build "$@" &&
		step "$where/make-check.log" "building the tests of $where" \
			make -C "$where" -j"$(nproc)" check TESTS= &&
		rm -rf "$where/installed" &&
		step "$where/make-install.log" "installing $where in $where/installed" \
			make -C "$where" install DESTDIR="$PWD/$where/installed"
}

# flags: what the objects of a build are compiled with, but for warnings.
flags()
{
	[ ! -f Makefile ] ||
		sed -n -e '/^CC = /p' -e '/^FCGI_LIBS = /p' \
			-e '/^[A-Z0-9_]*FLAGS = /{ s/ -Werror//g; p; }' Makefile
}

configure_in()
{
	cd "$1" || return
	shift
	before=$(flags)
	# As libtool's shell, dash takes half of bash's time.
	CONFIG_SHELL=/bin/sh /bin/sh ../configure "$@" || return
	[ -z "$before" ] || [ "$before" = "$(flags)" ] || make clean
}
