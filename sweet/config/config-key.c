/* SPDX-License-Identifier: MIT */
/*
 * config-key.c - see config-key.h.  A new key needs a row here, a field in
 * configuration.h and an entry in sweet.conf(5), or in sweet-experiments(8) for an
 * experiment.
 */
#include <limits.h>
#include <nabc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <glib.h>

#include "base/symlinks.h"
#include "http/etag.h"
#include "config/arch.h"
#include "config/config-key.h"
#include "config/config-store.h"
#include "config/config-trace.h"
#include "config/configuration.h"
#include "config/pool-config.h"
#include "http/forwarded.h"
#include "http/request.h"
#include "http/uri.h"
#include "log/log-format.h"
#include "tls/tls.h"

#define THREADS_MAX 4096
#define DISTANCE_MAX 40 /* maximum length of a name for which similar keys are suggested */

static const char *const arch_words[] = {"amped", "sped", "mt", "mp", NULL};
static const char *const io_words[] = {"auto", "uring", "epoll", NULL};
static const char *const path_words[] = {"nabc", "posix", NULL};
static const char *const level_words[] = {"error", "warning", "notice", "info", "debug", NULL};
static const char *const method_words[] = {"auto", "copy", "splice", "zerocopy", "kernel", NULL};
static const char *const page_cache_words[] = {"keep", "drop", "bypass", NULL};
static const char *const large_words[] = {
	[LARGE_FILES_SENDFILE] = "sendfile", [LARGE_FILES_COPY] = "copy", NULL};
static const char *const records_words[] = {
	[TLS_RECORDS_OWN] = "own", [TLS_RECORDS_OPENSSL] = "openssl", NULL};
static const char *const profile_words[] = {
	[TLS_INTERMEDIATE] = "intermediate", [TLS_MODERN] = "modern", NULL};
static const char *const client_words[] = {[TLS_CLIENT_NONE] = "off",
					   [TLS_CLIENT_OPTIONAL] = "optional",
					   [TLS_CLIENT_REQUIRED] = "required",
					   NULL};
static const char *const slash_words[] = {[URI_SLASH_REFUSE] = "refuse",
					  [URI_SLASH_DECODE] = "decode",
					  [URI_SLASH_KEEP] = "keep",
					  NULL};
static const char *const http2_words[] = {
	[HTTP2_OFF] = "off", [HTTP2_TLS] = "on", [HTTP2_CLEAR] = "clear", NULL};
static const char *const forwarded_words[] = {
	[FORWARDED_X] = "x-forwarded", [FORWARDED_STANDARD] = "forwarded", NULL};
static const char *const id_words[] = {
	[REQUEST_ID_OFF] = "off", [REQUEST_ID_ON] = "on", [REQUEST_ID_TRUST] = "trust", NULL};
static const char *const symlinks_words[] = {[SYMLINKS_INSIDE] = "inside",
					     [SYMLINKS_FOLLOW] = "follow",
					     [SYMLINKS_OWNER] = "owner",
					     [SYMLINKS_DENY] = "deny",
					     NULL};
static const char *const access_log_words[] = {
	[ACCESS_LOG_AUTO] = "auto", [ACCESS_LOG_ON] = "on", [ACCESS_LOG_OFF] = "off", NULL};
static const char *const etag_words[] = {[ETAG_FILE] = "file", [ETAG_TIME] = "time", NULL};
static const char *const align_words[] = {"0", "32", "64", NULL};

/* Text in other words; formats for pictures, sounds and archives are compressed already. */
#define COMPRESS_TYPES                                                                             \
	"text/html;text/css;text/plain;text/javascript;text/xml;text/csv;text/markdown;"           \
	"text/calendar;application/javascript;application/json;application/ld+json;"               \
	"application/manifest+json;application/xml;application/xhtml+xml;application/rss+xml;"     \
	"application/atom+xml;application/wasm;image/svg+xml;font/ttf;font/otf"

/* --- the table ------------------------------------------------------------------ */

#define GLOBAL(field) KEY_GLOBAL, .offset = offsetof(struct config, field)
#define SCOPE(field) KEY_SCOPE, .offset = offsetof(struct scope, field)
#define POOL(field) KEY_POOL, .offset = offsetof(struct pool_config, field)
#define SITE(field) KEY_SITE, .offset = offsetof(struct host, field)
#define MAP(field) KEY_MAP, .offset = offsetof(struct map_table, field)
#define OF_HOST(field) KEY_HOST, .offset = offsetof(struct host, field)

