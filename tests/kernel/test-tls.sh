#!/bin/sh
# SPDX-License-Identifier: MIT
#
# test-tls.sh - SWEET over TLS in the guest, whose kernel encrypts (the module tls), and where it
# does not: files and pages to tls-client, which compares each byte and looks for clear text in
# what came; changes of keys; the end of a connection.

here=10.9.0.1 port=8443 clear=8080
work=/tmp/tls
site=$work/site
log=$work/log
said=$work/said
server=
sizes="1 16384 100000 3000000"
# More than the cache takes, so that it is sent from the kernel's page cache.
huge=5000000
large=/$huge=$site/$huge
aes128=TLS_AES_128_GCM_SHA256
aes256=TLS_AES_256_GCM_SHA384
chacha=TLS_CHACHA20_POLY1305_SHA256
# Of TLS 1.2.
old=ECDHE-ECDSA-AES256-GCM-SHA384

trap '[ -z "$server" ] || kill -9 $server 2>/dev/null; rm -rf $work' EXIT
trap 'exit 1' HUP INT TERM

die()
{
	echo "test-tls: $*"
	cat $said
	tail -n 40 $log
	exit 1
}

tested()
{
	echo "ok $*"
}

# The expected page of generate.c.
page()
{
	yes 'abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ-' | head -c "$1"
}

# serve OPTION...: starts the server.
serve()
{
	local i=0

	sweet --listen $here:$port,tls --listen 127.0.0.1:$port,tls --listen 127.0.0.1:$clear \
		--listen $here:$clear --certificate $work/pem --key $work/pem --root $site \
		--cache-size 16M --worker /generate=/bin/generate --cgi /cgi=$work/cgi \
		--log-level debug "$@" >$log 2>&1 &
	server=$!
	until grep -q 'sweet: listening on' $log; do
		kill -0 $server 2>/dev/null || die "the server ended: $*"
		[ $i -lt 600 ] || die "no server: $*"
		i=$((i + 1))
		usleep 100000
	done
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

# fetch ARGUMENT...: tls-client's, at the other end of the devices.
fetch()
{
	peer tls-client -a $here "$@" >$said 2>&1 || die "tls-client $* ends with $?"
}

# The number NAME of a group of the status.
status()
{
	curl --silent --show-error --max-time 60 http://127.0.0.1:$clear/.sweet/status |
		tr -d ' \n' | sed -n "s/.*\"$1\":{\([^{}]*\).*/\1/p" | tr ',' '\n' |
		sed -n "s/^\"$2\"://p"
}

# by_kernel ARGUMENT...: fetches; whether the kernel encrypted is as $wanted says (1: it did).
by_kernel()
{
	local before=$(status tls kernel)

	fetch "$@"
	[ $(($(status tls kernel) - before)) = $wanted ] || die "tls.kernel is not $wanted more: $*"
}

bytes()
{
	# From the second time on the files are in the cache.
	by_kernel -c $aes128 $port $files $large $files
	for cipher in $aes256 $chacha; do
		by_kernel -c $cipher $port $files
	done
	by_kernel -2 -c $old $port $files $large
	by_kernel -e -s $port $large
	# On this machine the library chooses other methods.
	tls-client $port $files $large >$said 2>&1 || die "on this machine: $?"
}

# ends OPTION...: the last bytes, close_notify and the end, also if the client has closed its end.
ends()
{
	for options in -e "-2 -e" -h; do
		by_kernel $options "$@" $port /1=$site/1
		by_kernel $options "$@" $port /100000=$site/100000
		by_kernel $options "$@" $port "/generate?size=100000=$work/page"
	done
	# Here the end of the connection is that of the body.
	by_kernel -0 "$@" $port /cgi/slow=$work/slow-page
}

# Of a record that is larger than the socket's memory, a part always waits in the kernel's TLS.
with_little_memory()
{
	local memory=$(cat /proc/sys/net/ipv4/tcp_wmem)

	echo 4096 4096 4096 >/proc/sys/net/ipv4/tcp_wmem
	serve "$@"
	ends
	ends -s
	end
	echo $memory >/proc/sys/net/ipv4/tcp_wmem
}

# A client changes its key; then it wants the server to change its own, too.
keys()
{
	by_kernel -k $port $files
	if [ $wanted = 1 ]; then
		by_kernel -R $port $files
		grep -q 'wants a new key' $log || die "the log does not say why"
	else
		by_kernel -K $port $files
	fi
}

unloaded()
{
	rmmod tls 2>/dev/null
}

mkdir -p $site $work/cgi || exit 1
tls-client certificate $work/pem || exit 1
files=
head -c $huge /dev/urandom >$site/$huge
for size in $sizes; do
	head -c $size /dev/urandom >$site/$size
	files="$files /$size=$site/$size"
done
page 100000 >$work/page
files="$files /generate?size=100000=$work/page"
for i in 1 2 3; do
	page 40001
done >$work/slow-page
cat >$work/cgi/slow <<'CGI'
#!/bin/sh
printf 'Content-Type: text/plain\r\n\r\n'
for i in 1 2 3; do
	yes 'abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ-' | head -c 40001
	usleep 20000
done
CGI
chmod 755 $work/cgi/slow

for io in uring epoll; do
	wanted=1
	serve --io $io
	grep -q 'encrypted by the kernel' $log || die "the server does not use the kernel"
	bytes
	tested "bytes by $io"
	keys
	tested "keys by $io"
	# Others who use the same addresses lose nothing by the kernel's refusals.
	peer curl --silent --show-error --fail --max-time 60 --output $work/got \
		http://$here:$clear/3000000 || die "clear text ends with $?"
	cmp $work/got $site/3000000 || die "other bytes in clear text"
	end
	with_little_memory --io $io
	tested "ends by $io"
done

i=0
until unloaded; do
	[ $i -lt 100 ] || die "the module tls cannot be unloaded"
	i=$((i + 1))
	usleep 100000
done
wanted=0
for io in uring epoll; do
	serve --io $io
	grep -q 'has no module "tls"' $log || die "the server would use the kernel"
	bytes
	keys
	end
	with_little_memory --io $io
	tested "no module, by $io"
done
insmod /modules/*-tls.ko || die "the module tls does not load again"
