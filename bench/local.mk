# SPDX-License-Identifier: MIT
# Benchmarks are run from the source tree: bench/bench --help.
EXTRA_DIST += bench/README.md bench/bench bench/urls.lua bench/fcgi-generate.c \
	bench/lib/__init__.py bench/lib/experiments.py bench/lib/load.py bench/lib/process.py \
	bench/lib/report.py bench/lib/servers.py