const struct key config_keys[] = {
	{"listen", GLOBAL(listen), .list = true, .otherwise = "127.0.0.1:8080",
	 .store = store_listen, .least = 1,
	 .help = "Address to serve on, or unix:PATH; may be repeated",
	 .argument = "ADDRESS:PORT[,tls]"},
	{"root", SCOPE(root), .otherwise = ".", .store = store_text, .least = 1,
	 .help = "Folder to serve", .argument = "DIR"},
	{"include", GLOBAL(include), .list = true, .otherwise = "", .store = store_list},
	{"threads", GLOBAL(threads), .store = store_number, .least = 1, .most = THREADS_MAX,
	 .range = ARCH_THREADS_RANGE, .help = "Event loops (default: one a CPU)", .argument = "N"},
	{"arch", GLOBAL(arch), .experiment = true, .otherwise = "amped", .store = store_word,
	 .words = arch_words, .help = "Architecture: amped, sped, mt or mp", .argument = "KIND"},
	{"io", GLOBAL(io), .otherwise = "auto", .store = store_word, .words = io_words,
	 .help = "auto, uring or epoll", .argument = "KIND"},
	{"data-path", GLOBAL(data_path), .experiment = true, .otherwise = "nabc",
	 .store = store_word, .words = path_words,
	 .help = "nabc, or posix: pipes and plain system calls", .argument = "PATH"},
	{"registered-memory", GLOBAL(registered_memory), .experiment = true, .otherwise = "on",
	 .store = store_switch, .help = "off: send zero-copy from memory that is not registered",
	 .argument = "SWITCH"},
	{"worker", GLOBAL(worker), .list = true, .otherwise = "", .store = store_list,
	 .help = "Program that answers below a path; may be repeated",
	 .argument = "/PREFIX=COMMAND"},
	{"workers", GLOBAL(workers), .otherwise = "2", .store = store_number, .least = 1,
	 .most = 256, .help = "Processes of each worker", .argument = "N"},
	{"worker-memory", GLOBAL(worker_memory), .otherwise = "64M", .store = store_size,
	 .least = 1 << 20, .help = "Memory for the bodies of one process", .argument = "SIZE"},
	{"cgi", GLOBAL(cgi), .list = true, .otherwise = "", .store = store_list,
	 .help = "CGI programs of a folder, for a path; may be repeated",
	 .argument = "/PREFIX=FOLDER"},
	{"fastcgi", GLOBAL(fastcgi), .list = true, .otherwise = "", .store = store_list,
	 .help = "FastCGI application for a path; may be repeated", .argument = "/PREFIX=ADDRESS"},
	{"cache-size", GLOBAL(cache_size), .store = store_size, .least = 1 << 20,
	 .help = "Memory for the cache (default: a quarter, at most 256M)", .argument = "SIZE"},
	{"pin", GLOBAL(pin), .otherwise = "off", .store = store_switch,
	 .help = "on: lock that memory, so that it is not swapped out", .argument = "SWITCH"},
	{"cache-socket", GLOBAL(cache_socket), .store = store_text,
	 .help = "Socket by which other processes attach to the cache", .argument = "PATH"},
	{"socket-memory", GLOBAL(socket_memory), .store = store_size, .least = 1 << 20,
	 .help = "Bytes of responses in sockets (default: as the cache, at least 64M)",
	 .argument = "SIZE"},
	{"spool-directory", GLOBAL(spool_directory), .store = store_text, .least = 1,
	 .help = "Folder on a disk for bodies that wait", .argument = "DIR"},
	{"spool-size", GLOBAL(spool_size), .otherwise = "1G", .store = store_size, .least = 1 << 20,
	 .help = "Maximum bytes of bodies that wait there", .argument = "SIZE"},
	{"spool-memory", GLOBAL(spool_memory), .otherwise = "off", .store = store_switch,
	 .help = "on: that folder may be in memory", .argument = "SWITCH"},
	{"revalidate", GLOBAL(revalidate_ms), .otherwise = "0", .store = store_ms,
	 .help = "Use a cached file so long without revalidation", .argument = "MS"},
	{"page-cache", GLOBAL(page_cache), .otherwise = "keep", .store = store_word,
	 .words = page_cache_words,
	 .help = "keep, drop or bypass the system's copy of what the cache holds",
	 .argument = "WHAT"},
	{"large-files", GLOBAL(large_files), .otherwise = "sendfile", .store = store_word,
	 .words = large_words, .help = "sendfile or copy: files that the cache does not hold",
	 .argument = "WAY"},
	{"defer-accept", GLOBAL(sockets.defer_accept), .otherwise = "off", .store = store_switch,
	 .help = "on: accept connections when their requests arrive", .argument = "SWITCH"},
	{"fastopen", GLOBAL(sockets.fastopen), .otherwise = "0", .store = store_number,
	 .most = 65535, .help = "Connections opening with TCP Fast Open at once; 0 for none",
	 .argument = "N"},
	{"delay-ack", GLOBAL(sockets.delay_ack), .otherwise = "off", .store = store_switch,
	 .help = "on: acknowledge a first request with its response", .argument = "SWITCH"},
	{"send-method", GLOBAL(sockets.send_method), .otherwise = "auto", .store = store_word,
	 .words = method_words, .help = "auto, copy, splice, zerocopy or kernel",
	 .argument = "METHOD"},
	{"header-option", GLOBAL(sockets.header_option), .experiment = true, .otherwise = "on",
	 .store = store_switch, .help = "off: send each head with a call of its own",
	 .argument = "SWITCH"},
	{"close-option", GLOBAL(sockets.close_option), .experiment = true, .otherwise = "on",
	 .store = store_switch, .help = "off: close connections with a segment of its own",
	 .argument = "SWITCH"},
	{"linger", GLOBAL(sockets.linger), .experiment = true, .otherwise = "on",
	 .store = store_switch, .help = "off: close at once after the last response",
	 .argument = "SWITCH"},
	{"path-cache", GLOBAL(path_cache), .experiment = true, .otherwise = "on",
	 .store = store_switch, .help = "off: resolve the path of each request",
	 .argument = "SWITCH"},
	{"header-cache", GLOBAL(header_cache), .experiment = true, .otherwise = "on",
	 .store = store_switch, .help = "off: generate a file's header lines for each response",
	 .argument = "SWITCH"},
	{"content-cache", GLOBAL(content_cache), .experiment = true, .otherwise = "on",
	 .store = store_switch, .help = "off: read the file for each request",
	 .argument = "SWITCH"},
	{"header-align", GLOBAL(header_align), .experiment = true, .otherwise = "0",
	 .store = store_align, .words = align_words,
	 .help = "Pad heads of responses to a multiple: 0, 32 or 64", .argument = "BYTES"},
	{"mime-types", GLOBAL(mime_types), .otherwise = "/etc/mime.types", .store = store_text,
	 .help = "File of content types", .argument = "FILE"},
	{"user", GLOBAL(user), .store = store_text, .least = 1,
	 .help = "Run as that user, when started as root", .argument = "NAME"},
	{"group", GLOBAL(group), .store = store_text, .least = 1,
	 .help = "Run as that group (default: the user's)", .argument = "NAME"},
	{"read-only", GLOBAL(read_only), .otherwise = "off", .store = store_switch,
	 .help = "on: make the file system read-only", .argument = "SWITCH"},
	{"pid-file", GLOBAL(pid_file), .store = store_text, .least = 1,
	 .help = "Write the process id to this file", .argument = "FILE"},
	{"slow-log", GLOBAL(slow_log), .otherwise = "off", .store = store_text, .least = 1,
	 .help = "File for requests that take longer than slow-time; -, or off",
	 .argument = "FILE"},
	{"error-log", GLOBAL(error_log), .otherwise = "-", .store = store_text, .least = 1,
	 .help = "File, - for standard error, syslog or journal", .argument = "FILE"},
	{"log-level", GLOBAL(log_level), .otherwise = "notice", .store = store_word,
	 .words = level_words, .help = "error, warning, notice, info or debug",
	 .argument = "LEVEL"},
	{"server-header", GLOBAL(server_header), .otherwise = "SWEET/" PACKAGE_VERSION,
	 .store = store_line, .least = 1, .help = "The Server field, or off", .argument = "TEXT"},
	{"request-id", GLOBAL(request_id), .otherwise = "off", .store = store_word,
	 .words = id_words, .help = "off, on, or trust: use the X-Request-Id of requests",
	 .argument = "WHAT"},
	{"trace", GLOBAL(trace), .otherwise = "off", .store = store_switch,
	 .help = "on: pass traceparent to programs", .argument = "SWITCH"},
	{"trace-sample", GLOBAL(trace_share), .otherwise = "100%", .store = store_share,
	 .help = "Share of new traces that are sampled", .argument = "PERCENT"},
	{"trace-export", GLOBAL(collector_url), .otherwise = "off", .store = store_collector,
	 .help = "Collector of OpenTelemetry for the spans of sampled traces; off",
	 .argument = "URL"},
	{"trace-service", GLOBAL(collector_service), .otherwise = "sweet",
	 .store = store_field_text, .least = 1, .help = "Name of this service in its spans",
	 .argument = "NAME"},
	{"trace-ca", GLOBAL(collector_ca), .store = store_text, .least = 1,
	 .help = "Certificates that certify the collector (PEM; default: the system's)",
	 .argument = "FILE"},
	{"trace-header", GLOBAL(collector_headers), .list = true, .otherwise = "",
	 .store = store_fields, .help = "Field of the requests to the collector",
	 .argument = "NAME: VALUE"},
	{"header-timeout", GLOBAL(limits.header_ms), .otherwise = "30s", .store = store_time,
	 .least = 1000, .help = "To receive a request's head", .argument = "TIME"},
	{"body-timeout", GLOBAL(limits.body_ms), .otherwise = "30s", .store = store_time,
	 .least = 1000, .help = "To receive the next bytes of a request's body",
	 .argument = "TIME"},
	{"keep-alive-timeout", GLOBAL(limits.keep_alive_ms), .otherwise = "75s",
	 .store = store_time, .help = "To receive the next request of a connection",
	 .argument = "TIME"},
	{"send-timeout", GLOBAL(limits.send_ms), .otherwise = "60s", .store = store_time,
	 .least = 1000, .help = "For the client to accept a part of a response",
	 .argument = "TIME"},
	{"stop-timeout", GLOBAL(limits.stop_ms), .otherwise = "5s", .store = store_time,
	 .help = "To finish responses when the server stops", .argument = "TIME"},
	{"drain-delay", GLOBAL(limits.drain_ms), .otherwise = "0s", .store = store_time,
	 .help = "To report \"not ready\" before that, to a load balancer", .argument = "TIME"},
	{"keep-alive-requests", GLOBAL(limits.keep_alive_requests), .otherwise = "0",
	 .store = store_number, .most = 1000000000,
	 .help = "Requests of one connection; 0 for any number", .argument = "N"},
	{"max-header", GLOBAL(limits.max_header), .otherwise = "16K", .store = store_size,
	 .least = 1 << 10, .help = "Bytes of a request's head", .argument = "SIZE"},
	{"max-fields", GLOBAL(limits.max_fields), .otherwise = "100", .store = store_number,
	 .least = 1, .most = REQUEST_HEADERS_MAX, .help = "Fields of a request's head",
	 .argument = "N"},
	{"raw-utf8", GLOBAL(limits.raw_utf8), .otherwise = "off", .store = store_switch,
	 .help = "Permit unescaped UTF-8 in URLs", .argument = "SWITCH"},
	{"http2", GLOBAL(http2), .otherwise = "on", .store = store_word, .words = http2_words,
	 .help = "off, on (with TLS) or clear (without TLS, too)", .argument = "WHERE"},
	{"max-streams", GLOBAL(limits.max_streams), .otherwise = "128", .store = store_number,
	 .least = 1, .most = 1000, .help = "Requests at once of a connection with HTTP/2",
	 .argument = "N"},
	{"compress-streams", GLOBAL(limits.compress_streams), .otherwise = "64",
	 .store = store_number, .most = 65536,
	 .help = "Responses that are compressed while they are sent, at once", .argument = "N"},
	{"max-connections", GLOBAL(limits.max_connections), .store = store_number,
	 .most = 1000000000, .help = "At once; 0 for any number (default: by the memory)",
	 .argument = "N"},
	{"connections-per-client", GLOBAL(limits.connections_per_client), .otherwise = "0",
	 .store = store_number, .most = 1000000000,
	 .help = "Of one address at once; 0 for any number", .argument = "N"},
	{"proxy-protocol", GLOBAL(proxy_protocol), .list = true, .otherwise = "",
	 .store = store_addresses, .help = "Proxies that send the PROXY protocol",
	 .argument = "CIDR"},
	{"trusted-proxies", GLOBAL(trusted_proxies), .list = true, .otherwise = "",
	 .store = store_addresses, .help = "Proxies that say in fields who the client is",
	 .argument = "CIDR"},
	{"forwarded", GLOBAL(forwarded), .otherwise = "x-forwarded", .store = store_word,
	 .words = forwarded_words, .help = "x-forwarded or forwarded: the fields of these proxies",
	 .argument = "FIELDS"},
	{"status", GLOBAL(status), .otherwise = "on", .store = store_switch,
	 .help = "Whether there is /.sweet/status", .argument = "SWITCH"},
	{"status-allow", GLOBAL(status_allow), .list = true, .otherwise = "127.0.0.0/8;::1",
	 .store = store_addresses, .help = "Clients that may read it", .argument = "CIDR"},
	{"status-listen", GLOBAL(status_listen), .list = true, .otherwise = "",
	 .store = store_listen, .help = "Address for these pages alone; then no site has them",
	 .argument = "ADDRESS:PORT[,tls]"},

	{"protocol", POOL(protocol), .otherwise = "worker", .store = store_word,
	 .words = pool_protocols},
	{"command", POOL(command), .store = store_text, .least = 1},
	{"folder", POOL(folder), .store = store_text, .least = 1},
	{"upstream", POOL(upstream), .list = true, .otherwise = "", .store = store_list},
	{"script-suffix", POOL(script_suffix), .otherwise = ".php", .store = store_text},
	{"suffix", POOL(suffix), .store = store_suffix},
	{"hosts", POOL(hosts), .list = true, .otherwise = "", .store = store_list},
	{"processes", POOL(processes), .otherwise = "2", .store = store_number, .least = 1,
	 .most = 256},
	{"in-flight", POOL(in_flight), .otherwise = "256", .store = store_number, .least = 1,
	 .most = 256},
	{"resolve-interval", POOL(resolve_ms), .otherwise = "10s", .store = store_time,
	 .least = 1000},
	{"keep-connection", POOL(keep_ms), .otherwise = "100ms", .store = store_time},
	{"trust-cache-ids", POOL(trust_cache_ids), .otherwise = "off", .store = store_switch},
	{"user", POOL(user), .store = store_text, .least = 1},
	{"group", POOL(group), .store = store_text, .least = 1},
	{"directory", POOL(directory), .store = store_text, .least = 1},
	{"environment", POOL(environment), .list = true, .otherwise = "", .store = store_list},
	{"variable", POOL(variables), .list = true, .otherwise = "", .store = store_variables},
	{"methods", POOL(methods), .list = true, .otherwise = "", .store = store_methods},
	{"upgrade", POOL(upgrade), .list = true, .otherwise = "", .store = store_upgrade},
	{"upgrade-timeout", POOL(upgrade_ms), .otherwise = "1h", .store = store_time,
	 .least = 1000},
	{"max-tunnels", POOL(tunnels), .otherwise = "1024", .store = store_number,
	 .most = 1000000000},
	{"tunnels-per-client", POOL(tunnels_per_client), .otherwise = "100", .store = store_number,
	 .most = 1000000000},
	{"pass-authorization", POOL(pass_authorization), .otherwise = "off", .store = store_switch},
	{"symlinks", POOL(symlinks), .otherwise = "inside", .store = store_word,
	 .words = symlinks_words},
	{"accel", POOL(accel), .list = true, .otherwise = "", .store = store_accel},
	{"memory", POOL(memory), .otherwise = "64M", .store = store_size, .least = 1 << 20},
	{"memory-limit", POOL(memory_limit), .otherwise = "0", .store = store_size},
	{"seccomp", POOL(seccomp), .otherwise = "off", .store = store_switch},
	{"max-requests", POOL(max_requests), .otherwise = "0", .store = store_number,
	 .most = 1000000000},
	{"queue", POOL(queue), .otherwise = "1024", .store = store_number, .most = 1000000},
	{"queue-timeout", POOL(queue_ms), .otherwise = "10s", .store = store_time, .least = 1000},
	{"timeout", POOL(answer_ms), .otherwise = "60s", .store = store_time, .least = 1000},
	{"max-response-header", POOL(max_response_header), .otherwise = "32K", .store = store_size,
	 .least = 1 << 10},
	{"request-buffering", POOL(request_buffering), .otherwise = "on", .store = store_switch},
	{"response-buffering", POOL(response_buffering), .otherwise = "on", .store = store_switch},
	{"stream-ahead", POOL(stream_ahead), .otherwise = "4M", .store = store_size},
	{"slow-client", POOL(slow_ms), .otherwise = "30s", .store = store_time},

	{"lookup", MAP(text), .store = store_text, .least = 1},
	{"values", MAP(pairs), .list = true, .store = store_list},
	{"file", MAP(file), .store = store_text, .least = 1},
	{"default", MAP(otherwise), .store = store_field_text},

	{"names", OF_HOST(names), .list = true, .store = store_list, .least = 1},
	{"listen", OF_HOST(listen), .list = true, .otherwise = "", .store = store_listen},

	{"certificate", SITE(certificates), .list = true, .otherwise = "", .store = store_list,
	 .help = "Certificate for TLS (PEM), with those that certify it", .argument = "FILE"},
	{"key", SITE(keys), .list = true, .otherwise = "", .store = store_list,
	 .help = "Its private key (PEM; default: in the same file)", .argument = "FILE"},
	{"ocsp-staple", SITE(staples), .list = true, .otherwise = "", .store = store_list,
	 .help = "Its OCSP response (DER), sent to clients", .argument = "FILE"},
	{"tls-profile", SITE(tls_profile), .otherwise = "intermediate", .store = store_word,
	 .words = profile_words, .help = "intermediate, or modern: TLS 1.3 only",
	 .argument = "PROFILE"},
	{"tls-groups", SITE(tls_groups), .list = true, .otherwise = "", .store = store_list,
	 .help = "Groups for key exchange, the preferred first (default: the library's)",
	 .argument = "LIST"},
	{"tls-records", GLOBAL(tls_records), .otherwise = "own", .store = store_word,
	 .words = records_words, .help = "own, or openssl: who makes the records of TLS 1.3",
	 .argument = "WHO"},
	{"client-certificate", SITE(client_certificate), .otherwise = "off", .store = store_word,
	 .words = client_words, .help = "off, optional or required", .argument = "WHAT"},
	{"client-ca", SITE(client_ca), .store = store_text, .least = 1,
	 .help = "Certificates that certify clients (PEM)", .argument = "FILE"},
	{"tls-alpn-01", SITE(answer_folder), .store = store_text_or_off, .least = 1,
	 .help = "Folder with answers to this challenge of ACME; off", .argument = "FOLDER"},
	{"hsts", SITE(hsts), .store = store_line, .least = 1,
	 .help = "Strict-Transport-Security, with TLS; off", .argument = "TEXT"},

	{"escaped-slash", SITE(escaped_slash), .otherwise = "refuse", .store = store_word,
	 .words = slash_words, .help = "%2F in paths: refuse, decode or keep", .argument = "WHAT"},
	{"access-log", SITE(access_log), .otherwise = "off", .store = store_text, .least = 1,
	 .help = "File, - for standard output, or off", .argument = "FILE"},
	/* By path: whether the log has its requests, not which log. */
	{"access-log", SCOPE(access_log), .otherwise = "auto", .store = store_word,
	 .words = access_log_words},
	{"log-format", SITE(log_format), .otherwise = "short", .store = store_log_format,
	 .words = log_variables, .help = "short, common, combined, json, or template:TEXT",
	 .argument = "FORMAT"},

	{"try-files", KEY_SCOPE, .list = true, .otherwise = "", .store = store_try_files,
	 .help = "file, folder, then what answers instead: /PATH, pool:NAME or =STATUS; off",
	 .argument = "WHAT"},
	{"index", SCOPE(index), .list = true, .otherwise = "index.html", .store = store_names,
	 .help = "Files that stand for their folder", .argument = "NAME"},
	{"listing", SCOPE(listing), .otherwise = "off", .store = store_switch,
	 .help = "List folders without such a file", .argument = "SWITCH"},
	{"etag", SCOPE(etag), .otherwise = "file", .store = store_word, .words = etag_words,
	 .help = "Of files: file, or time, which is equal on all machines", .argument = "OF"},
	{"precompressed", SCOPE(precompressed), .otherwise = "off", .store = store_switch,
	 .help = "Send FILE.br, .zst or .gz to clients that accept it", .argument = "SWITCH"},
	{"compress", KEY_SCOPE, .list = true, .otherwise = "", .store = store_codings,
	 .help = "Keep compressed variants: zstd, br or gzip; off", .argument = "CODING"},
	{"compress-uncached", SCOPE(compress.uncached), .otherwise = "off", .store = store_switch,
	 .help = "Compress answers of programs that are not kept, too", .argument = "SWITCH"},
	{"compress-types", SCOPE(compress.types), .list = true, .otherwise = COMPRESS_TYPES,
	 .store = store_types, .help = "Media types to compress", .argument = "TYPE"},
	{"compress-min", SCOPE(compress.min), .otherwise = "1K", .store = store_size, .least = 1,
	 .help = "Bytes of the smallest body to compress", .argument = "SIZE"},
	{"compress-max", SCOPE(compress.max), .otherwise = "8M", .store = store_size, .least = 1,
	 .help = "Bytes of the largest body to compress", .argument = "SIZE"},
	{"hidden", SCOPE(hidden), .otherwise = "off", .store = store_switch,
	 .help = "Serve names that begin with a dot", .argument = "SWITCH"},
	{"webdav", SCOPE(webdav), .otherwise = "off", .store = store_switch,
	 .help = "Let clients with a password write files (WebDAV)", .argument = "SWITCH"},
	{"charset", SCOPE(charset), .otherwise = "utf-8", .store = store_charset,
	 .help = "Of text files, in Content-Type; off", .argument = "NAME"},
	{"default-type", SCOPE(default_type), .store = store_type,
	 .help = "Content-Type of files whose name has no known end", .argument = "TYPE"},
	{"types", SCOPE(types), .list = true, .otherwise = "", .store = store_mime_lines,
	 .help = "Content types, before those of mime-types", .argument = "TYPE EXTENSION..."},
	{"symlinks", SCOPE(symlinks), .otherwise = "inside", .store = store_word,
	 .words = symlinks_words, .help = "inside, follow, owner or deny", .argument = "WHICH"},
	{"internal", SCOPE(internal), .otherwise = "off", .store = store_switch,
	 .help = "Whether clients cannot ask for a path themselves", .argument = "SWITCH"},
	{"slow-time", SCOPE(slow_ms), .otherwise = "1s", .store = store_ms,
	 .help = "Of a request that is in the slow log; 0 for none", .argument = "MS"},
	{"server-timing", SCOPE(server_timing), .otherwise = "off", .store = store_switch,
	 .help = "Tell clients where the time went, in Server-Timing", .argument = "SWITCH"},
	{"cache-control", SCOPE(cache_rules), .list = true, .otherwise = "",
	 .store = store_cache_control, .help = "Cache-Control of files",
	 .argument = "[PATTERN ]VALUE"},
	{"header", KEY_SCOPE, .list = true, .otherwise = "", .store = store_headers,
	 .help = "Field of responses to set, +add or -remove; off",
	 .argument = "[always ]NAME: VALUE"},
	{"request-header", KEY_SCOPE, .list = true, .otherwise = "", .store = store_request_headers,
	 .help = "Field of requests for programs to set or -remove; off",
	 .argument = "NAME: VALUE"},
	{"error-page", SCOPE(error_pages), .list = true, .otherwise = "",
	 .store = store_error_pages, .help = "File for an error",
	 .argument = "STATUS=/PATH[=STATUS]"},
	{"intercept-errors", SCOPE(intercept_errors), .otherwise = "off", .store = store_switch,
	 .help = "Whether these also replace what programs answer", .argument = "SWITCH"},
	{"allow", SCOPE(allow), .list = true, .otherwise = "", .store = store_addresses,
	 .help = "Clients that are permitted", .argument = "CIDR"},
	{"deny", SCOPE(deny), .list = true, .otherwise = "", .store = store_addresses,
	 .help = "Clients that are refused", .argument = "CIDR"},
	{"auth-realm", SCOPE(auth_realm), .store = store_text_or_off, .least = 1,
	 .help = "Ask for a name and password; off", .argument = "TEXT"},
	{"auth-file", SCOPE(auth_file), .store = store_text, .least = 1,
	 .help = "Users and passwords (htpasswd)", .argument = "FILE"},
	{"redirect", KEY_SCOPE | KEY_OWN, .store = store_redirect, .help = "Redirect clients; off",
	 .argument = "[STATUS ]TARGET"},
	{"alias", KEY_PATH, .offset = offsetof(struct scope, alias), .store = store_text,
	 .least = 1},
	{"rewrite", KEY_PATH, .offset = offsetof(struct scope, rewrite), .store = store_rewrite},
	{"rewrite", KEY_PATTERN, .store = store_rewrite_to},
	{"match", KEY_PATTERN, .store = store_match},
	{"pool", SCOPE(pool_name), .store = store_pool, .least = 1,
	 .help = "[pool NAME] that answers; off", .argument = "NAME"},
	{"variable", SCOPE(variables), .list = true, .otherwise = "", .store = store_variables,
	 .help = "Variable for programs", .argument = "NAME=VALUE"},
	{"rate", SCOPE(send_rate), .otherwise = "0", .store = store_rate,
	 .help = "Bytes per second of a connection's responses; 0 for any number",
	 .argument = "SIZE"},
	{"request-rate", SCOPE(request_rate), .otherwise = "0", .store = store_number,
	 .most = 1000000, .help = "Of one client in a second; 0 for any number", .argument = "N"},
	{"request-burst", SCOPE(request_burst), .otherwise = "10", .store = store_number,
	 .most = 1000000, .help = "Above that rate for a moment", .argument = "N"},
	{"cache", KEY_SCOPE, .otherwise = "marked", .store = store_cache,
	 .help = "Responses of programs to cache: marked, response, off or for TIME",
	 .argument = "WHICH"},
	{"max-body", SCOPE(max_body), .otherwise = "1M", .store = store_size,
	 .help = "Bytes of a request's body; 0 for any number", .argument = "SIZE"},
};

