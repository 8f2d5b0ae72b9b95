# SPDX-License-Identifier: MIT
# Tests: units by Check, one program for each file under test; the manual pages
# and the floors against the sources; then the whole server, by pytest.
NABC_UNITS = \
	tests/unit/test-id \
	tests/unit/test-fragment \
	tests/unit/test-extent \
	tests/unit/test-checksum \
	tests/unit/test-crc32c \
	tests/unit/test-replacement \
	tests/unit/test-cleaning \
	tests/unit/test-wire \
	tests/unit/test-table \
	tests/unit/test-identity \
	tests/unit/test-board \
	tests/unit/test-grant \
	tests/unit/test-session \
	tests/unit/test-loan \
	tests/unit/test-desk \
	tests/unit/test-share \
	tests/unit/test-sharing \
	tests/unit/test-hostile \
	tests/unit/test-hostile-table \
	tests/unit/test-hostile-kill \
	tests/unit/test-segment \
	tests/unit/test-peer \
	tests/unit/test-process \
	tests/unit/test-device \
	tests/unit/test-kernel \
	tests/unit/test-kernel-unit \
	tests/unit/test-kernel-worker \
	tests/unit/test-queue \
	tests/unit/test-route \
	tests/unit/test-expiry \
	tests/unit/test-unit \
	tests/unit/test-store \
	tests/unit/test-sums \
	tests/unit/test-room \
	tests/unit/test-member \
	tests/unit/test-member-joined \
	tests/unit/test-foreign \
	tests/unit/test-cache \
	tests/unit/test-attach \
	tests/unit/test-collector \
	tests/unit/test-handle \
	tests/unit/test-handle-read \
	tests/unit/test-handle-sums \
	tests/unit/test-handle-huge \
	tests/unit/test-stream \
	tests/unit/test-passage \
	tests/unit/test-transmit \
	tests/unit/test-transmit-hold \
	tests/unit/test-transmit-wire \
	tests/unit/test-transmit-room \
	tests/unit/test-transmit-learn \
	tests/unit/test-nabc-send \
	tests/unit/test-sendfile \
	tests/unit/test-operation \
	tests/unit/test-async \
	tests/unit/test-exchange \
	tests/unit/test-exchange-bad \
	tests/unit/test-exchange-body \
	tests/unit/test-exchange-posix \
	tests/unit/test-exchange-start \
	tests/unit/test-exchange-stream \
	tests/unit/test-exchange-untaken \
	tests/unit/test-exchange-withdraw \
	tests/unit/test-flow \
	tests/unit/test-inflow \
	tests/unit/test-intake \
	tests/unit/test-responder \
	tests/unit/test-operator \
	tests/unit/test-nabc \
	tests/unit/test-nabc-process \
	tests/unit/test-degradation \
	tests/unit/test-nabc-sums
