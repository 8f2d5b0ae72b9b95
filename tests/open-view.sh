#!/bin/sh
# SPDX-License-Identifier: MIT
#
# open-view.sh - runs a command that other users can follow into the top of the tree.
#
# Tests run programs of the tree as other users, who cannot enter a clone in /root.  If root runs
# this there, the command has mounts of its own, in which each closed folder above the top is a
# readable one with the same contents.  Nothing changes for others.
#
# Usage: open-view.sh COMMAND...
# Exit status: the command's.

top=$(cd "$(dirname "$0")/.." && pwd -P) || exit 1

# closed: the uppermost folder above the top that other users cannot enter.
closed()
{
	folder=$top found=
	while [ "$folder" != / ]; do
		# Of "drwx-----x" the last letter.
		case $(stat -c %A -- "$folder") in
		*x | *t) ;;
		*) found=$folder ;;
		esac
		folder=$(dirname -- "$folder")
	done
	[ -z "$found" ] || printf '%s\n' "$found"
}

# opened FOLDER: puts a folder in its place that has what it has.
opened()
{
	# What is written there, such as what ccache keeps, must not end with the view.
	mkdir -p "$1/.cache" && exec 3<"$1" && mount -t tmpfs -o mode=755 open-view "$1" || return
	for entry in /proc/self/fd/3/* /proc/self/fd/3/.[!.]* /proc/self/fd/3/..?*; do
		name=${entry##*/}
		if [ -L "$entry" ]; then
			cp -P "$entry" "$1/$name"
		elif [ -d "$entry" ]; then
			mkdir "$1/$name" && mount --no-canonicalize --rbind "$entry" "$1/$name"
		elif [ -e "$entry" ]; then
			: >"$1/$name" && mount --no-canonicalize --bind "$entry" "$1/$name"
		fi || return
	done
	exec 3<&-
}

if [ "$1" = --inside ]; then
	shift
	while folder=$(closed) && [ -n "$folder" ]; do
		opened "$folder" || {
			echo "open-view.sh: $folder cannot be shown to other users" >&2
			break
		}
	done
	# The working directory is still the one behind the view.
	cd "$top" && exec "$@"
	exit 1
fi
if [ "$(id -u)" -eq 0 ] && [ -n "$(closed)" ] && unshare --mount true 2>/dev/null; then
	exec unshare --mount -- "$0" --inside "$@"
fi
exec "$@"
