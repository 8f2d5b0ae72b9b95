# SPDX-License-Identifier: MIT
# The manual; tests/check-man.sh compares it with the headers.
man3_MANS = \
	man/NC_access.3 \
	man/NC_alloc.3 \
	man/NC_backend_arm.3 \
	man/NC_backend_body.3 \
	man/NC_backend_cancel.3 \
	man/NC_backend_close.3 \
	man/NC_backend_data_free.3 \
	man/NC_backend_fd.3 \
	man/NC_backend_kick.3 \
	man/NC_backend_pending.3 \
	man/NC_backend_pid.3 \
	man/NC_backend_pidfd.3 \
	man/NC_backend_reap.3 \
	man/NC_backend_sent.3 \
	man/NC_backend_start.3 \
	man/NC_backend_started.3 \
	man/NC_backend_stop.3 \
	man/NC_backend_submit.3 \
	man/NC_backend_withdraw.3 \
	man/NC_cache_attach.3 \
	man/NC_cache_close.3 \
	man/NC_cache_dispatch.3 \
	man/NC_cache_fd.3 \
	man/NC_cache_id.3 \
	man/NC_cache_on_evict.3 \
	man/NC_cache_on_purge.3 \
	man/NC_cache_open.3 \
	man/NC_cache_serve.3 \
	man/NC_cache_stat.3 \
	man/NC_checksum.3 \
	man/NC_data.3 \
	man/NC_destroy.3 \
	man/NC_file.3 \
	man/NC_fragment.3 \
	man/NC_free.3 \
	man/NC_grant.3 \
	man/NC_grants.3 \
	man/NC_hold.3 \
	man/NC_hold_nowait.3 \
	man/NC_insert.3 \
	man/NC_list.3 \
	man/NC_name_hold.3 \
	man/NC_name_remove.3 \
	man/NC_name_set.3 \
	man/NC_pread.3 \
	man/NC_prep_send.3 \
	man/NC_printf.3 \
	man/NC_purge.3 \
	man/NC_read.3 \
	man/NC_release.3 \
	man/NC_request_variable.3 \
	man/NC_response_headers_check.3 \
	man/NC_response_headers_parse.3 \
	man/NC_revoke.3 \
	man/NC_ring_buffers_clear.3 \
	man/NC_ring_buffers_close.3 \
	man/NC_ring_buffers_open.3 \
	man/NC_route_set.3 \
	man/NC_routes.3 \
	man/NC_send.3 \
	man/NC_send_op_abandon.3 \
	man/NC_send_op_close.3 \
	man/NC_send_op_complete.3 \
	man/NC_send_op_open.3 \
	man/NC_send_op_reopen.3 \
	man/NC_send_op_sent.3 \
	man/NC_send_op_steps.3 \
	man/NC_sender_cancel.3 \
	man/NC_sender_close.3 \
	man/NC_sender_fd.3 \
	man/NC_sender_open.3 \
	man/NC_sender_reap.3 \
	man/NC_sender_send.3 \
	man/NC_sender_submit.3 \
	man/NC_sendfile.3 \
	man/NC_set_lifetime.3 \
	man/NC_set_priority.3 \
	man/NC_sizeof.3 \
	man/NC_socksend.3 \
	man/NC_stat.3 \
	man/NC_stream.3 \
	man/NC_unit_alloc.3 \
	man/NC_unit_alloc_wait.3 \
	man/NC_unit_grow.3 \
	man/NC_unit_insert.3 \
	man/NC_unit_insert_with.3 \
	man/NC_unit_read.3 \
	man/NC_verify.3 \
	man/NC_version.3 \
	man/NC_vprintf.3 \
	man/NC_worker_abort.3 \
	man/NC_worker_accept.3 \
	man/NC_worker_body.3 \
	man/NC_worker_close.3 \
	man/NC_worker_fd.3 \
	man/NC_worker_gone.3 \
	man/NC_worker_interim.3 \
	man/NC_worker_open.3 \
	man/NC_worker_replace.3 \
	man/NC_worker_respond.3 \
	man/NC_worker_send.3 \
	man/NC_worker_trailers.3 \
	man/NC_write.3
man4_MANS = man/nabc.4
man7_MANS = man/nabc.7
EXTRA_DIST += $(man3_MANS) $(man4_MANS) $(man7_MANS)

# Of what --disable-sweet leaves out.
more_man3 = man/NC_sender_source_new.3 man/NC_source_new.3
more_man1 = man/nabcctl.1
more_man5 = man/sweet.conf.5
more_man7 = man/libnabc-fcgi.7
more_man8 = man/sweet-experiments.8 man/sweet.8
EXTRA_DIST += $(more_man1) $(more_man3) $(more_man5) $(more_man7) $(more_man8)
if SWEET
man1_MANS = $(more_man1)
man3_MANS += $(more_man3)
man5_MANS = $(more_man5)
man7_MANS += $(more_man7)
man8_MANS = $(more_man8)
endif
