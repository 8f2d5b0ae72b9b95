#!/bin/sh
# SPDX-License-Identifier: MIT
#
# test-sweet.sh - SWEET in the guest: files, parts of them and pages that workers
# make, to curl in the other network namespace, byte for byte; by which method
# they left; and what becomes of it all without leave to open the device, without
# memory for units, and without the module.

here4=10.9.0.1 here6='[fd09::1]' port=8080
work=/tmp/sweet
site=$work/site
log=$work/log
said=$work/said
server=
NABC_CACHE=$work/run/cache
export NABC_CACHE
small="0 1 4095 4096 10000"
large="32768 100000 262145 1048576"
huge=5242880

# An exit leaves no server that keeps the device open.
trap '[ -z "$server" ] || kill -9 $server 2>/dev/null; rm -rf $work' EXIT
trap 'exit 1' HUP INT TERM

. /tests/server.sh

die()
{
	echo "test-sweet: $*"
	cat $said $log
	exit 1
}

tested()
{
	echo "ok $*"
}

# start AS OPTION...: starts the server, as "root" or another user.
start()
{
	local as=$1
	shift

	# Else a line of the last server could be found.
	: >$log
	# exec, so that it is the server that ends.
	su -s /bin/sh "$as" -c "exec sweet --listen $here4:$port --listen $here6:$port \
		--listen 127.0.0.1:$port --root $site --cache-size 64M --cache-socket $NABC_CACHE \
		--worker /generate=/bin/generate $*" >$log 2>&1 &
	server=$!
}

serve()
{
	start "$@"
	await "no server: $*" listening
}

# refused AS OPTION...: the module was requested, and is unavailable; $told says why.
refused()
{
	start "$@"
	wait $server && die "a server that is not to start: $*"
	server=
	grep -q "send-method \"kernel\": the kernel module nabc is not used: /dev/nabc: $told" $log ||
		die "not refused for \"$told\": $*"
}

# It completes pending work, and exits with success.
end()
{
	kill -TERM $server
	wait $server || die "the server ended with $?"
	server=
}

peer()
{
	/sbin/ip netns exec peer "$@"
}

# get ARGUMENT...: curl's, at the other end of the devices.
get()
{
	# The progress meter of parallel transfers ignores --silent.
	peer curl --silent --show-error --fail --globoff --max-time 60 "$@" 2>$said ||
		die "curl $* ends with $?"
}

same()
{
	cmp "$1" "$2" || die "$3: other bytes"
}

# The expected page of generate.c.
page()
{
	yes 'abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ-' | head -c "$1"
}

# fetch_all URL HOW: each file and page twice, over one connection or, with --parallel, all at once.
fetch_all()
{
	rm -rf $work/got
	mkdir $work/got
	for round in 1 2; do
		for size in $small $large; do
			echo "url = $1/$size"
			echo "output = $work/got/file-$size-$round"
			echo "url = $1/generate?size=$size"
			echo "output = $work/got/page-$size-$round"
		done
	done >$work/urls
	get $2 --config $work/urls
	for round in 1 2; do
		for size in $small $large; do
			same $site/$size $work/got/file-$size-$round "$1/$size ($2)"
			same $work/page-$size $work/got/page-$size-$round "$1/generate?size=$size ($2)"
		done
	done
}

