# SPDX-License-Identifier: MIT
# common.sh - what the tests of the server share: sourced.
set -e
cd "$AUTOPKGTEST_TMP"

die()
{
	echo "$0: $*" >&2
	systemctl --no-pager --lines=30 status sweet.service >&2 || true
	exit 1
}

# page URL OPTION...: prints the page, or says "status CODE" of one that is not 200.
page()
{
	curl --silent --show-error --max-time 60 --write-out '\n%{http_code}' "$@" |
		sed -n '${ /^200$/!s/^/status /; /^200$/!p; q; }; p'
}

# expect TEXT URL OPTION...: the page has TEXT.
expect()
{
	text=$1
	shift
	said=$(page "$@")
	case $said in
	*"$text"*) ;;
	*) die "instead of \"$text\": $said ($*)" ;;
	esac
}

# unit FILE: adds this example to sweet.service, and starts the server with it.
unit()
{
	install -D -m 644 "/usr/share/doc/sweet/examples/$1" "/etc/systemd/system/sweet.service.d/$1"
	systemctl daemon-reload
	systemctl restart sweet.service
}

# What the tests add, goes.
clean_up()
{
	rm -rf /etc/systemd/system/sweet.service.d /etc/sweet/sites.d/test-*.conf /srv/test-site
	systemctl daemon-reload
	systemctl restart sweet.service
}
trap clean_up EXIT
