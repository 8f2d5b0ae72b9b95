#!/bin/sh
# SPDX-License-Identifier: MIT
#
# test-tls.sh - SWEET over TLS in the guest, whose kernel encrypts (the module tls), and where it
# does not: files and pages to tls-client, which compares each byte and looks for clear text in
# what came; HTTP/2; changes of keys; the end of a connection.

here=10.9.0.1 port=8443 clear=8080
work=/tmp/tls
site=$work/site
log=$work/log
said=$work/said
server=
sizes="1 16384 100000"
big=/3000000=$site/3000000
# More than the cache takes, so that it is sent from the kernel's page cache.
huge=4300000
large=/$huge=$site/$huge
aes128=TLS_AES_128_GCM_SHA256
aes256=TLS_AES_256_GCM_SHA384
chacha=TLS_CHACHA20_POLY1305_SHA256
# Of TLS 1.2.
old=ECDHE-ECDSA-AES256-GCM-SHA384

trap '[ -z "$server" ] || kill -9 $server 2>/dev/null; rm -rf $work' EXIT
trap 'exit 1' HUP INT TERM

. /tests/server.sh

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
	# Else the line of the last server could be found.
	: >$log
	sweet --listen $here:$port,tls --listen 127.0.0.1:$port,tls --listen 127.0.0.1:$clear \
		--listen $here:$clear --certificate $work/pem --key $work/pem --root $site \
		--cache-size 16M --worker /generate=/bin/generate --cgi /cgi=$work/cgi \
		--log-level debug "$@" >$log 2>&1 &
	server=$!
	await "no server: $*" listening
}

# It completes pending work, and exits with success.
end()
{
	by_kernel
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

# Whether the kernel encrypted on all connections, or on none, as $wanted says.
by_kernel()
{
	local all=$(status tls handshakes) kernel=$(status tls kernel)

	[ "$all" -gt 0 ] || die "no handshakes"
	[ "$kernel" = $((wanted * all)) ] || die "of $all connections, the kernel encrypted on $kernel"
}

# bytes FILE...: these with each cipher, and others.
bytes()
{
	# The second time the files are in the cache.
	fetch -c $aes128 $port $files $large $files
	for options in "-c $aes128" "-c $aes256" "-c $chacha" "-2 -c $old"; do
		fetch $options $port $files "$@"
	done
	# On this machine the library chooses other methods.
	tls-client $port $files $big >$said 2>&1 || die "on this machine: $?"
}

# Files as streams of HTTP/2, at once.
http2()
{
	local names=$(echo 1 16384 100000 3000000 $huge)

	for name in $names; do
		echo "url = https://$here:$port/$name"
		echo "output = $work/stream-$name"
	done | peer curl --http2 --insecure --silent --show-error --max-time 120 --parallel \
		--write-out '%{http_version}\n' --config - >$said 2>$work/errors || die "HTTP/2 ends with $?"
	[ "$(sort -u $said)" = 2 ] || die "not all by HTTP/2"
	for name in $names; do
		cmp $work/stream-$name $site/$name || die "other bytes by HTTP/2"
		rm $work/stream-$name
	done
}

# ends OPTION...: the last bytes, close_notify and the end, also if the client has closed its end.
ends()
{
	for options in -e "-2 -e" -h; do
		fetch $options "$@" $port /100000=$site/100000
	done
	fetch -e "$@" $port "/generate?size=100000=$work/page"
	# Here the end of the connection is that of the body.
	fetch -0 "$@" $port /cgi/slow=$work/slow-page
}

# Of a record that is larger than the socket's memory, a part always waits in the kernel's TLS.
with_little_memory()
{
	local memory=$(cat /proc/sys/net/ipv4/tcp_wmem)

	echo 4096 8192 8192 >/proc/sys/net/ipv4/tcp_wmem
	serve "$@"
	ends
	ends -s
	end
	echo $memory >/proc/sys/net/ipv4/tcp_wmem
}

# A client changes its key; then it wants the server to change its own, too.
keys()
{
	fetch -k $port $files
	if [ $wanted = 1 ]; then
		fetch -R $port $files
		grep -q 'wants a new key' $log || die "the log does not say why"
	else
		fetch -K $port $files
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
head -c 3000000 /dev/urandom >$site/3000000
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
	# The loops do not know the cipher: large files with each are for one of them.
	if [ $io = uring ]; then
		bytes $big
	else
		bytes
	fi
	fetch -e -s $port $large
	http2
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

await "the module tls cannot be unloaded" unloaded
wanted=0
for io in uring epoll; do
	serve --io $io
	grep -q 'has no module "tls"' $log || die "the server would use the kernel"
	bytes
	http2
	keys
	end
	tested "no module, by $io"
done
with_little_memory
tested "ends without the module"
insmod /modules/*-tls.ko || die "the module tls does not load again"
