#!/bin/sh
# SPDX-License-Identifier: MIT
#
# test-torture-tls.sh - SWEET over TLS in the guest, whose kernel encrypts, while honest and hostile
# clients (tests/torture/client.c) come over a bad link and from this machine, files are replaced,
# workers are killed and the configuration is reloaded.  Bodies are compared byte for byte;
# afterwards the server has no connection and no descriptor more than before.
#
# Environment: TORTURE_SECONDS, for all event loops together (16); TORTURE_IO, one of these instead
# of both; TORTURE_SEED (the time); TORTURE_SPOIL=1 spoils files, and the test must fail.

here=10.9.0.1 port=8443 clear=8080
work=/tmp/torture
site=$work/site
log=$work/log
said=$work/said
server=
beside=
round=0
loops=${TORTURE_IO:-uring epoll}
seconds=$((${TORTURE_SECONDS:-16} / $(echo $loops | wc -w)))
seed=${TORTURE_SEED:-$(date +%s)}
RANDOM=$seed

stop()
{
	[ -z "$beside$server" ] || kill -9 $beside $server 2>/dev/null
	/sbin/tc qdisc del dev near root 2>/dev/null
	rm -rf $work
}

trap stop EXIT
trap 'exit 1' HUP INT TERM

. /tests/server.sh

die()
{
	echo "test-torture-tls: $* (TORTURE_SEED=$seed)"
	cat $said*
	netstat -tn | grep :$port
	grep -v 'TLS' $log | tail -n 40
	exit 1
}

# Replaced as a whole; every second time the workers are different ones.
configure()
{
	cat >$work/fresh <<CONF
[sweet]
listen=$here:$port,tls;127.0.0.1:$port,tls;127.0.0.1:$clear
root=$site
certificate=$work/pem
key=$work/pem
cache-size=16M
cache-socket=$work/cache
io=$1
log-level=info
[pool pages]
command=/bin/pages
processes=3
memory=8M
environment=ROUND=$((round / 2))
[path /pages]
pool=pages
[pool cgi]
protocol=cgi
folder=$work/cgi
[path /cgi]
pool=cgi
CONF
	mv $work/fresh $work/conf
}

serve()
{
	: >$log
	configure $1
	sweet --config $work/conf >$log 2>&1 &
	server=$!
	await "no server" listening
}

# The client of this status alone.
unused()
{
	[ "$(status connections open)" = 1 ]
}

descriptors()
{
	ls /proc/$server/fd 2>/dev/null | wc -l
}

# Some are closed after a while: those of files that are in no cache any more.
as_before()
{
	[ $(descriptors) -le $before ]
}

# client SECONDS NAME ADDRESS PREFIX...: in the background.
client()
{
	local seconds=$1 name=$2 address=$3

	shift 3
	"$@" torture-client --tls --dying --board $work/board --kinds ssssrrrroklpcg \
		--connections 10 --slow 60 --seconds $seconds --seed $RANDOM $address $port \
		>$said-$name 2>&1 &
}

# streams SECONDS: files by HTTP/2, at once; every other time the client leaves them.
streams()
{
	local end=$(($(date +%s) + $1)) limit

	for number in 4 7 10 14 17; do
		echo "url = https://$here:$port/s/$number"
		echo "output = $work/stream-$number"
	done >$work/streams
	# Once at least.
	while :; do
		limit=0.$((RANDOM % 8 + 1))
		/sbin/ip netns exec peer curl --http2 --insecure --silent --no-progress-meter --parallel \
			--max-time $limit --config $work/streams
		/sbin/ip netns exec peer curl --http2 --insecure --no-progress-meter --parallel \
			--fail --max-time 300 --config $work/streams || return
		for number in 4 7 10 14 17; do
			cmp $work/stream-$number $site/s/$number || return
		done
		echo "streams"
		[ $(date +%s) -lt $end ] || return 0
	done
}

# Kills workers and reloads the configuration until it is ended.
disturb()
{
	local pid i=0

	while usleep $((RANDOM % 2000 * 1000)); do
		i=$((i + 1))
		pid=$(pidof pages | tr ' ' '\n' | shuf -n 1)
		[ -z "$pid" ] || kill -9 $pid 2>/dev/null && echo killed
		[ $((i % 3)) = 0 ] || continue
		round=$((round + 1))
		configure $1
		kill -HUP $server && echo reloaded
	done >$work/disturbed
}

# clients SECONDS: all kinds, for that long.
clients()
{
	local pids name

	client $1 far $here /sbin/ip netns exec peer
	pids=$!
	client $1 near 127.0.0.1
	pids="$pids $!"
	streams $1 >$said-streams 2>&1 &
	pids="$pids $!"
	beside="$beside $pids"
	for pid in $pids; do
		wait $pid || die "a client ends with $?"
	done
	[ -s $said-streams ] || die "no streams"
}

# figures IO
figures()
{
	local all=$(status tls handshakes) kernel=$(status tls kernel)

	echo "$1: $all handshakes, of which the kernel encrypts $kernel;" \
		"$(grep -c killed $work/disturbed) workers killed;" \
		"$(grep -c 'reloaded ' $log) reloads; $(grep -c streams $said-streams) times streams;" \
		"$(descriptors) descriptors, $before before"
	grep -h '^client: ' $said-near $said-far
	grep -q 'responses=0 ' $said-near $said-far && die "a client without responses"
	[ "$kernel" -gt 0 ] || die "the kernel did not encrypt"
	[ $((kernel * 10)) -ge $((all * 9)) ] || die "the kernel encrypted too seldom"
	[ $(grep -c 'reloaded ' $log) -gt 0 ] || die "no reload"
}

# A word in the middle of each file that has one there.
spoil()
{
	local file

	for file in $site/s/*; do
		[ $(stat -c %s $file) -ge 4000 ] || continue
		printf 'spoiled!' | dd of=$file bs=8 seek=400 conv=notrunc 2>/dev/null
	done
}

# torture IO
torture()
{
	serve $1
	# What comes with the first requests is there before.
	clients 2
	await "connections stay before" unused
	before=$(descriptors)
	disturb $1 &
	beside="$beside $!"
	disturber=$!
	[ "$TORTURE_SPOIL" != 1 ] || spoil
	clients $seconds
	kill $disturber
	wait $disturber 2>/dev/null
	kill -0 $server 2>/dev/null || die "the server ended"
	await "connections stay: $(status connections open)" unused
	await "descriptors stay: $(descriptors), not $before" as_before
	figures $1
	grep -iE 'abort|assert|sanitizer|bug' $log && die "the log"
	kill -TERM $server
	wait $server || die "the server ended with $?"
	server=
}

mkdir -p $site $work/cgi || exit 1
echo "test-torture-tls: TORTURE_SEED=$seed, $seconds s for each of $loops"
tls-client certificate $work/pem || exit 1
cp /bin/pages $work/cgi || exit 1
torture-files $site $work/board 2 $seed >$work/files &
beside=$!
await "no files" grep -q ready $work/files
# What the server sends is lost, repeated and reordered.
/sbin/tc qdisc add dev near root netem delay 2ms 1ms loss 1% duplicate 1% reorder 5% || exit 1
for io in $loops; do
	torture $io
	echo "ok $io"
done
