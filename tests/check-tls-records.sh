#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check-tls-records.sh - configure --disable-tls-records: the server has none of the sources of
# sweet/tls/record/, and OpenSSL makes all records, whatever the key tls-records says.
#
# Environment: srcdir, the top of the sources, where ./bootstrap ran; builddir, in whose folder
# tls-records/ it is built.
# Exit status: 0 good, 1 not, 77 without curl.

srcdir=$(cd "${srcdir:-$(dirname "$0")/..}" && pwd) || exit 1
builddir=$(cd "${builddir:-$srcdir/build}" && pwd) || exit 1
build=$builddir/tls-records
rm -rf "$build" && mkdir -p "$build" && cd "$build" || exit 1

die()
{
	echo "check-tls-records: $*"
	exit 1
}

# Not optimized: it need not be fast.
"$srcdir/configure" --quiet --disable-tls-records --enable-werror CFLAGS=-O0 >out 2>&1 ||
	die "configure --disable-tls-records fails: $(cat out)"
make -s -j"$(nproc)" sweet/sweet >out 2>&1 || die "the server does not build: $(tail out)"
found=$(nm sweet/sweet | grep -E ' tls_(stream|record|secrets|memory)_') &&
	die "the server has records of its own:" $found
# What it says and serves, with TLS 1.3 and 1.2.
command -v curl >/dev/null || {
	echo "check-tls-records: curl is missing; on Debian: apt-get install curl"
	exit 77
}
keys=$srcdir/tests/system/support/certificates
mkdir root && head -c 100000 /dev/urandom >root/page || exit 1
mkfifo log || exit 1
sweet/sweet --listen 127.0.0.1:0,tls --certificate "$keys/ec.pem" --key "$keys/ec.key" --root root \
	--tls-records own --log-level info 2>log &
server=$!
trap 'kill $server 2>/dev/null' EXIT
# Open until the end, since the server continues to write to it.
exec 3<log
maker='' url=''
while [ -z "$url" ] && read -r line <&3; do
	case $line in
	*"records are encrypted by"*) maker=$line ;;
	*"listening on https://"*) url=${line#*listening on } url=${url%% *} ;;
	esac
done
case $maker in
*"by OpenSSL ("* | *"by the kernel"*) ;;
*) die "it says: $maker" ;;
esac
for version in 1.2 1.3; do
	curl --silent --fail --insecure --noproxy '*' --max-time 20 --tlsv$version --tls-max $version \
		--output got "$url/page" && cmp -s got root/page || die "TLS $version: curl has not got the page"
done
kill $server && wait $server || die "the server ends with $?"
trap - EXIT
cd "$builddir" && rm -rf "$build"
echo "check-tls-records: OpenSSL makes the records where the server does not"
