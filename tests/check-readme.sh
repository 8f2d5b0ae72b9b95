#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check-readme.sh - the programs in README.md are complete and do what it says:
# both compile without a warning, the first runs, the second answers a request
# as a worker of the server.  With the configuration for PHP in doc/operator.md
# nobody gets the source of a script; where php-fpm is installed, it answers.
# The configurations of doc/recipes/ have no error; tests/recipes/ uses them.
#
# Environment: srcdir, the top of the sources (default: above this script);
# builddir, where the library and the server were built (default: here); CC.
# PREFIX, if set, is where they are installed instead: then the library is
# found by pkg-config (through PKG_CONFIG_PATH and the like) and sweet there.
# Exit status: 0 good, 1 not, 77 without curl.

srcdir=$(cd "${srcdir:-$(dirname "$0")/..}" && pwd) || exit 1
builddir=$(cd "${builddir:-.}" && pwd) || exit 1
command -v curl >/dev/null || {
	echo "check-readme: curl is missing; on Debian: apt-get install curl"
	exit 77
}

server= fpm=
folder=$(mktemp -d) || exit 1
clean_up()
{
	[ -z "$server" ] || kill "$server" 2>/dev/null
	[ -z "$fpm" ] || kill "$fpm" 2>/dev/null
	wait
	rm -rf "$folder"
}
trap clean_up EXIT
trap 'exit 1' HUP INT TERM
cd "$folder" || exit 1

die()
{
	echo "check-readme: $*"
	exit 1
}

if [ -n "$PREFIX" ]; then
	sweet=$PREFIX/sbin/sweet
	flags=$(pkg-config --cflags --libs nabc) || die "pkg-config does not know nabc"
	LD_LIBRARY_PATH=$PREFIX/lib
else
	sweet=$builddir/sweet/sweet
	# A sanitized library needs sanitized programs.
	flags="-I$srcdir/libnabc/include -L$builddir/libnabc/.libs -lnabc
		$(sed -n 's/^SANITIZE = //p' "$builddir/Makefile")"
	LD_LIBRARY_PATH=$builddir/libnabc/.libs
fi
export LD_LIBRARY_PATH

# Each block of C goes to the file that its first comment names.
awk '
	/^```c$/ { inside = 1; first = 1; next }
	/^```$/ { inside = 0; next }
	inside && first { file = $2; first = 0 }
	inside { print >file }' "$srcdir/README.md"
for name in hello hello-worker; do
	[ -f "$name.c" ] || die "README.md has no block that begins with /* $name.c"
	# Without quotes: these are lists of words.
	${CC:-cc} -Wall -Wextra -Werror -o "$name" "$name.c" $flags || die "$name.c does not compile"
done
[ "$(ls ./*.c | wc -l)" = 2 ] || die "a block of README.md is tested by nobody:" ./*.c

said=$(./hello) || die "hello failed"
[ "$said" = "Hello from the cache" ] || die "hello said: $said"

# The first line of the server, through a pipe, says when and where it listens.
mkfifo messages
timeout -k 5 120 "$sweet" --listen 127.0.0.1:0 --threads 1 \
	--worker /hello=./hello-worker 2>messages &
server=$!
exec 3<messages
read -r line <&3 || die "the server did not start"
url=$(expr "$line" : '.*\(http://[^ ]*/\)') || die "the server said: $line"
body=$(curl -sS --fail --max-time 30 "${url}hello") || die "no page from the worker"
[ "$body" = "Hello 127.0.0.1" ] || die "the worker's page: $body"

stop_server()
{
	kill "$server"
	wait "$server" || die "the server ended with status $?"
	server=
	exec 3<&-
}
stop_server

# The configurations, with our folders: those for PHP are one, the others are checked by themselves.
sed -e "s|/srv|$folder/srv|" -e "s|/var/www|$folder/www|" -e "s|/run/php/[^ ]*|$folder/php.sock|" \
	-e "s|/etc/sweet|$folder/etc|" -e "s|/var/log/sweet|$folder|" -e 's|^listen=.*|listen=127.0.0.1:0|' \
	"$srcdir/doc/operator.md" >operator.md
