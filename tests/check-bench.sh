#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check-bench.sh - checks that each experiment of bench/ runs; measures nothing.
#
# Environment: srcdir, builddir, the tops of sources and build.
# Exit status: 0 good, 1 not.

srcdir=$(cd "${srcdir:-$(dirname "$0")/..}" && pwd) || exit 1
builddir=$(cd "${builddir:-$srcdir/build}" && pwd) || exit 1
cd "$srcdir" || exit 1
results=$builddir/bench/results
rm -rf "$results"
bench/bench all --quick --runs 1 --build "$builddir" --results "$results"
status=$?
bench/bench sanity --results "$results" && exit $status