const unsigned config_key_count = G_N_ELEMENTS(config_keys);

/* The key "listen" of [host] has another meaning. */
int key_find(const char *name, unsigned levels)
{
	for (unsigned i = 0; i < config_key_count; i++)
		if (strcmp(config_keys[i].name, name) == 0 && config_keys[i].levels & levels)
			return (int)i;
	return -1;
}

/* Returns the number of letters to insert, delete or change to get from one to the other. */
static unsigned distance(const char *from, const char *to)
{
	unsigned row[DISTANCE_MAX + 1], length = (unsigned)strlen(to);

	if (length > DISTANCE_MAX)
		return UINT_MAX;
	for (unsigned k = 0; k <= length; k++)
		row[k] = k;
	for (unsigned i = 0; from[i]; i++) {
		unsigned diagonal = row[0];

		row[0] = i + 1;
		for (unsigned k = 0; k < length; k++) {
			unsigned other = diagonal + (from[i] != to[k]);

			diagonal = row[k + 1];
			row[k + 1] = MIN(other, MIN(row[k], diagonal) + 1);
		}
	}
	return row[length];
}

const char *key_like(const char *name, unsigned levels)
{
	unsigned least = (unsigned)strlen(name) / 3 + 1;
	char *lower = g_ascii_strdown(name, -1);
	const char *like = NULL;

	g_strdelimit(lower, "_ ", '-');
	for (unsigned i = 0; i < config_key_count; i++) {
		unsigned away = distance(lower, config_keys[i].name);

		if (config_keys[i].levels & levels && away < least) {
			least = away;
			like = config_keys[i].name;
		}
	}
	g_free(lower);
	return like;
}

const char *key_home(const char *name)
{
	if (key_find(name, KEY_GLOBAL | KEY_SITE) >= 0)
		return "[sweet]";
	if (key_find(name, KEY_POOL) >= 0)
		return "[pool NAME]";
	if (key_find(name, KEY_MAP) >= 0)
		return "[map NAME]";
	if (key_find(name, KEY_PATTERN) >= 0 && key_find(name, KEY_PATH) < 0)
		return "[pattern NAME]";
	return key_find(name, KEY_PATH) >= 0 ? "[path PREFIX]" : "[host NAME]";
}

char *key_store(const struct key *key, char **values, void *base, const char **wrong)
{
	const char *must = key->store(key, values, base, wrong);

	if (!must)
		return NULL;
	if (key->words) {
		char *words = g_strjoinv(", ", (char **)(uintptr_t)key->words);
		char *text = g_strdup_printf("%s %s", must, words);

		g_free(words);
		return text;
	}
	if (key->range)
		return g_strdup_printf("%s %s", must, key->range);
	if (key->store == store_number)
		return g_strdup_printf("%s from %llu to %llu", must, (unsigned long long)key->least,
				       (unsigned long long)key->most);
	return g_strdup(must);
}