awk '/^```ini$/ { inside = 1; block = ""; count++; next }
	inside && /^```$/ {
		inside = 0
		printf "%s", block >(block ~ /php/ ? "app.conf" : "block" count ".conf")
	}
	inside { block = block $0 "\n" }' operator.md
grep -q php.sock app.conf || die "doc/operator.md has no block of a configuration for PHP"
# Those of doc/recipes/, each with the folders and files that it names, as they need not be
# installed.
recipes=0
for page in "$srcdir"/doc/recipes/*.md; do
	sed -n '/^```ini$/,/^```$/{/^```/!p}' "$page" |
		sed -E "s#^((root|alias|folder|accel|command|auth-file)=)/#\1$folder/#" >recipe.conf
	[ -s recipe.conf ] || continue
	recipes=$((recipes + 1))
	# Only below this folder: the same paths exist on a machine with the application.
	for place in $(sed -n -E "s#^(root|alias|folder|accel)=$folder/##p" recipe.conf); do
		mkdir -p "$folder/$place" || exit 1
	done
	for place in $(sed -n -E "s#^(command|auth-file)=$folder/([^ ]*).*#\2#p" recipe.conf); do
		mkdir -p "$folder/$(dirname "$place")" && : >"$folder/$place" &&
			chmod 755 "$folder/$place" || exit 1
	done
	"$sweet" --check-config --config recipe.conf >check.out 2>&1 ||
		die "the configuration in $page: $(cat check.out recipe.conf)"
done
[ "$recipes" -gt 0 ] || die "doc/recipes has no configuration"
mkdir -p etc srv/files srv/www srv/app/public www/wordpress || exit 1
echo 'anna:{SHA}kGByAB793z4R5tK1eC9Hd/4Dhzk=' >etc/users
for block in block*.conf; do
	"$sweet" --check-config --config "$block" >check.out 2>&1 ||
		die "a configuration in doc/operator.md: $(cat check.out "$block")"
done
echo '<?php echo "made by", " PHP at $_SERVER[SCRIPT_NAME]";' >srv/app/index.php
cp srv/app/index.php www/wordpress/
echo 'a file' >srv/www/file
# Debian's names have the version at their end.
fpm_program=$(IFS=:; for place in $PATH /usr/sbin; do
	find -L "$place" -maxdepth 1 -name 'php-fpm*' -perm -100 2>/dev/null
done | head -n 1)
if [ -n "$fpm_program" ]; then
	own="listen = $folder/php.sock
pm = static
pm.max_children = 1"
	as_root=
	if [ "$(id -u)" = 0 ]; then
		own="user = root
$own" as_root=-R
	fi
	printf '[global]\nerror_log = %s\n[www]\n%s\n' "$folder/fpm.log" "$own" >fpm.conf
	"$fpm_program" -n -F $as_root -y fpm.conf >fpm.out 2>&1 &
	fpm=$!
fi
"$sweet" --check-config --config app.conf >check.out 2>&1 ||
	die "the configuration for PHP in doc/operator.md: $(cat check.out)"
timeout -k 5 120 "$sweet" --config app.conf 2>messages &
server=$!
exec 3<messages
read -r line <&3 || die "the server did not start with the configuration for PHP in doc/operator.md"
url=$(expr "$line" : '.*\(http://[^ ]*/\)') || die "the server said: $line"
[ "$(curl -sS --max-time 30 "${url}file")" = "a file" ] || die "no file beside PHP"
for path in app/ app/index.php app/index.php/more index.php app%2Findex.php app/../index.php; do
	body=$(curl -sS --path-as-is --max-time 30 "$url$path") || die "no answer for /$path"
	case $body in *'<?php'*) die "/$path is the source of a script" ;; esac
done
for path in "" index.php 2026/hello index.php/more none.php; do
	body=$(curl -sS --max-time 30 -H "Host: blog.example.org" "$url$path") ||
		die "no answer for /$path of the site"
	case $body in *'<?php'*) die "/$path of the site is the source of a script" ;; esac
done
if [ -n "$fpm" ]; then
	for path in app/ app/index.php; do
		# It listens slightly later than it starts.
		body=$(curl -sS --retry 30 --retry-all-errors --retry-delay 1 --fail --max-time 30 \
			"$url$path" 2>curl.out) || die "php-fpm does not answer: $(cat curl.out fpm.log)"
		[ "$body" = "made by PHP at /app/index.php" ] || die "/$path by PHP: $body"
	done
	for path in "" index.php 2026/hello index.php/more none.php; do
		body=$(curl -sS --max-time 30 -H "Host: blog.example.org" "$url$path") ||
			die "php-fpm does not answer for /$path of the site"
		[ "$body" = "made by PHP at /index.php" ] || die "/$path of the site by PHP: $body"
	done
fi
stop_server
echo "check-readme: both programs of README.md work, and the configuration for PHP in doc/operator.md"
