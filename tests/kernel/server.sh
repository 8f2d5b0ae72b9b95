# SPDX-License-Identifier: MIT
#
# server.sh - for tests in the guest that are scripts and start SWEET, which include it: waiting, and
# what the server says.  They set $server (its pid), $log, and $clear (its port without TLS), and have
# die().

# await WHY COMMAND...: until the command is true, at most a minute.
await()
{
	local why=$1 i=0

	shift
	until "$@"; do
		[ $i -lt 600 ] || die "$why"
		i=$((i + 1))
		usleep 100000
	done
}

listening()
{
	kill -0 $server 2>/dev/null || die "the server ended"
	grep -q 'sweet: listening on' $log
}

# The number NAME of a group of the status.
status()
{
	curl --silent --show-error --max-time 60 http://127.0.0.1:$clear/.sweet/status |
		tr -d ' \n' | sed -n "s/.*\"$1\":{\([^{}]*\).*/\1/p" | tr ',' '\n' |
		sed -n "s/^\"$2\"://p"
}
