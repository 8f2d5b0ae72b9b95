/* SPDX-License-Identifier: MIT */
/*
 * backend.c - starts a worker and communicates with it through shared queues.
 *
 * A worker's record is copied out of the queue, checked, and used only then.  The
 * unit that it names must be the worker's own, and is held before the caller gets
 * the response, so nothing that the worker does later can make a send fail.  A
 * channel belongs to one thread; one thread at a time starts and ends workers.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <nabc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fragment.h"
#include "base/id.h"
#include "cache/grant.h"
#include "cache/hold.h"
#include "cache/index.h"
#include "cache/remote-member.h"
#include "membership/serve.h"
#include "os/descriptor.h"
#include "os/peer.h"
#include "os/queue.h"
#include "store/unit.h"
#include "wire/pipe-reader.h"
#include "wire/wire.h"
#include "worker/backend.h"

#define RECORD_MAX                                                                                 \
	(sizeof(struct nc_wire_response) + NC_WIRE_RANGES_MAX * sizeof(struct NC_range) +          \
	 NC_WIRE_BLOCK_MAX)

static_assert(NC_WIRE_BLOCK_MAX == NC_BLOCK_MAX, "the header promises it");
static_assert(NC_WIRE_RANGES_MAX == NC_RESPONSE_RANGES_MAX, "the header promises it");
static_assert(NC_WIRE_CHANNELS_MAX == NC_CHANNELS_MAX, "the header promises it");

static int open_doorbell(struct nc_backend_channel *channel)
{
	channel->doorbell = nc_doorbell_open();
	return channel->doorbell < 0 ? channel->doorbell : 0;
}

/* Only this end of the pipe is non-blocking. */
static int open_pipe(struct NC_backend *backend, struct nc_backend_channel *channel)
{
	int ends[2], error = nc_descriptor_pair(pipe2(ends, O_CLOEXEC), ends);

	if (error)
		return error;
	channel->doorbell = ends[0];
	channel->writer = ends[1];
	if (fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	channel->reader = nc_pipe_reader_open(ends[0], backend->index->max_unit);
	return channel->reader ? 0 : -ENOMEM;
}

static int open_channels(struct NC_backend *backend, bool posix, int *extra)
{
	size_t footprint = nc_channels_footprint(backend->channels, NC_CHANNEL_QUEUE);
	int error = nc_segment_create(&backend->queues,
				      (footprint + NC_PAGE - 1) / NC_PAGE * NC_PAGE, false, true);

	if (error)
		return error;
	extra[0] = backend->queues.fd;
	error = nc_doorbell_open_pipe(&backend->watch, &backend->ring);
	if (error)
		return error;
	extra[1] = backend->watch;
	for (unsigned i = 0; i < backend->channels; i++) {
		struct nc_backend_channel *channel = &backend->channel[i];

		nc_channel_init(&channel->queues, backend->queues.base, i, NC_CHANNEL_QUEUE);
		nc_queue_set_claims(&channel->queues.requests, NC_CHANNEL_CLAIMS);
		channel->record = malloc(RECORD_MAX);
		if (!channel->record)
			return -ENOMEM;
		error = posix ? open_pipe(backend, channel) : open_doorbell(channel);
		if (error)
			return error;
		extra[2 + i] = posix ? channel->writer : channel->doorbell;
	}
	return 0;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static int start(struct NC_backend *backend, int socket, const struct NC_backend_options *options)
{
	struct nc_process *process = &backend->process;
	int output = options->flags & NC_BACKEND_OUTPUT ? options->output : -1;
	int error = nc_process_start(process, socket, output, options->argv, options->environment);

	return error ? error
		     : nc_serve_expect(backend->serve, backend->guest, process->pid, process->pidfd,
				       true);
}

int nc_backend_adopt(struct NC_backend *backend, pid_t pid, int pidfd)
{
	int error;

	if (backend->process.pidfd >= 0)
		return -EALREADY;
	if (pid <= 0 || pidfd < 0)
		return -EINVAL;
	error = nc_serve_expect(backend->serve, backend->guest, pid, pidfd, false);
	if (!error)
		nc_process_adopt(&backend->process, pid, pidfd);
	return error;
}

/* Starts the worker with the caller's function, and returns the function's error. */
static int start_by_caller(struct NC_backend *backend, int socket,
			   const struct NC_backend_options *options)
{
	char **environment = nc_process_environment(options->environment);
	pid_t pid = 0;
	int pidfd = -1, error = 0;

	if (!environment)
		return -ENOMEM;
	errno = 0;
	if (options->start(options->context, socket, environment, &pid, &pidfd) < 0)
		error = errno ? -errno : -EIO;
	free(environment);
	if (error || pid == 0)
		return error;
	error = nc_backend_adopt(backend, pid, pidfd);
	/* The process already exists, so it must be ended. */
	if (error && pidfd >= 0)
		nc_process_adopt(&backend->process, pid, pidfd);
	return error;
}

int nc_backend_open(struct nc_serve *serve, _Atomic unsigned *open,
		    const struct NC_backend_options *options, struct NC_backend **result)
{
	int pair[2] = {-1, -1}, extra[NC_PEER_FDS_MAX];
	struct nc_index *index = serve->index;
	struct NC_backend *backend;
	bool posix;
	int error;

	if (!index->owner)
		return -EPERM;
	if (!options || options->channels == 0 || options->channels > NC_CHANNELS_MAX ||
	    (options->flags & ~(NC_BACKEND_POSIX | NC_BACKEND_OUTPUT)) ||
	    (options->flags & NC_BACKEND_OUTPUT && options->output < 0) ||
	    (!options->start && (!options->argv || !options->argv[0])))
		return -EINVAL;
	posix = options->flags & NC_BACKEND_POSIX;
	backend = calloc(1, sizeof(*backend) + options->channels * sizeof(backend->channel[0]));
	if (!backend)
		return -ENOMEM;
	backend->serve = serve;
	backend->open = open;
	atomic_fetch_add_explicit(open, 1, memory_order_relaxed);
	backend->index = index;
	backend->channels = options->channels;
	backend->process = (struct nc_process){.pid = -1, .pidfd = -1};
	backend->watch = backend->ring = -1;
	backend->queues.fd = -1;
	for (unsigned i = 0; i < backend->channels; i++)
		backend->channel[i].doorbell = backend->channel[i].writer = -1;
	error = open_channels(backend, posix, extra);
	if (!error)
		error = nc_peer_pair(pair);
	if (!error) {
		struct nc_serve_offer offer = {.memory = options->memory ? options->memory
									 : index->member_size,
					       .channels = backend->channels,
					       .queue_size = NC_CHANNEL_QUEUE,
					       .extra = extra,
					       .flags = posix ? NC_WIRE_POSIX : 0};

		error = nc_serve_offer(serve, pair[0], &offer, &backend->guest);
		if (error) {
			close(pair[0]);
			backend->guest = NULL;
		} else {
			backend->remote = nc_guest_remote(backend->guest);
		}
	}
	/* Only the worker may keep it, so that its end is noticed. */
	for (unsigned i = 0; i < backend->channels; i++)
		close_fd(&backend->channel[i].writer);
	if (!error)
		error = options->start ? start_by_caller(backend, pair[1], options)
				       : start(backend, pair[1], options);
	if (pair[1] >= 0)
		close(pair[1]);
	if (error) {
		nc_backend_end(backend);
		return error;
	}
	*result = backend;
	return 0;
}

/* The worker's sleep ends, as all that the pipe wakes it for. */
void nc_backend_stop(struct NC_backend *backend)
{
	close_fd(&backend->ring);
}

void nc_backend_end(struct NC_backend *backend)
{
	nc_backend_stop(backend);
	nc_process_end(&backend->process);
	if (backend->guest)
		nc_serve_dismiss(backend->serve, backend->guest);
	close_fd(&backend->watch);
	for (unsigned i = 0; i < backend->channels; i++) {
		struct nc_backend_channel *channel = &backend->channel[i];

		/* The reader owns its descriptor. */
		if (channel->reader)
			nc_pipe_reader_close(channel->reader);
		else
			close_fd(&channel->doorbell);
		close_fd(&channel->writer);
		free(channel->record);
		nc_send_windows_fini(&backend->channel[i].windows);
		nc_pending_tags_fini(&backend->channel[i].tags);
	}
	nc_segment_close(&backend->queues);
	/* Pairs with the acquire in close_locked() of the registry. */
	atomic_fetch_sub_explicit(backend->open, 1, memory_order_release);
	free(backend);
}

/* Whether the unit is in the worker's segment, or was sealed by the worker. */
static bool is_workers(struct NC_backend *backend, size_t id)
{
	bool made;

	if (nc_id_member(id) == backend->remote->number)
		return true;
	(void)nc_grants_known(&backend->index->grants, id, nc_guest_subject(backend->guest), &made);
	return made;
}

/* Holds the unit if it is the worker's and the range is inside. */
static bool hold_range(struct NC_backend *backend, const struct NC_range *range,
		       struct NC_hold *hold)
{
	struct nc_view view;

	if (!is_workers(backend, range->id) ||
	    nc_index_hold(backend->index, range->id, false, &view))
		return false;
	nc_unit_end_grace(view.unit);
	nc_hold_write(hold, backend->index, &view);
	if (range->offset <= view.unit->layout.size &&
	    range->length <= view.unit->layout.size - range->offset)
		return true;
	/* A worker that names a unit with a wrong range does not need it any more. */
	(void)nc_index_destroy(backend->index, range->id);
	(void)nc_index_release(backend->index, range->id);
	return false;
}

/*
 * Returns units of ranges from `first` on to the worker, except kept ones: they
 * will not be sent.
 */
static void give_back(struct NC_backend *backend, const struct nc_wire_response *wire,
		      const struct NC_range *ranges, unsigned first)
{
	for (unsigned i = first; i < wire->ranges; i++)
		if (!nc_wire_keeps(wire->flags, i) && is_workers(backend, ranges[i].id))
			(void)nc_index_destroy(backend->index, ranges[i].id);
}

/* Holds each range once, all of them or none. */
static bool accept_ranges(struct NC_backend *backend, const struct nc_wire_response *wire,
			  const struct NC_range *ranges, struct NC_hold *holds)
{
	unsigned held = 0;
	bool good;

	while (held < wire->ranges && hold_range(backend, &ranges[held], &holds[held]))
		held++;
	good = held == wire->ranges;
	/*
	 * After the send, these units belong to the worker again: destroyed now,
	 * they live as long as the holds.  Only after the loop, since a list may
	 * name a unit more than once.
	 */
	for (unsigned i = 0; i < held; i++) {
		if (!nc_wire_keeps(wire->flags, i))
			(void)nc_index_destroy(backend->index, ranges[i].id);
		if (!good)
			(void)nc_index_release(backend->index, ranges[i].id);
	}
	if (!good)
		give_back(backend, wire, ranges, held + 1);
	return good;
}

/* Returns 1, or -EPROTO: it is asked once. */
static int note_replace(struct nc_backend_channel *channel, struct NC_response *response)
{
	if (channel->replace)
		return -EPROTO;
	channel->replace = true;
	*response = (struct NC_response)NC_RESPONSE_INIT(.flags = NC_RESPONSE_REPLACE);
	return 1;
}

/* Returns 1 if the response is for the caller, 0 if it is dropped, or -errno. */
static int judge(struct NC_backend *backend, unsigned number, const struct nc_wire_response *wire,
		 struct NC_response *response)
{
	struct nc_backend_channel *channel = &backend->channel[number];
	const struct NC_range *ranges = nc_wire_ranges(channel->record);
	uint32_t piece = wire->flags & NC_RESPONSE_PIECE;

	if (wire->flags & NC_RESPONSE_REPLACE)
		return note_replace(channel, response);
	/*
	 * An ordinary response in one record need not be checked against the
	 * windows if there are none.
	 */
	if (nc_send_windows_any(&channel->windows) || wire->flags & ~NC_RESPONSE_KEEP) {
		int verdict = nc_send_windows_judge(&channel->windows, wire);

		if (verdict == NC_SEND_WINDOW_DROP)
			give_back(backend, wire, ranges, 0);
		if (verdict != NC_SEND_WINDOW_PASS)
			return verdict;
	}
	if (accept_ranges(backend, wire, ranges, channel->holds)) {
		*response = (struct NC_response)
			NC_RESPONSE_INIT(.status = wire->status, .flags = wire->flags,
					 .headers = nc_wire_headers(channel->record, wire),
					 .headers_length = wire->headers_length, .ranges = ranges,
					 .holds = channel->holds, .range_count = wire->ranges);
		if (wire->ranges == 1)
			response->body = ranges[0];
		return 1;
	}
	*response =
		(struct NC_response)NC_RESPONSE_INIT(.status = piece ? 0 : 502,
						     .flags = piece ? piece | NC_RESPONSE_ABORTED
								    : 0);
	/* The response is over for the caller, so the worker must end it as well. */
	if (wire->flags & NC_RESPONSE_MORE) {
		nc_send_windows_break(&channel->windows, wire->tag);
		(void)nc_backend_cancel(backend, number, wire->tag);
		nc_backend_wake(backend, number);
	}
	return 1;
}

/* After the last record of a response, its tag is free. */
static void note_end(struct nc_backend_channel *channel, const struct nc_wire_response *wire)
{
	if (!(wire->flags &
	      (NC_RESPONSE_MORE | NC_RESPONSE_TAKEN | NC_RESPONSE_REPLACE | NC_RESPONSE_INTERIM)))
		nc_pending_tags_remove(&channel->tags, wire->tag);
}

/* The same for a response that came as bytes. */
static int take_bytes(struct nc_backend_channel *channel, uint64_t *tag,
		      struct NC_response *response)
{
	struct nc_wire_response wire;
	const char *record;
	size_t length;
	char *data;
	int result;

	while ((result = nc_pipe_reader_take(channel->reader, &record, &wire, &data, &length)) ==
	       1) {
		if (wire.flags & NC_RESPONSE_REPLACE) {
			*tag = wire.tag;
			return note_replace(channel, response);
		}
		note_end(channel, &wire);
		result = nc_send_windows_judge(&channel->windows, &wire);
		if (result == NC_SEND_WINDOW_PASS)
			break;
		free(data);
		if (result < 0)
			return result;
	}
	if (result <= 0)
		return result;
	*tag = wire.tag;
	*response = (struct NC_response)NC_RESPONSE_INIT(.status = wire.status,
							 .flags = wire.flags & ~NC_WIRE_KEPT,
							 .headers = nc_wire_headers(record, &wire),
							 .headers_length = wire.headers_length,
							 .data = data, .data_length = length);
	return 1;
}

int nc_backend_take(struct NC_backend *backend, unsigned number, uint64_t *tag,
		    struct NC_response *response)
{
	struct nc_backend_channel *channel = &backend->channel[number];
	struct nc_wire_response wire;
	int result;

	if (channel->reader)
		return take_bytes(channel, tag, response);
	do {
		int64_t length =
			nc_queue_pop(&channel->queues.responses, channel->record, RECORD_MAX);

		if (length <= 0)
			return (int)length;
		if (nc_wire_check_response(channel->record, (size_t)length, &wire))
			return -EPROTO;
		if (nc_queue_must_ring_room(&channel->queues.responses))
			nc_doorbell_ring(backend->ring);
		*tag = wire.tag;
		note_end(channel, &wire);
		result = judge(backend, number, &wire, response);
	} while (result == 0);
	return result;
}

int nc_backend_sleep(struct NC_backend *backend, unsigned number, unsigned responses)
{
	struct nc_backend_channel *channel = &backend->channel[number];

	return channel->reader ? nc_pipe_reader_ready(channel->reader)
			       : nc_queue_arm(&channel->queues.responses, responses);
}
