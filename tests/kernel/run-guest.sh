#!/bin/sh
# SPDX-License-Identifier: MIT
#
# run-guest.sh - runs a kernel and an initial file system in QEMU, emulated, so
# that it needs neither rights nor KVM, and shows what comes from its console.
#
# Arguments: a folder of fetch-kernel.sh's, the image, words for the kernel's
# command line (NAME=VALUE reaches /init's environment).
# Environment: GUEST_SECONDS, after which it is ended (1300); GUEST_CPUS (2);
# GUEST_MODEL, of these (max); GUEST_MEMORY, MiB (512); GUEST_OPTIONS, more of
# QEMU's.
# Exit status: QEMU's: what the guest writes to port 0xf4, doubled and 1 added,
# so 33 is a guest that wrote 16; 0 is one that died; 124 one that hung.

kernel=$1 image=$2
shift 2
# A panic reboots, which ends QEMU; no watchdog, for emulation is slow.
exec timeout -k 5 "${GUEST_SECONDS:-1300}" qemu-system-x86_64 \
	-accel tcg -cpu "${GUEST_MODEL:-max}" -smp "${GUEST_CPUS:-2}" -m "${GUEST_MEMORY:-512}" \
	-nodefaults -no-user-config -display none -serial stdio -no-reboot \
	-device isa-debug-exit,iobase=0xf4,iosize=4 \
	-kernel "$kernel/image" -initrd "$image" $GUEST_OPTIONS \
	-append "console=ttyS0 no_timer_check rdinit=/init loglevel=5 panic=-1 oops=panic nowatchdog $*" </dev/null