SWEET_UNITS = \
	tests/unit/test-scan \
	tests/unit/test-uri \
	tests/unit/test-redirect \
	tests/unit/test-field \
	tests/unit/test-cachecontrol \
	tests/unit/test-cacheable \
	tests/unit/test-cachekey \
	tests/unit/test-respcache \
	tests/unit/test-respcache-flight \
	tests/unit/test-respcache-purge \
	tests/unit/test-respcache-threads \
	tests/unit/test-cgihead \
	tests/unit/test-fcgi \
	tests/unit/test-fcgi-link \
	tests/unit/test-permits \
	tests/unit/test-page-memory \
	tests/unit/test-upstream \
	tests/unit/test-chunked \
	tests/unit/test-body \
	tests/unit/test-request \
	tests/unit/test-request-head \
	tests/unit/test-date \
	tests/unit/test-date-parse \
	tests/unit/test-etag \
	tests/unit/test-range \
	tests/unit/test-conditional \
	tests/unit/test-multipart \
	tests/unit/test-filehead \
	tests/unit/test-mime \
	tests/unit/test-response \
	tests/unit/test-meta \
	tests/unit/test-access \
	tests/unit/test-siphash \
	tests/unit/test-limit \
	tests/unit/test-apr1 \
	tests/unit/test-htpasswd \
	tests/unit/test-accept \
	tests/unit/test-listing \
	tests/unit/test-auth \
	tests/unit/test-timer \
	tests/unit/test-loop \
	tests/unit/test-loop-close \
	tests/unit/test-loop-send \
	tests/unit/test-data-path \
	tests/unit/test-loop-tasks \
	tests/unit/test-helper \
	tests/unit/test-pagecache \
	tests/unit/test-spool \
	tests/unit/test-docroot \
	tests/unit/test-folder \
	tests/unit/test-log \
	tests/unit/test-config \
	tests/unit/test-site \
	tests/unit/test-access-log \
	tests/unit/test-escape \
	tests/unit/test-access-line \
	tests/unit/test-proxy-protocol \
	tests/unit/test-address \
	tests/unit/test-endpoint \
	tests/unit/test-socket-options \
	tests/unit/test-ends \
	tests/unit/test-listener \
	tests/unit/test-connection-body \
	tests/unit/test-pieces \
	tests/unit/test-gw-parts \
	tests/unit/test-supervisor \
	tests/unit/test-memory-limit \
	tests/unit/test-privileges \
	tests/unit/test-starter-program \
	tests/unit/test-starter-process \
	tests/unit/test-starter \
	tests/unit/test-gw-child \
	tests/unit/test-programs \
	tests/unit/test-readonly \
	tests/unit/test-syscall-filter \
	tests/unit/test-endpoints \
	tests/unit/test-config-fixed \
	tests/unit/test-pidfile \
	tests/unit/test-pool-config \
	tests/unit/test-content \
	tests/unit/test-content-read \
	tests/unit/test-content-caches \
	tests/unit/test-content-turn \
	tests/unit/test-content-table \
	tests/unit/test-loop-watch \
	tests/unit/test-textbody \
	tests/unit/test-histogram \
	tests/unit/test-content-siblings \
	tests/unit/test-status-field \
	tests/unit/test-status-json \
	tests/unit/test-status-metrics \
	tests/unit/test-status-page \
	tests/unit/test-status \
	tests/unit/test-content-change

GLIB_UNITS = tests/unit/test-glib
CTL_UNITS = \
	tests/unit/test-json \
	tests/unit/test-ctl-counter \
	tests/unit/test-ctl
# The pure parts of the benchmarks' client.
BENCH_UNITS = \
	tests/unit/test-client-answer \
	tests/unit/test-client-requests \
	tests/unit/test-client-schedule \
	tests/unit/test-client-times \
	tests/unit/test-surge \
	tests/unit/test-wan-link

# A unit test of the library links all of it, hidden names included.
LDADD = libnabc/libnabc-internal.la $(CHECK_LIBS) $(URING_LIBS) -lpthread
if HAVE_CHECK
check_PROGRAMS += $(NABC_UNITS) tests/unit/worker-fixture
TESTS += $(NABC_UNITS)
if SWEET
check_PROGRAMS += $(GLIB_UNITS) $(SWEET_UNITS) $(CTL_UNITS) $(BENCH_UNITS)
TESTS += $(GLIB_UNITS) $(SWEET_UNITS) $(CTL_UNITS) $(BENCH_UNITS)
endif
endif

# The kernel module's calls, for its model.
tests_unit_test_device_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/kernel-shim
tests_unit_test_kernel_CPPFLAGS = $(tests_unit_test_device_CPPFLAGS)
tests_unit_test_kernel_unit_CPPFLAGS = $(tests_unit_test_device_CPPFLAGS)
tests_unit_test_kernel_worker_CPPFLAGS = $(tests_unit_test_device_CPPFLAGS)

