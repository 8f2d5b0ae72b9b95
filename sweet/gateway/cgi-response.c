/* SPDX-License-Identifier: MIT */
/*
 * cgi-response.c - reads the output of CGI programs.
 *
 * The output of a killed program ends like any other output.  So if the program has not announced
 * the length of its response, the end of the output counts as the end of the response only if the
 * program has exited by itself, or still runs.
 */
#include <errno.h>
#include <glib.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>

#include "backend/backend-call.h"
#include "backend/pool.h"
#include "backend/read-buffer.h"
#include "backend/response-stream.h"
#include "base/slice.h"
#include "config/pool-config.h"
#include "core/transaction.h"
#include "event/loop.h"
#include "event/sender.h"
#include "gateway/cgi-internal.h"
#include "log/log.h"
#include "spawn/cgi-run.h"
#include "spawn/spawner.h"

/* Whether the response is complete. */
static bool is_complete(const struct backend_call *call, const struct response_stream *stream)
{
	return stream->has_head && !stream->failed &&
	       (stream->left == 0 || call->transaction->head_only);
}

void cgi_detach(struct backend_call *call)
{
	struct cgi_call *own = cgi_call_of(call);
	struct cgi_run *run = own->run;

	own->run = NULL;
	read_buffer_free(own->last);
	own->last = NULL;
	if (!run)
		return;
	response_stream_keep_back(&own->stream);
	if (run->out_fd >= 0 && !is_complete(call, &own->stream))
		cgi_run_end(run);
	cgi_run_release(run, call->pool->settings->answer_ms);
}

/* Ends the stream: complete, or with a fault.  The caller settles the run. */
static void end_stream(struct cgi_run *run, const char *fault)
{
	struct backend_call *call = run->user;

	response_stream_end(&cgi_call_of(call)->stream, fault);
	/* If it was detached, it may be freed. */
	if (run->user)
		cgi_detach(call);
}

/* Whether everything was read, and no process can write any more. */
static bool is_at_end(int fd)
{
	struct pollfd state = {.fd = fd, .events = POLLIN};

	return poll(&state, 1, 0) == 1 && state.revents == POLLHUP;
}

static void close_output(struct cgi_run *run)
{
	loop_close_fd(run->loop, run->out_fd);
	run->out_fd = -1;
}

static bool was_ended(const struct cgi_run *run)
{
	return run->over && (run->status < 0 || WIFSIGNALED(run->status));
}

/* The output has ended, and the program's exit status is known or does not matter. */
void cgi_settled(struct cgi_run *run)
{
	struct backend_call *call = run->user;
	struct cgi_call *own = cgi_call_of(call);
	struct read_buffer *last = own->last;

	own->last = NULL;
	/* Without a head the response fails in any case. */
	if (was_ended(run) && !is_complete(call, &own->stream) &&
	    (own->stream.has_head || own->stream.held)) {
		read_buffer_free(last);
		end_stream(run, "was killed, possibly before its response was complete");
		return;
	}
	response_stream_last(&own->stream, last);
	/* If it was detached, it may be freed. */
	if (run->user)
		cgi_detach(call);
}

/* last: the last buffer, already fed to the stream; or NULL. */
static void output_ended(struct cgi_run *run, struct read_buffer *last)
{
	struct cgi_call *own = cgi_call_of(run->user);

	close_output(run);
	own->last = last;
	own->at_end = true;
	response_stream_keep_back(&own->stream);
	if (run->over || is_complete(run->user, &own->stream))
		cgi_settled(run);
	else
		cgi_run_await_end(run);
}

/* Reads one buffer.  Returns false if there is no more for now, or at all. */
static bool read_window(struct cgi_run *run)
{
	struct backend_call *call = run->user;
	struct response_stream *stream = &cgi_call_of(call)->stream;
	/* Before the response the call's own timer runs. */
	unsigned ms = call->state == CALL_ANSWERED ? call->pool->settings->answer_ms : 0;
	struct read_buffer *buffer;
	int error;

	if (!response_stream_takes_more(stream)) {
		cgi_run_expect(run, 0);
		return false;
	}
	buffer = read_buffer_read(run->out_fd, 0, &error);
	if (!buffer && (error == -EAGAIN || response_stream_awaits_memory(stream, error))) {
		cgi_run_expect(run, ms);
		return false;
	}
	if (!buffer && error) {
		close_output(run);
		end_stream(run, strerror(-error));
		return false;
	}
	if (!buffer) {
		output_ended(run, NULL);
		return false;
	}
	if (response_stream_feed(stream, buffer, (struct slice){buffer->data, buffer->length})) {
		if (!is_at_end(run->out_fd)) {
			response_stream_add(stream, buffer);
			return run->user != NULL;
		}
		output_ended(run, buffer);
		return false;
	}
	read_buffer_free(buffer);
	if (run->user)
		cgi_detach(call);
	return false;
}

void cgi_read(struct cgi_run *run)
{
	unsigned buffers = 0;

	if (run->reading || !run->user || run->out_fd < 0)
		return;
	run->reading = true;
	while (!run->unwanted && read_window(run)) {
		if (++buffers == RESPONSE_STREAM_TURN) {
			response_stream_read_later(&cgi_call_of(run->user)->stream);
			break;
		}
	}
	if (run->unwanted && run->user) {
		struct backend_call *call = run->user;

		cgi_detach(call);
		backend_call_fail(call, 502, NULL);
	}
	run->reading = false;
	cgi_run_settle(run);
}

void cgi_refused(struct cgi_run *run, int error)
{
	struct backend_call *call = run->user;
	char name[512];
	int status;

	switch (error) {
	case ENOENT:
	case ENOTDIR:
	case ENAMETOOLONG:
		status = 404;
		break;
	case EACCES:
	case EISDIR:
		status = 403;
		break;
	case EAGAIN:
		status = 503;
		break;
	case EOWNERDEAD:
		/* The program may have run. */
		status = 502;
		break;
	default:
		status = 500;
	}
	/* The client has chosen no file: a command cannot be missing because of its request. */
	if (run->command && (status == 404 || status == 403))
		status = 500;
	log_at(status == 404 ? LOG_LEVEL_INFO : LOG_LEVEL_WARNING, "%s: cannot be run: %s",
	       cgi_run_name(run, name, sizeof(name)), strerror(error));
	cgi_detach(call);
	backend_call_fail(call, status, NULL);
}

void cgi_break_off(struct cgi_run *run, const char *fault)
{
	run->reading = true;
	end_stream(run, fault);
	run->reading = false;
	cgi_run_settle(run);
}

void cgi_silent(struct cgi_run *run)
{
	cgi_break_off(run, "stopped writing in the middle of its response");
}

static void cgi_resume(struct backend_call *call)
{
	if (cgi_call_of(call)->run)
		cgi_read(cgi_call_of(call)->run);
}

/* Refuses a unit that neither the program nor a process of its session made. */
static const char *cgi_refusal(struct backend_call *call, size_t id)
{
	const struct start *start = &cgi_call_of(call)->run->start;

	return sender_leads_maker(start->pid, start->asked, id)
		       ? NULL
		       : "neither the program nor a process of its session made it";
}

const char *cgi_name(struct backend_call *call, char *out, size_t size)
{
	const struct cgi_run *run = cgi_call_of(call)->run;

	if (run)
		return cgi_run_name(run, out, size);
	g_snprintf(out, size, "pool %s", call->pool->settings->name);
	return out;
}

const struct response_stream_source cgi_source = {
	.resume = cgi_resume, .refusal = cgi_refusal, .name = cgi_name};