# fetch_parts URL: heads, and ranges, which begin and end where nothing else does; the largest file.
fetch_parts()
{
	get --output $work/part $1/$huge
	same $site/$huge $work/part "$1/$huge"
	for size in 0 10000 $huge; do
		get --head $1/$size | tr -d '\r' | grep -qx "Content-Length: $size" || die "HEAD $1/$size"
	done
	for range in 0-0 1-4096 4095-70000 1000001-1048575; do
		first=${range%-*} last=${range#*-}
		get --range $range --output $work/part $1/1048576
		tail -c +$((first + 1)) $site/1048576 | head -c $((last - first + 1)) >$work/wanted
		same $work/wanted $work/part "$1/1048576 $range"
	done
	get --range -70001 --output $work/part $1/$huge
	tail -c 70001 $site/$huge >$work/wanted
	same $work/wanted $work/part "$1/$huge -70001"
}

fetch()
{
	fetch_all "http://$here4:$port" --no-parallel
	fetch_all "http://$here6:$port" --parallel
	fetch_parts "http://$here4:$port"
	fetch_parts "http://$here6:$port"
}

# The value of a counter of the cache.
counter()
{
	nabcctl stat | sed -n "s/^$1  *//p"
}

# used BYTES: the module sent at least that many, and nothing in a unit had to be copied.
used()
{
	local bytes metric

	bytes=$(counter bytes.kernel)
	metric=$(curl --silent --show-error --max-time 60 http://127.0.0.1:$port/.sweet/metrics |
		sed -n 's/^sweet_transmit_bytes_total{method="kernel"} //p')
	[ "$(counter kernel)" = used ] || die "the module is $(counter kernel)"
	[ "$bytes" = "$metric" ] || die "nabcctl says $bytes bytes by the module, SWEET $metric"
	[ "$bytes" -ge $1 ] || die "$bytes bytes left by the module, not $1"
	[ "$(counter kernel_refused) $(counter kernel_copies)" = "0 0" ] ||
		die "units of the module were copied"
}

# unused WHY: the module was not used.
unused()
{
	[ "$(counter bytes.kernel)" = 0 ] || die "bytes left by the module"
	counter kernel | grep -q "^not used: $1" || die "the module is $(counter kernel)"
}

cat >/etc/passwd <<USERS
root:x:0:0:root:/:/bin/sh
web:x:1000:1000:may open the device:/:/bin/sh
other:x:1001:1001:may not:/:/bin/sh
USERS
cat >/etc/group <<GROUPS
root:x:0:
nabc:x:900:web
web:x:1000:
other:x:1001:
GROUPS
mkdir -p $site $work/run || exit 1
chmod 755 $work $site
chmod 1777 $work/run
head -c $huge /dev/urandom >$site/$huge
files=0 pages=0
for size in $small $large; do
	head -c $size /dev/urandom >$site/$size
	page $size >$work/page-$size
	# The library's minimum sizes, for its owner and for workers.
	[ $size -lt 8192 ] || files=$((files + size))
	[ $size -lt 49152 ] || pages=$((pages + size))
done

# Like the rule for udev.
allow()
{
	chgrp nabc /dev/nabc
}

allow
for io in uring epoll; do
	serve root --io $io --send-method kernel
	fetch
	# Two addresses, two rounds; files and pages.
	used $((2 * 2 * (files + pages)))
	end
	tested "files and pages by $io"
done

# The limit of an ordinary user, 8 MiB, is too small.
ulimit -l unlimited
serve root --user web --read-only on --send-method auto
fetch_all "http://$here6:$port" --parallel
used $((2 * (files + pages)))
tested "a server that gave up being root and writing"
rmmod nabc 2>/dev/null && die "the module is unloaded in use"
end

serve web
fetch_all "http://$here4:$port" --parallel
used $((2 * (files + pages)))
end
ulimit -l 1024
serve web --send-method kernel
fetch_all "http://$here4:$port" --parallel
[ "$(counter kernel)" = used ] && [ "$(counter kernel_memory)" -gt 0 ] ||
	die "1.4 MB of files are within RLIMIT_MEMLOCK of 1 MiB"
end
tested "a user of the device's group, with memory and without"

serve other
fetch_all "http://$here4:$port" --parallel
unused "/dev/nabc: Permission denied"
end
told="Permission denied" refused other --send-method kernel
tested "a user who may not open the device"

sending()
{
	[ "$(counter bytes.kernel)" -gt 0 ]
}

unloaded()
{
	rmmod nabc 2>/dev/null
}

# Its units end with it.
serve root
peer curl --silent --limit-rate 100K --output /dev/null http://$here4:$port/$huge &
await "no bytes leave" sending
kill -9 $server
wait $server 2>/dev/null
server=
rm $NABC_CACHE
await "the module cannot be unloaded after the server was killed" unloaded
tested "a server that is killed"

serve root
fetch_all "http://$here6:$port" --parallel
unused "/dev/nabc: No such file"
end
told="No such file" refused root --send-method kernel
insmod /nabc.ko || die "nabc.ko does not load again"
tested "no module"
