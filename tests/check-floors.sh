#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check-floors.sh - lower floors never call upper ones.  Each list below names
# the modules of a folder from the ground up, a floor to a line; a source may
# include only headers of its own floor or of those beneath, and every source
# has its place.  A name is a module (NAME.c and NAME.h) or one file of it.
#
# Environment: srcdir, the top of the sources (default: above this script).
# Exit status: 0 good, 1 not.

export LC_ALL=C
srcdir=${srcdir:-$(dirname "$0")/..}
faults=$(mktemp) || exit 1
trap 'rm -f "$faults"' EXIT

# check FOLDER: reads its floors from standard input.
check()
{
	cat "$srcdir/$1"/*.[ch] >/dev/null || echo "$1: no sources" >>"$faults"
	awk -v folder="$srcdir/$1" '
	function floor_of(name) {
		if (name in floor)
			return floor[name]
		sub(/\.[ch]$/, "", name)
		return name in floor ? floor[name] : 0
	}
	{ for (i = 1; i <= NF; i++) floor[$i] = NR }
	END {
		list = "ls " folder "/*.[ch]"
		while ((list | getline path) > 0) {
			name = path
			sub(/.*\//, "", name)
			own = floor_of(name)
			if (!own)
				print path ": stands on no floor; name it in tests/check-floors.sh"
			while ((getline line < path) > 0) {
				if (line !~ /^#include [<"][a-z-]+\.h[>"]/)
					continue
				split(line, part, /[<">]/)
				if (floor_of(part[2]) > own)
					print path ": includes " part[2] " of a floor above"
			}
			close(path)
		}
	}' >>"$faults"
}

check libnabc <<'FLOORS'
nabc.h nabc-async.h nabc-worker.h id lock table notice fragment extent checksum crc32c replacement cleaning expiry queue peer process identity device ring route
socket cork segment wire lane
flow inflow intake
unit board session
store grant
sums stock
room
member foreign loan
upkeep
cache
catalogue
share
desk
attach join handle passage
method
splice zerocopy kernel
transmit
sendfile
collector
operation
async async-uring async-epoll
exchange exchange-tell responder responder-stream responder-posix operator face stream
nabc sharing nabc-async worker
json ctl-counter ctl
ctl-word ctl-show ctl-unit
ctl-top ctl-route ctl-purge
nabcctl
FLOORS

check libnabc-glib <<'FLOORS'
nabc-glib
FLOORS

# nabcctl is a stranger to the library's inside.
grep -H '^#include [<"]' "$srcdir"/libnabc/nabcctl.c "$srcdir"/libnabc/ctl*.[ch] \
	"$srcdir"/libnabc/json.[ch] |
	while IFS=: read -r path line; do
		name=${line#*[<\"]}
		name=${name%[>\"]*}
		case $name in nabc.h | ctl*.h | json.h) continue ;; esac
		[ ! -e "$srcdir/libnabc/$name" ] || echo "$path: includes $name: only nabc.h is for it"
	done >>"$faults"

check sweet <<'FLOORS'
address pidfile upstream arch passrights
slice pieces clock page-memory starter-wire syntax scan field uri request chunked cachecontrol cgihead cacheable cachekey fcgi response date mime meta timer access htpasswd apr1 histogram accept listing escape access-line proxy-protocol config-value config-file siphash body etag range conditional multipart redirect ends decimal
log data-path data-path-posix pagecache
loop loop-backend loop-uring loop-epoll docroot limit
permits fcgi-link cgi-input sender endpoint supervisor reload-call memory-limit privileges readonly syscall-filter
endpoints pool-config starter-program
configuration starter-exec
starter-process
starter-keeper
starter
programs cgi-run gw-child config-fixed confine socket-options
config-rule generation
config-key
config-draft
config-pool config-arch
config-settle
config-read
helper transaction access-log filehead respcache respcache-inside respcache-entry respcache-flight respcache-purge
content-read spool
content content-inside content-table content-fresh auth folder spool-unit
content-turn
site
server gw-place
logs gw-process.h gateway.h gw-keep filestream textbody
gw-process gw-variables gw-call gw-pace gw-upload
gw-window gw-stream gw-spool gw-fetch gw-parts
gw-lane gw-lane-inside gw-lane-answer
fcgi-spawn
gw-worker gw-fastcgi gw-fastcgi-inside gw-fastcgi-request gw-fastcgi-answer gw-cgi gw-cgi-inside gw-cgi-answer gw-cache
gateway
selection browse errorpage
static status status-data status-field status-json status-metrics status-page status-html
route output
connection connection-inside connection-body connection-proxy connection-send connection-slow connection-unsent connection-time
listener
runner
reload check-config
service
processes
main
FLOORS

cat "$faults"
test ! -s "$faults"