# Through the public calls alone, so that it links what is installed.
tests_unit_test_glib_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/libnabc-glib
tests_unit_test_glib_CFLAGS = $(AM_CFLAGS) $(GLIB_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_glib_LDADD = libnabc-glib/libnabc-glib.la libnabc/libnabc.la \
	$(GLIB_LIBS) $(CHECK_LIBS) -lpthread

bench_unit_cppflags = $(AM_CPPFLAGS) -I$(srcdir)/bench
bench_unit_ldadd = $(CHECK_LIBS) -lm -lpthread
tests_unit_test_client_answer_SOURCES = tests/unit/test-client-answer.c \
	bench/client-answer.c
tests_unit_test_client_answer_CPPFLAGS = $(bench_unit_cppflags)
tests_unit_test_client_answer_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_client_answer_LDADD = $(bench_unit_ldadd)
tests_unit_test_client_requests_SOURCES = tests/unit/test-client-requests.c \
	bench/client-requests.c bench/client-workload-list.c
tests_unit_test_client_requests_CPPFLAGS = $(bench_unit_cppflags)
tests_unit_test_client_requests_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_client_requests_LDADD = $(bench_unit_ldadd)
tests_unit_test_client_schedule_SOURCES = tests/unit/test-client-schedule.c \
	bench/client-schedule.c bench/surge.c
tests_unit_test_client_schedule_CPPFLAGS = $(bench_unit_cppflags)
tests_unit_test_client_schedule_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_client_schedule_LDADD = $(bench_unit_ldadd)
tests_unit_test_client_times_SOURCES = tests/unit/test-client-times.c \
	bench/client-histogram.c bench/client-pause.c
tests_unit_test_client_times_CPPFLAGS = $(bench_unit_cppflags)
tests_unit_test_client_times_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_client_times_LDADD = $(bench_unit_ldadd)
tests_unit_test_surge_SOURCES = tests/unit/test-surge.c \
	bench/surge.c bench/client-requests.c bench/client-workload-surge.c
tests_unit_test_surge_CPPFLAGS = $(bench_unit_cppflags)
tests_unit_test_surge_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_surge_LDADD = $(bench_unit_ldadd)
tests_unit_test_wan_link_SOURCES = tests/unit/test-wan-link.c bench/wan-link.c
tests_unit_test_wan_link_CPPFLAGS = $(bench_unit_cppflags)
tests_unit_test_wan_link_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_wan_link_LDADD = $(bench_unit_ldadd)

sweet_unit_cppflags = $(sweet_libsweet_la_CPPFLAGS) -I$(srcdir)/libnabc
sweet_unit_cflags = $(AM_CFLAGS) $(GLIB_CFLAGS) $(CHECK_CFLAGS)
sweet_unit_ldadd = sweet/libsweet.la libnabc/libnabc-internal.la \
	$(GLIB_LIBS) $(CHECK_LIBS) $(URING_LIBS) -lpthread

tests_unit_test_body_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_body_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_body_LDADD = $(sweet_unit_ldadd)
tests_unit_test_chunked_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_chunked_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_chunked_LDADD = $(sweet_unit_ldadd)
tests_unit_test_scan_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_scan_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_scan_LDADD = $(sweet_unit_ldadd)
tests_unit_test_uri_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_uri_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_uri_LDADD = $(sweet_unit_ldadd)

tests_unit_test_field_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_field_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_field_LDADD = $(sweet_unit_ldadd)

tests_unit_test_cacheable_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_cacheable_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_cacheable_LDADD = $(sweet_unit_ldadd)
tests_unit_test_cachekey_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_cachekey_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_cachekey_LDADD = $(sweet_unit_ldadd)
tests_unit_test_respcache_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_respcache_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_respcache_LDADD = $(sweet_unit_ldadd)
tests_unit_test_respcache_flight_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_respcache_flight_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_respcache_flight_LDADD = $(sweet_unit_ldadd)
tests_unit_test_respcache_purge_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_respcache_purge_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_respcache_purge_LDADD = $(sweet_unit_ldadd)
tests_unit_test_respcache_threads_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_respcache_threads_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_respcache_threads_LDADD = $(sweet_unit_ldadd)
tests_unit_test_cachecontrol_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_cachecontrol_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_cachecontrol_LDADD = $(sweet_unit_ldadd)

tests_unit_test_cgihead_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_cgihead_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_cgihead_LDADD = $(sweet_unit_ldadd)

tests_unit_test_fcgi_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_fcgi_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_fcgi_LDADD = $(sweet_unit_ldadd)

tests_unit_test_fcgi_link_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_fcgi_link_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_fcgi_link_LDADD = $(sweet_unit_ldadd)

tests_unit_test_permits_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_permits_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_permits_LDADD = $(sweet_unit_ldadd)

tests_unit_test_page_memory_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_page_memory_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_page_memory_LDADD = $(sweet_unit_ldadd)

tests_unit_test_upstream_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_upstream_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_upstream_LDADD = $(sweet_unit_ldadd)

tests_unit_test_request_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_request_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_request_LDADD = $(sweet_unit_ldadd)

tests_unit_test_request_head_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_request_head_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_request_head_LDADD = $(sweet_unit_ldadd)

tests_unit_test_date_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_date_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_date_LDADD = $(sweet_unit_ldadd)

tests_unit_test_date_parse_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_date_parse_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_date_parse_LDADD = $(sweet_unit_ldadd)

tests_unit_test_etag_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_etag_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_etag_LDADD = $(sweet_unit_ldadd)

tests_unit_test_range_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_range_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_range_LDADD = $(sweet_unit_ldadd)

tests_unit_test_conditional_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_conditional_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_conditional_LDADD = $(sweet_unit_ldadd)

tests_unit_test_multipart_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_multipart_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_multipart_LDADD = $(sweet_unit_ldadd)

tests_unit_test_filehead_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_filehead_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_filehead_LDADD = $(sweet_unit_ldadd)

tests_unit_test_mime_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_mime_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_mime_LDADD = $(sweet_unit_ldadd)

tests_unit_test_response_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_response_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_response_LDADD = $(sweet_unit_ldadd)

tests_unit_test_meta_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_meta_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_meta_LDADD = $(sweet_unit_ldadd)

tests_unit_test_access_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_access_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_access_LDADD = $(sweet_unit_ldadd)

tests_unit_test_apr1_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_apr1_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_apr1_LDADD = $(sweet_unit_ldadd)

tests_unit_test_htpasswd_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_htpasswd_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_htpasswd_LDADD = $(sweet_unit_ldadd)
tests_unit_test_accept_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_accept_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_accept_LDADD = $(sweet_unit_ldadd)

tests_unit_test_listing_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_listing_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_listing_LDADD = $(sweet_unit_ldadd)

tests_unit_test_siphash_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_siphash_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_siphash_LDADD = $(sweet_unit_ldadd)

tests_unit_test_limit_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_limit_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_limit_LDADD = $(sweet_unit_ldadd)

tests_unit_test_auth_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_auth_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_auth_LDADD = $(sweet_unit_ldadd)
tests_unit_test_folder_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_folder_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_folder_LDADD = $(sweet_unit_ldadd)

tests_unit_test_content_siblings_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_content_siblings_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_content_siblings_LDADD = $(sweet_unit_ldadd)

tests_unit_test_redirect_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_redirect_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_redirect_LDADD = $(sweet_unit_ldadd)

tests_unit_test_timer_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_timer_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_timer_LDADD = $(sweet_unit_ldadd)

tests_unit_test_loop_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_loop_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_loop_LDADD = $(sweet_unit_ldadd)

tests_unit_test_loop_close_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_loop_close_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_loop_close_LDADD = $(sweet_unit_ldadd)

tests_unit_test_loop_send_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_loop_send_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_loop_send_LDADD = $(sweet_unit_ldadd)

tests_unit_test_loop_tasks_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_loop_tasks_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_loop_tasks_LDADD = $(sweet_unit_ldadd)

tests_unit_test_helper_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_helper_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_helper_LDADD = $(sweet_unit_ldadd)
tests_unit_test_spool_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_spool_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_spool_LDADD = $(sweet_unit_ldadd)

tests_unit_test_docroot_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_docroot_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_docroot_LDADD = $(sweet_unit_ldadd)

tests_unit_test_log_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_log_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_log_LDADD = $(sweet_unit_ldadd)

tests_unit_test_site_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_site_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_site_LDADD = $(sweet_unit_ldadd)

tests_unit_test_config_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_config_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_config_LDADD = $(sweet_unit_ldadd)
tests_unit_test_escape_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_escape_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_escape_LDADD = $(sweet_unit_ldadd)

tests_unit_test_access_line_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_access_line_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_access_line_LDADD = $(sweet_unit_ldadd)

tests_unit_test_proxy_protocol_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_proxy_protocol_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_proxy_protocol_LDADD = $(sweet_unit_ldadd)

tests_unit_test_access_log_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_access_log_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_access_log_LDADD = $(sweet_unit_ldadd)

tests_unit_test_address_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_address_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_address_LDADD = $(sweet_unit_ldadd)

tests_unit_test_endpoint_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_endpoint_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_endpoint_LDADD = $(sweet_unit_ldadd)

tests_unit_test_socket_options_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_socket_options_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_socket_options_LDADD = $(sweet_unit_ldadd)

tests_unit_test_memory_limit_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_memory_limit_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_memory_limit_LDADD = $(sweet_unit_ldadd)

tests_unit_test_supervisor_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_supervisor_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_supervisor_LDADD = $(sweet_unit_ldadd)

tests_unit_test_privileges_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_privileges_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_privileges_LDADD = $(sweet_unit_ldadd)

tests_unit_test_starter_program_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_starter_program_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_starter_program_LDADD = $(sweet_unit_ldadd)

tests_unit_test_starter_process_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_starter_process_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_starter_process_LDADD = $(sweet_unit_ldadd)

tests_unit_test_gw_child_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_gw_child_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_gw_child_LDADD = $(sweet_unit_ldadd)

tests_unit_test_starter_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_starter_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_starter_LDADD = $(sweet_unit_ldadd)

tests_unit_test_programs_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_programs_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_programs_LDADD = $(sweet_unit_ldadd)

tests_unit_test_syscall_filter_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_syscall_filter_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_syscall_filter_LDADD = $(sweet_unit_ldadd)

tests_unit_test_readonly_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_readonly_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_readonly_LDADD = $(sweet_unit_ldadd)

tests_unit_test_ends_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_ends_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_ends_LDADD = $(sweet_unit_ldadd)

tests_unit_test_endpoints_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_endpoints_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_endpoints_LDADD = $(sweet_unit_ldadd)

tests_unit_test_config_fixed_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_config_fixed_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_config_fixed_LDADD = $(sweet_unit_ldadd)

tests_unit_test_pidfile_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_pidfile_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_pidfile_LDADD = $(sweet_unit_ldadd)

tests_unit_test_listener_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_listener_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_listener_LDADD = $(sweet_unit_ldadd)

tests_unit_test_pool_config_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_pool_config_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_pool_config_LDADD = $(sweet_unit_ldadd)

tests_unit_test_pagecache_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_pagecache_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_pagecache_LDADD = $(sweet_unit_ldadd)
tests_unit_test_data_path_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_data_path_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_data_path_LDADD = $(sweet_unit_ldadd)

tests_unit_test_pieces_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_pieces_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_pieces_LDADD = $(sweet_unit_ldadd)

tests_unit_test_gw_parts_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_gw_parts_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_gw_parts_LDADD = $(sweet_unit_ldadd)

tests_unit_test_connection_body_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_connection_body_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_connection_body_LDADD = $(sweet_unit_ldadd)

tests_unit_test_content_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_content_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_content_LDADD = $(sweet_unit_ldadd)

tests_unit_test_content_read_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_content_read_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_content_read_LDADD = $(sweet_unit_ldadd)

tests_unit_test_content_caches_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_content_caches_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_content_caches_LDADD = $(sweet_unit_ldadd)

tests_unit_test_textbody_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_textbody_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_textbody_LDADD = $(sweet_unit_ldadd)

tests_unit_test_status_field_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_status_field_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_status_field_LDADD = $(sweet_unit_ldadd)

tests_unit_test_status_json_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_status_json_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_status_json_LDADD = $(sweet_unit_ldadd)

tests_unit_test_status_metrics_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_status_metrics_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_status_metrics_LDADD = $(sweet_unit_ldadd)

tests_unit_test_status_page_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_status_page_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_status_page_LDADD = $(sweet_unit_ldadd)

tests_unit_test_status_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_status_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_status_LDADD = $(sweet_unit_ldadd)

tests_unit_test_histogram_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_histogram_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_histogram_LDADD = $(sweet_unit_ldadd)

tests_unit_test_loop_watch_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_loop_watch_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_loop_watch_LDADD = $(sweet_unit_ldadd)

tests_unit_test_content_turn_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_content_turn_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_content_turn_LDADD = $(sweet_unit_ldadd)

tests_unit_test_content_table_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_content_table_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_content_table_LDADD = $(sweet_unit_ldadd)

tests_unit_test_content_change_CPPFLAGS = $(sweet_unit_cppflags)
tests_unit_test_content_change_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_content_change_LDADD = $(sweet_unit_ldadd)

ctl_unit_ldadd = nabcctl/libnabcctl.la libnabc/libnabc-internal.la \
	$(GLIB_LIBS) $(CHECK_LIBS) $(URING_LIBS) -lpthread

ctl_unit_cppflags = $(public_cppflags) -I$(srcdir)/nabcctl -I$(srcdir)/libnabc

tests_unit_test_json_CPPFLAGS = $(ctl_unit_cppflags)
tests_unit_test_json_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_json_LDADD = $(ctl_unit_ldadd)

tests_unit_test_ctl_counter_CPPFLAGS = $(ctl_unit_cppflags)
tests_unit_test_ctl_counter_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_ctl_counter_LDADD = $(ctl_unit_ldadd)

tests_unit_test_ctl_CPPFLAGS = $(ctl_unit_cppflags)
tests_unit_test_ctl_CFLAGS = $(sweet_unit_cflags)
tests_unit_test_ctl_LDADD = $(ctl_unit_ldadd)

# What the system tests need besides the server; they use no Check.
if SWEET
check_PROGRAMS += tests/system/deny-io-uring tests/system/worker-obey tests/system/cache-owner \
	tests/system/worker-told tests/system/worker-stream
endif
tests_system_cache_owner_LDADD = libnabc/libnabc.la
tests_system_cache_owner_LDFLAGS = $(AM_LDFLAGS) -static
tests_system_deny_io_uring_LDADD =
tests_system_worker_obey_CFLAGS = $(AM_CFLAGS) $(GLIB_CFLAGS)
tests_system_worker_obey_LDADD = libnabc/libnabc.la $(GLIB_LIBS)
tests_system_worker_obey_LDFLAGS = $(AM_LDFLAGS) -static
tests_system_worker_told_CFLAGS = $(AM_CFLAGS) $(GLIB_CFLAGS)
tests_system_worker_told_LDADD = libnabc/libnabc.la $(GLIB_LIBS)
tests_system_worker_told_LDFLAGS = $(AM_LDFLAGS) -static
tests_system_worker_stream_CFLAGS = $(AM_CFLAGS) $(GLIB_CFLAGS)
tests_system_worker_stream_LDADD = libnabc/libnabc.la $(GLIB_LIBS)
tests_system_worker_stream_LDFLAGS = $(AM_LDFLAGS) -static
EXTRA_DIST += \
	tests/system/browser.py \
	tests/system/client.py \
	tests/system/conftest.py \
	tests/system/consumer/Makefile \
	tests/system/consumer/client.c \
	tests/system/consumer/fetch.c \
	tests/system/consumer/server.c \
	tests/system/consumer/worker.c \
	tests/system/examples.py \
	tests/system/fastcgi.py \
	tests/system/fetch.go \
	tests/system/files.py \
	tests/system/metrics.py \
	tests/system/moved_clock.py \
	tests/system/postmortem.py \
	tests/system/programs.py \
	tests/system/protocol-cases.txt \
	tests/system/server.py \
	tests/system/test_arch.py \
	tests/system/test_auth.py \
	tests/system/test_behind.py \
	tests/system/test_bench.py \
	tests/system/test_bench_client.py \
	tests/system/test_bench_logs.py \
	tests/system/test_cgi.py \
	tests/system/test_cgi_readme.py \
	tests/system/test_caches.py \
	tests/system/test_changes.py \
	tests/system/test_check_config.py \
	tests/system/test_clients.py \
	tests/system/test_command_line.py \
	tests/system/test_conditions.py \
	tests/system/test_config.py \
	tests/system/test_consumer.py \
	tests/system/test_curl.py \
	tests/system/test_data_path.py \
	tests/system/lingering.py \
	tests/system/test_descriptors.py \
	tests/system/test_error_pages.py \
	tests/system/responder.py \
	tests/system/results.py \
	tests/system/selection.py \
	tests/system/test_fastcgi.py \
	tests/system/test_fastcgi_move.py \
	tests/system/test_fastcgi_programs.py \
	tests/system/test_fastcgi_spawned.py \
	tests/system/test_fastcgi_units.py \
	tests/system/test_examples.py \
	tests/system/test_examples_cgi.py \
	tests/system/test_fallback.py \
	tests/system/test_folders.py \
	tests/system/test_generate.py \
	tests/system/test_haproxy.py \
	tests/system/test_held.py \
	tests/system/test_hostile.py \
	tests/system/test_hosts.py \
	tests/system/test_large.py \
	tests/system/test_limits.py \
	tests/system/test_load.py \
	tests/system/test_long_heads.py \
	tests/system/test_log.py \
	tests/system/test_log_files.py \
	tests/system/test_memory.py \
	tests/system/test_nabc_py.py \
	tests/system/test_nabcctl.py \
	tests/system/test_nginx.py \
	tests/system/test_packets.py \
	tests/system/test_page_cache.py \
	tests/system/test_paths.py \
	tests/system/test_pipeline.py \
	tests/system/test_pools.py \
	tests/system/test_privileges.py \
	tests/system/test_protocol.py \
	tests/system/test_protocols.py \
	tests/system/test_proxy_protocol.py \
	tests/system/test_ranges.py \
	tests/system/test_readers.py \
	tests/system/test_reload.py \
	tests/system/test_reload_call.py \
	tests/system/test_response_cache.py \
	tests/system/test_response_cache_streams.py \
	tests/system/test_reused_pids.py \
	tests/system/test_rules.py \
	tests/system/test_service.py \
	tests/system/test_socket_options.py \
	tests/system/test_static.py \
	tests/system/test_status.py \
	tests/system/test_status_page.py \
	tests/system/test_stop.py \
	tests/system/test_supervisor.py \
	tests/system/test_torture.py \
	tests/system/test_torture_bytes.py \
	tests/system/test_torture_figures.py \
	tests/system/test_unix.py \
	tests/system/test_upload.py \
	tests/system/test_buffering.py \
	tests/system/test_slow_clients.py \
	tests/system/test_upload_pieces.py \
	tests/system/test_upload_programs.py \
	tests/system/test_variants.py \
	tests/system/test_worker_stream.py \
	tests/system/test_worker_users.py \
	tests/system/tools.py \
	tests/system/test_wan.py \
	tests/system/test_workers.py \
	tests/system/website.lua \
	tests/system/website.py

TESTS += tests/check-floors.sh
if SWEET
TESTS += tests/check-man.sh tests/check-system.sh tests/check-readme.sh
if HAVE_CHECK
# The system tests install, and so link libnabc-glib anew: not under its test.
# (By a variable: a rule for the name itself would replace automake's.)
system_log = tests/check-system.sh.log
$(system_log): tests/unit/test-glib.log
endif
if HARDENED
TESTS += tests/check-hardening.sh
endif
endif
EXTRA_DIST += tests/check-readme.sh tests/check-hardening.sh
# Minutes, and of one version of the tools; no part of make check.
EXTRA_DIST += tests/check-analysis.sh tests/analysis-exceptions.txt tests/tsan-exceptions.txt
analyze:
	srcdir='$(srcdir)' PKG_CONFIG='$(PKG_CONFIG)' '$(srcdir)/tests/check-analysis.sh' || test $$? = 77
.PHONY: analyze
EXTRA_DIST += tests/README.md tests/again tests/allowed-skips.txt tests/in-build.sh tests/times.txt \
	tests/check-bench.sh tests/check-dist.sh tests/check-install.sh tests/check-library.sh
EXTRA_DIST += \
	tests/runner/conftest.py \
	tests/runner/estimates.py \
	tests/runner/load.py \
	tests/runner/main.py \
	tests/runner/pool.py \
	tests/runner/report.py \
	tests/runner/suites.py \
	tests/runner/test_again.py \
	tests/runner/test_pool.py \
	tests/runner/test_report.py \
	tests/runner/test_selection.py \
	tests/runner/test_suites.py
EXTRA_DIST += tests/check-man.sh tests/check-floors.sh tests/folders.txt tests/check-system.sh \
	tests/check-valgrind.sh \
	tests/unit/suite.h \
	tests/unit/async-fixture.h \
	tests/unit/connection-fixture.h \
	tests/unit/device-model.h \
	tests/unit/content-fixture.h \
	tests/unit/respcache-fixture.h \
	tests/unit/exchange-fixture.h \
	tests/unit/handle-fixture.h \
	tests/unit/kernel-fixture.h \
	tests/unit/loop-fixture.h \
	tests/unit/member-fixture.h \
	tests/unit/nabc-fixture.h \
	tests/unit/process-fixture.h \
	tests/unit/desk-fixture.h \
	tests/unit/hostile-fixture.h \
	tests/unit/request-fixture.h \
	tests/unit/status-fixture.h \
	tests/unit/transmit-fixture.h
AM_TESTS_ENVIRONMENT = srcdir='$(srcdir)'; builddir='$(abs_builddir)'; CC='$(CC)'; \
	GLIB_CFLAGS='$(GLIB_CFLAGS)'; HARDENING='$(HARDENING)'; \
	export srcdir builddir CC GLIB_CFLAGS HARDENING;

# The kernel's module in guests of QEMU; no part of make check, since it fetches
# kernels.  Without QEMU it only says so.
kernel_tests = \
	tests/kernel/build-module.sh \
	tests/kernel/check-kernel.sh \
	tests/kernel/device.c \
	tests/kernel/device.h \
	tests/kernel/fetch-kernel.sh \
	tests/kernel/guest-image.sh \
	tests/kernel/guest.c \
	tests/kernel/guest.h \
	tests/kernel/init \
	tests/kernel/library.c \
	tests/kernel/library.h \
	tests/kernel/run-guest.sh \
	tests/kernel/test-access.c \
	tests/kernel/test-arena.c \
	tests/kernel/test-bytes.c \
	tests/kernel/test-devices.c \
	tests/kernel/test-esp.c \
	tests/kernel/test-flight.c \
	tests/kernel/test-fuzz.c \
	tests/kernel/test-kill.c \
	tests/kernel/test-library.c \
	tests/kernel/test-limits.c \
	tests/kernel/test-pressure.c \
	tests/kernel/test-put.c \
	tests/kernel/test-race.c \
	tests/kernel/test-reload.c \
	tests/kernel/test-send.c \
	tests/kernel/test-sweet.sh \
	tests/kernel/test-unit.c \
	tests/kernel/test-worker.c
EXTRA_DIST += $(kernel_tests)
check-kernel: sweet/sweet nabcctl/nabcctl cgi-examples/generate
	srcdir='$(srcdir)' builddir='$(abs_builddir)' CC='$(CC)' \
		'$(srcdir)/tests/kernel/check-kernel.sh' || test $$? = 77
clean-local:
	rm -rf tests/kernel/guests tests/kernel/guests-*
distclean-local:
	rm -rf kernels
.PHONY: check-kernel

# Which lines the tests run: a build of its own, with clang.
coverage:
	srcdir='$(abs_srcdir)' builddir='$(abs_builddir)' MAKE='$(MAKE)' \
		sh '$(srcdir)/tests/coverage.sh' || test $$? = 77
.PHONY: coverage
EXTRA_DIST += tests/coverage.sh tests/coverage.py
