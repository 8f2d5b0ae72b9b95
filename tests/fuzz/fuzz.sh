#!/bin/sh
# SPDX-License-Identifier: MIT
#
# fuzz.sh - runs fuzz targets for $FUZZ_SECONDS each (60), $FUZZ_BESIDE of them
# beside each other (as many as there are processors).
#
# Usage: fuzz.sh PROGRAM...    targets that were built with a fuzzer
#        fuzz.sh --build       builds them with clang in $builddir/fuzzing first
#        fuzz.sh --one PROGRAM is what it runs itself by
#
# What a target finds worth keeping stays in $builddir/tests/fuzz/found/NAME, so
# that the next run continues from there; inputs that fail are in tests/fuzz/faults.
#
# Environment: srcdir, builddir: the top of the sources and of the build;
# FUZZ_SECONDS, FUZZ_BESIDE; FUZZ_ONLY: names of targets (default: all); FUZZ_OPTIONS: more
# options of the fuzzer; NABC_NO_SKIP=1: that clang is missing is a failure.
# Exit status: 0 good, or skipped as clang is missing; 1 not.

srcdir=${srcdir:-$(dirname "$0")/../..}
builddir=${builddir:-.}
seconds=${FUZZ_SECONDS:-60}

if [ "$1" = --build ]; then
	if ! command -v clang >/dev/null 2>&1; then
		echo "fuzz: skipped: clang is missing (on Debian: apt-get install clang libclang-rt-dev)"
		[ -z "$NABC_NO_SKIP" ]
		exit
	fi
	srcdir=$(cd "$srcdir" && pwd) || exit 1
	. "$srcdir/build-aux/steps.sh"
	use_ccache "$srcdir"
	mkdir -p "$builddir/fuzzing" && cd "$builddir/fuzzing" || exit 1
	[ -f Makefile ] ||
		"$srcdir/configure" -q --enable-fuzzing --enable-werror CC=clang >configure.log ||
		exit 1
	exec ${MAKE:-make} -s fuzz
fi

# Some kernels give addresses more room than clang's sanitizers can take.
calm=
! setarch -R true 2>/dev/null || calm="setarch -R"
export UBSAN_OPTIONS=print_stacktrace=1

found=$builddir/tests/fuzz/found faults=$builddir/tests/fuzz/faults
mkdir -p "$found" "$faults"

# The name of a target's program, or nothing if it is not asked for.
wanted()
{
	name=${1##*/fuzz-}
	case " ${FUZZ_ONLY:-$name} " in
	*" $name "*) echo "$name" ;;
	esac
}

executions()
{
	sed -n 's/^stat::number_of_executed_units: //p' "$faults/$1.log"
}

fuzz()
{
	name=$(wanted "$1")
	[ -n "$name" ] || return 0
	log=$faults/$name.log
	# Two opinions are of the same inputs.
	of=${name%-differential}
	dictionary=$srcdir/tests/fuzz/dictionary/$of
	mkdir -p "$found/$name"
	# Without quotes: options are a list of words.
	$calm "$builddir/$1" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 \
		-print_final_stats=1 -artifact_prefix="$faults/$name-" \
		$([ -f "$dictionary" ] && echo "-dict=$dictionary") $FUZZ_OPTIONS \
		"$found/$name" "$srcdir/tests/fuzz/corpus/$of" >"$log" 2>&1 </dev/null
	result=$?
	ran=$(executions "$name")
	edges=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)
	if [ $result = 0 ]; then
		echo "fuzz: $name: ${ran:-0} executions, ${edges:-0} edges"
	else
		# At once, so that no other target's words come in between.
		echo "$(tail -n 60 "$log")
fuzz: $name: FAILED after ${ran:-0} executions, see $log"
		return 1
	fi
}

if [ "$1" = --one ]; then
	fuzz "$2"
	exit
fi
printf '%s\n' "$@" | xargs -P "${FUZZ_BESIDE:-$(nproc)}" -n 1 sh "$0" --one
status=$?
targets=0 all=0
for program; do
	name=$(wanted "$program")
	[ -n "$name" ] || continue
	ran=$(executions "$name")
	targets=$((targets + 1))
	all=$((all + ${ran:-0}))
done
echo "fuzz: $targets targets, $all executions, $seconds s each"
[ $status = 0 ]
