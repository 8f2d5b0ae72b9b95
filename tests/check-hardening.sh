#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check-hardening.sh - checks the built files for measures that make a defect harder
# to exploit: each one that configure has found, and on each machine at least the
# first five.
#
# Environment: builddir, the top of the build (default: .); HARDENING, what
# configure has found.
# Exit status: 0 good, 1 not.

export LC_ALL=C
builddir=${builddir:-.}
faults=0

fault()
{
	echo "$1: $2"
	faults=1
}

# has FILE WHAT: returns whether the measure is visible in the file.
has()
{
	case $2 in
	pie) readelf -hW "$1" | grep -q 'Type: *DYN' ;;
	relro) readelf -lW "$1" | grep -q GNU_RELRO && readelf -dW "$1" | grep -q 'NOW' ;;
	noexecstack) readelf -lW "$1" | grep -q 'GNU_STACK .* RW  *0x' ;;
	stack-protector) readelf -sW --dyn-syms "$1" | grep -q __stack_chk_fail ;;
	fortify) readelf -sW --dyn-syms "$1" | grep -q '_chk@' ;;
	# Each page of a large frame is touched when it is allocated.
	stack-clash) objdump -d "$1" | grep -q 'or[lq]* *\$0x0,(%rsp)' || ! is_x86 "$1" ;;
	# The note that all code is marked is lost if the C library's start files have none.
	cf-protection)
		objdump -d "$1" | grep -EA1 '<(main|NC_[a-z_]*|FCGX_[A-Za-z_]*)(@@[A-Z0-9._]*)?>:' |
			grep -q 'endbr64' || ! is_x86 "$1"
		;;
	*) false ;;
	esac
}

is_x86()
{
	readelf -hW "$1" | grep -q 'X86-64'
}

for file in sweet/sweet nabcctl/nabcctl libnabc/libnabc.so libnabc-fcgi/libnabc-fcgi.so \
	libnabc-glib/libnabc-glib.so; do
	built=$builddir/$file
	hidden=$builddir/$(dirname "$file")/.libs/$(basename "$file")
	[ ! -e "$hidden" ] || built=$hidden
	if ! readelf -h "$built" >/dev/null 2>&1; then
		fault "$file" "is no program or library"
		continue
	fi
	for what in $(printf '%s\n' pie relro noexecstack stack-protector fortify $HARDENING |
		sort -u); do
		case $file:$what in
		# It has no buffer, no large frame, and no call to check.
		libnabc-glib/*:stack-protector | libnabc-glib/*:fortify | libnabc-glib/*:stack-clash)
			continue
			;;
		# It has no large frame.
		libnabc-fcgi/*:stack-clash) continue ;;
		esac
		has "$built" "$what" || fault "$file" "lacks $what"
	done
	! readelf -dW "$built" | grep -q TEXTREL || fault "$file" "has relocations in its code"
done
exit $faults
