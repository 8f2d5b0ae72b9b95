-- SPDX-License-Identifier: MIT
--
-- urls.lua - wrk script of bench: goes round a set of URLs and reports in one
-- line that a program can read.  wrk runs init() and request() in its thread
-- and done() in its main one.  Arguments after the URL: how many URLs, and a
-- format that makes a path of a number from 0; without them the URL itself is
-- asked for, and wrk needs no Lua per request.

function init(args)
	local count = tonumber(args[1] or "0")

	if count < 1 then
		return
	end
	local requests = {}
	for i = 1, count do
		requests[i] = wrk.format("GET", string.format(args[2], i - 1))
	end
	local at = 0
	function request()
		at = at % count + 1
		return requests[at]
	end
end

function done(summary, latency, requests)
	local e = summary.errors

	io.write(string.format("bench requests=%.0f bytes=%.0f duration=%.0f p50=%.0f p99=%.0f"
		.. " connect=%.0f read=%.0f write=%.0f status=%.0f timeout=%.0f\n",
		summary.requests, summary.bytes, summary.duration,
		latency:percentile(50), latency:percentile(99),
		e.connect, e.read, e.write, e.status, e.timeout))
end
