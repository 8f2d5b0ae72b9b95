#!/bin/sh
# SPDX-License-Identifier: MIT
#
# hello.sh - a CGI script (RFC 3875) whose page does not pass through its
# standard output: nabcctl puts it into the server's cache, and the script
# only names it, in the header line X-NABC-Cache-Id.
#
# Needs nabcctl in its PATH, and in NABC_CACHE the socket of the server's cache.

page()
{
	printf 'Hello %s, this is process %s.\n' "${REMOTE_ADDR:-stranger}" "$$"
	printf 'You asked for "%s".\n' "${PATH_INFO:-/}"
}

# Should nobody come for the page, it goes after a minute.
if id=$(page | nabcctl put --ttl 60 -); then
	printf 'Content-Type: text/plain; charset=utf-8\r\n'
	printf 'X-NABC-Cache-Id: %s\r\n\r\n' "$id"
else
	printf 'Status: 503 Service Unavailable\r\n\r\n'
fi
