-- SPDX-License-Identifier: MIT
-- website.lua - wrk asks for all files of a site in turn and compares what comes
-- with what is on the disk; it counts what is wrong and which have not come yet.
--
--   wrk -t1 ... -s website.lua URL LIST   (one thread alone)
--
-- LIST: a line for each file, with its path in the URL, a tab, and its path here.

-- Globals, as done() reads them from the outside.
wrong, missing = 0, 0
local urls, bodies = {}, {}
local at = 0
local thread

function setup(started)
	thread = started
end

function init(arguments)
	for line in io.lines(arguments[1]) do
		local url, path = line:match("^(.*)\t(.*)$")
		local file = assert(io.open(path, "rb"))
		local body = file:read("*a")
		file:close()
		table.insert(urls, url)
		-- Which file it was a response does not tell; its body does.
		if bodies[body] == nil then
			bodies[body] = false
			missing = missing + 1
		end
	end
end

function request()
	at = at % #urls + 1
	return wrk.format("GET", urls[at])
end

function response(status, fields, body)
	if status ~= 200 or bodies[body] == nil then
		wrong = wrong + 1
	elseif not bodies[body] then
		bodies[body] = true
		missing = missing - 1
	end
end

function done(summary, latency, requests)
	local errors = summary.errors
	io.write(string.format("site wrong=%d missing=%d errors=%d\n", thread:get("wrong"),
		thread:get("missing"), errors.connect + errors.read + errors.write + errors.timeout))
end
