/* SPDX-License-Identifier: MIT */
/*
 * test-admin.c - unit tests of admin.c: the owner's counters and units as
 * an operator sees them, questions and answers of another version, and who is
 * refused.  A thread dispatches for the owner; the operator is this process too.
 */
#include <pthread.h>
#include <sys/eventfd.h>

#include "api/registry.h"
#include "api/admin.h"
#include "base/id.h"
#include "membership/serve.h"
#include "membership/attach.h"
#include "membership/grant-ops.h"
#include "nabc-fixture.h"
#include "os/peer.h"
#include "unit-holds.h"

static char directory[64], path[100];
static NC_cache *watcher;
static pthread_t thread;
static int stop;

static void *dispatch(void *context)
{
	struct pollfd waits[2] = {{.fd = NC_cache_fd(cache), .events = POLLIN},
				  {.fd = stop, .events = POLLIN}};

	(void)context;
	while (!waits[1].revents) {
		(void)poll(waits, 2, -1);
		if (NC_cache_dispatch(cache) < 0)
			return "dispatch";
	}
	return NULL;
}

static void set_up(void)
{
	make_directory(directory);
	snprintf(path, sizeof(path), "%s/cache", directory);
	open_cache(16 * MIB);
	ck_assert_int_eq(NC_cache_serve(cache, path, NULL), 0);
	stop = eventfd(0, EFD_CLOEXEC);
	ck_assert_int_ge(stop, 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, dispatch, NULL), 0);
}

static void attach(void)
{
	struct NC_attach_options options = NC_ATTACH_OPTIONS_INIT(.flags = NC_ATTACH_OPERATOR);

	watcher = NC_cache_attach(path, &options);
	ck_assert_msg(watcher, "%s", strerror(errno));
}

static void end_dispatch(void)
{
	uint64_t one = 1;
	void *complaint;

	ck_assert_int_eq(write(stop, &one, sizeof(one)), sizeof(one));
	pthread_join(thread, &complaint);
	ck_assert_msg(!complaint, "%s", (const char *)complaint);
	close(stop);
}

static void tear_down(void)
{
	end_dispatch();
	if (watcher)
		ck_assert_int_eq(NC_cache_close(watcher), 0);
	watcher = NULL;
	close_cache();
	ck_assert_int_eq(rmdir(directory), 0);
}

START_TEST(test_counters)
{
	struct NC_cache_stat here, there;
	size_t id;

	set_up();
	for (unsigned i = 0; i < 5; i++)
		id = insert(i, 100 + i);
	ck_assert_int_eq(NC_destroy(NULL, id), 0);
	FAILS(NC_destroy(NULL, id), ENOENT);
	attach();
	memset(&there, 0x55, sizeof(there));
	ck_assert_int_eq(NC_cache_stat(watcher, &there, sizeof(there)), 0);
	ck_assert_int_eq(NC_cache_stat(cache, &here, sizeof(here)), 0);
	ck_assert_uint_eq(there.inserts, 5);
	ck_assert_uint_eq(there.destroys, 1);
	ck_assert_uint_eq(there.stale, 1);
	ck_assert_uint_eq(there.members, 1);
	ck_assert_str_eq(there.uring, here.uring);
	ck_assert_mem_eq(&there, &here, sizeof(here));
	FAILS(NC_cache_stat(watcher, NULL, 1), EINVAL);
	tear_down();
}
END_TEST

/* A look exports nothing: the unit is not copied for it. */
START_TEST(test_unit)
{
	struct NC_stat here, there;
	struct NC_cache_stat counters;
	size_t id;

	set_up();
	id = insert(1, 100000);
	ck_assert_int_eq(hold_id(NULL, id), 0);
	attach();
	ck_assert_int_eq(NC_stat(watcher, id, &there, sizeof(there)), 0);
	ck_assert_int_eq(NC_stat(NULL, id, &here, sizeof(here)), 0);
	ck_assert_mem_eq(&there, &here, sizeof(here));
	ck_assert_uint_eq(there.holds, 1);
	ck_assert_int_eq(there.kind, NC_KIND_APPENDED);
	ck_assert_int_eq(NC_cache_stat(watcher, &counters, sizeof(counters)), 0);
	ck_assert_uint_eq(counters.units, 1);
	ck_assert_uint_eq(atomic_load(&cache->index.grants.count), 0);
	ck_assert_int_eq(release_id(NULL, id), 0);
	FAILS(NC_stat(watcher, id + 1, &there, sizeof(there)), ENOENT);
	FAILS(NC_stat(watcher, 0, &there, sizeof(there)), ENOENT);
	FAILS(NC_stat(watcher, SIZE_MAX, &there, sizeof(there)), ENOENT);
	FAILS(NC_stat(watcher, id, NULL, 1), EINVAL);
	tear_down();
}
END_TEST

static size_t seal(NC_cache *by, size_t size)
{
	NC_handle handle;
	size_t id;

	ck_assert_int_eq(NC_unit_alloc(by, &handle, size, 0, NC_KIND_SEALED, 0), 0);
	ck_assert_int_eq(NC_insert(&handle), 0);
	id = NC_cache_id(&handle);
	ck_assert_int_eq(NC_free(&handle), 0);
	return id;
}

static uint64_t pinned(void)
{
	struct NC_cache_stat stat;

	ck_assert_int_eq(NC_cache_stat(cache, &stat, sizeof(stat)), 0);
	return stat.pinned;
}

/* An operator decides of each unit, a member of its own, and not that they drive out others'. */
START_TEST(test_keep)
{
	struct NC_attach_options light = NC_ATTACH_OPTIONS_INIT(.flags = NC_ATTACH_LIGHT);
	NC_cache *member;
	size_t id, own;

	set_up();
	id = insert(1, 1000);
	attach();
	member = NC_cache_attach(path, &light);
	ck_assert_ptr_nonnull(member);
	own = seal(member, 1000);
	ck_assert_int_eq(NC_set_priority(watcher, id, NC_PRIORITY_PINNED), 0);
	ck_assert_int_eq(NC_set_priority(watcher, own, NC_PRIORITY_PINNED), 0);
	ck_assert_uint_eq(pinned(), 2);
	ck_assert_int_eq(NC_set_priority(member, own, NC_PRIORITY_LOW), 0);
	ck_assert_uint_eq(pinned(), 1);
	ck_assert_int_eq(NC_set_priority(member, own, NC_PRIORITY_NORMAL), 0);
	FAILS(NC_set_priority(member, own, NC_PRIORITY_HIGH), EPERM);
	FAILS(NC_set_priority(member, own, NC_PRIORITY_PINNED), EPERM);
	FAILS(NC_set_priority(member, own, (enum NC_priority)(NC_PRIORITY_PINNED + 1)), EINVAL);
	FAILS(NC_set_priority(member, own, (enum NC_priority) - 1), EINVAL);
	FAILS(NC_set_priority(watcher, own, (enum NC_priority) - 1), EINVAL);
	/* What is another's, granted or not, is not the member's to decide of. */
	ck_assert_int_eq(NC_grant(cache, id, NC_USER, geteuid()), 0);
	FAILS(NC_set_priority(member, id, NC_PRIORITY_LOW), EACCES);
	FAILS(NC_set_lifetime(member, id, 1), EACCES);
	FAILS(NC_set_lifetime(member, 12345, 1), EACCES);
	FAILS(NC_set_lifetime(watcher, 12345, 1), ENOENT);
	FAILS(NC_set_lifetime(watcher, id, UINT64_MAX), ERANGE);
	FAILS(NC_set_lifetime(member, own, UINT64_MAX), ERANGE);
	ck_assert_uint_eq(pinned(), 1);
	ck_assert_int_eq(NC_set_lifetime(member, own, 1), 0);
	ck_assert_int_eq(NC_set_lifetime(watcher, id, 1), 0);
	while (alive(own) || alive(id))
		sched_yield();
	/* What has ended is nobody's, a moment after it could not be found any more. */
	ck_assert_int_lt(NC_set_lifetime(member, own, 1), 0);
	ck_assert(errno == EACCES || errno == ENOENT);
	ck_assert_uint_eq(pinned(), 0);
	ck_assert_int_eq(NC_cache_close(member), 0);
	tear_down();
}
END_TEST

/* More routes than one answer takes, in the owner's order. */
START_TEST(test_routes)
{
	struct NC_route here[NC_ROUTES], there[NC_ROUTES + 1];
	char address[32];

	set_up();
	attach();
	ck_assert_int_eq(NC_routes(watcher, NULL, 1, 0), 0);
	for (unsigned i = 0; i < NC_ROUTES; i++) {
		snprintf(address, sizeof(address), "192.0.2.%u", i + 1);
		ck_assert_int_eq(NC_route_set(watcher, address, NC_METHOD_COPY), 0);
	}
	FAILS(NC_route_set(watcher, "198.51.100.1", NC_METHOD_COPY), ENOSPC);
	ck_assert_int_eq(NC_routes(cache, here, sizeof(*here), NC_ROUTES), NC_ROUTES);
	memset(there, 0x55, sizeof(there));
	ck_assert_int_eq(NC_routes(watcher, there, sizeof(*there), NC_ROUTES + 1), NC_ROUTES);
	for (unsigned i = 0; i < NC_ROUTES; i++) {
		ck_assert_str_eq(there[i].address, here[i].address);
		ck_assert_int_eq(there[i].method, NC_METHOD_COPY);
		ck_assert_mem_eq(there[i].octets, here[i].octets, sizeof(here[i].octets));
		ck_assert_str_eq(there[i].why, here[i].why);
	}
	/* Fewer than there are: the number is still that of all. */
	memset(there, 0x55, sizeof(there));
	ck_assert_int_eq(NC_routes(watcher, there, sizeof(*there), 2), NC_ROUTES);
	ck_assert_str_eq(there[1].address, here[1].address);
	ck_assert_int_eq(there[2].method, 0x55555555);
	ck_assert_int_eq(NC_routes(watcher, NULL, 1, 0), NC_ROUTES);
	ck_assert_int_eq(NC_route_set(watcher, "192.0.2.1", NC_ROUTE_LEARN), 0);
	FAILS(NC_routes(watcher, NULL, 1, 1), EINVAL);
	FAILS(NC_route_set(watcher, NULL, NC_METHOD_COPY), EINVAL);
	FAILS(NC_route_set(watcher, "", NC_METHOD_COPY), EINVAL);
	FAILS(NC_route_set(watcher, "nowhere", NC_METHOD_COPY), EINVAL);
	FAILS(NC_route_set(watcher,
			   "a text that is longer than that of any address of any family there is",
			   NC_METHOD_COPY),
	      EINVAL);
	FAILS(NC_route_set(watcher, "192.0.2.1", NC_METHOD_KERNEL), EOPNOTSUPP);
	FAILS(NC_route_set(watcher, "192.0.2.1", NC_METHOD_KERNEL + 1), EINVAL);
	FAILS(NC_route_set(watcher, "192.0.2.1", INT32_MIN), EINVAL);
	tear_down();
}
END_TEST

/* An owner that has stopped to dispatch, and then is gone. */
START_TEST(test_no_owner)
{
	struct NC_cache_stat stat;
	struct NC_route route;
	struct NC_stat unit;
	size_t id;

	set_up();
	id = insert(1, 10);
	attach();
	end_dispatch();
	close_cache();
	FAILS(NC_routes(watcher, &route, sizeof(route), 1), EPIPE);
	FAILS(NC_route_set(watcher, "unix", NC_METHOD_COPY), EPIPE);
	FAILS(NC_purge(watcher, "a"), EPIPE);
	FAILS(NC_cache_stat(watcher, &stat, sizeof(stat)), EPIPE);
	FAILS(NC_stat(watcher, id, &unit, sizeof(unit)), EPIPE);
	ck_assert_int_eq(NC_cache_close(watcher), 0);
	watcher = NULL;
	ck_assert_int_eq(rmdir(directory), 0);
}
END_TEST

/* Attaches by hand and asks one question with some bytes behind; the answer's error. */
static int asked(uint32_t wants, struct nc_wire_call head, const char *behind)
{
	struct {
		struct nc_wire_call head;
		char bytes[NC_WIRE_BEHIND_MAX];
	} call = {.head = head};
	struct {
		struct nc_wire_reply head;
		char bytes[NC_WIRE_BEHIND_MAX];
	} reply;
	struct nc_wire_welcome welcome;
	int socket = nc_peer_connect(path, 5000), fds[NC_PEER_FDS_MAX];
	unsigned count;

	ck_assert_int_ge(socket, 0);
	ck_assert_int_eq(nc_attach_hello(socket, wants), 0);
	ck_assert_int_eq(nc_peer_receive(socket, &welcome, sizeof(welcome), fds, &count, 5000),
			 sizeof(welcome));
	ck_assert_int_eq(nc_wire_check_welcome(&welcome, sizeof(welcome), count), 0);
	call.head.magic = NC_WIRE_MAGIC;
	if (head.length)
		memcpy(call.bytes, behind, head.length);
	ck_assert_int_eq(nc_peer_send(socket, &call, sizeof(call.head) + head.length, NULL, 0), 0);
	ck_assert_int_ge(nc_peer_receive(socket, &reply, sizeof(reply), fds, &count, 5000),
			 (ssize_t)sizeof(reply.head));
	ck_assert_uint_eq(count, 0);
	ck_assert(!reply.head.error || !reply.head.length);
	close(socket);
	return reply.head.error;
}

static int asked_counters(uint32_t wants, size_t size, uint32_t length)
{
	return asked(wants,
		     (struct nc_wire_call){.op = NC_WIRE_COUNTERS, .size = size, .length = length},
		     "8 bytes ");
}

static int asked_routes(uint32_t wants, size_t size, size_t from, uint32_t count)
{
	return asked(
		wants,
		(struct nc_wire_call){.op = NC_WIRE_ROUTES, .size = size, .id = from, .who = count},
		NULL);
}

static int asked_route(uint32_t wants, const char *address, uint32_t length, uint32_t method)
{
	return asked(wants,
		     (struct nc_wire_call){.op = NC_WIRE_ROUTE, .length = length, .who = method},
		     address);
}

static int asked_purge(uint32_t wants, const char *name, uint32_t length)
{
	return asked(wants, (struct nc_wire_call){.op = NC_WIRE_PURGE, .length = length}, name);
}

START_TEST(test_strange_questions)
{
	size_t right = sizeof(struct NC_cache_stat), one = sizeof(struct NC_route);
	uint32_t operates = NC_WIRE_OPERATOR;
	char address[NC_WIRE_BEHIND_MAX];

	memset(address, '1', sizeof(address));
	set_up();
	ck_assert_int_eq(asked_counters(operates, right, 0), 0);
	/* An older caller's, and a newer one's. */
	ck_assert_int_eq(asked_counters(operates, right - 8, 0), 0);
	ck_assert_int_eq(asked_counters(operates, right + 8, 0), 0);
	ck_assert_int_eq(asked_counters(operates, NC_WIRE_BEHIND_MAX, 0), 0);
	ck_assert_int_eq(asked_counters(operates, NC_WIRE_BEHIND_MAX + 1, 0), EPROTO);
	ck_assert_int_eq(asked_counters(operates, SIZE_MAX, 0), EPROTO);
	ck_assert_int_eq(asked_counters(operates, 0, 0), EPROTO);
	ck_assert_int_eq(asked_counters(operates, right, 8), EPROTO);
	ck_assert_int_eq(asked_routes(operates, one, 0, 1), 0);
	ck_assert_int_eq(asked_routes(operates, one, 1, UINT32_MAX), 0);
	ck_assert_int_eq(asked_routes(operates, one, SIZE_MAX, UINT32_MAX), 0);
	ck_assert_int_eq(asked_routes(operates, one - 1, 0, 1), 0);
	ck_assert_int_eq(asked_routes(operates, NC_WIRE_BEHIND_MAX, 0, 9), 0);
	ck_assert_int_eq(asked_routes(operates, NC_WIRE_BEHIND_MAX + 1, 0, 1), EPROTO);
	ck_assert_int_eq(asked_routes(operates, SIZE_MAX, 0, 1), EPROTO);
	ck_assert_int_eq(asked_routes(operates, 0, 0, 1), EPROTO);
	ck_assert_int_eq(asked_route(operates, "127.0.0.1", 9, NC_METHOD_COPY), 0);
	ck_assert_int_eq(asked_route(operates, "127.0.0.1", 10, NC_METHOD_COPY), EINVAL);
	ck_assert_int_eq(asked_route(operates, NULL, 0, NC_METHOD_COPY), EINVAL);
	ck_assert_int_eq(asked_route(operates, address, 63, NC_METHOD_COPY), EINVAL);
	ck_assert_int_eq(asked_route(operates, address, 64, NC_METHOD_COPY), EINVAL);
	ck_assert_int_eq(asked_route(operates, address, sizeof(address), NC_METHOD_COPY), EINVAL);
	ck_assert_int_eq(asked_route(operates, "127.0.0.1", 9, 1u << 31), EINVAL);
	ck_assert_int_eq(asked_purge(operates, address, NC_PURGE_MAX), EOPNOTSUPP);
	ck_assert_int_eq(asked_purge(operates, address, NC_PURGE_MAX + 1), EINVAL);
	ck_assert_int_eq(asked_purge(operates, "a\0b", 3), EINVAL);
	ck_assert_int_eq(asked_purge(operates, "a", 2), EINVAL);
	/* Who looks after nothing is told nothing, and sets nothing. */
	ck_assert_int_eq(asked_purge(0, "a", 1), EPERM);
	ck_assert_int_eq(asked_counters(0, right, 0), EPERM);
	ck_assert_int_eq(asked_routes(0, one, 0, 1), EPERM);
	ck_assert_int_eq(asked_route(0, "127.0.0.1", 9, NC_METHOD_COPY), EPERM);
	ck_assert_int_eq(asked(0, (struct nc_wire_call){.op = NC_WIRE_STAT}, NULL), EACCES);
	ck_assert_int_eq(asked(0, (struct nc_wire_call){.op = NC_WIRE_KEEP, .slot = 1}, NULL),
			 EACCES);
	ck_assert_int_eq(asked(operates, (struct nc_wire_call){.op = NC_WIRE_KEEP}, NULL), EINVAL);
	ck_assert_int_eq(
		asked(operates, (struct nc_wire_call){.op = NC_WIRE_KEEP, .slot = 3}, NULL),
		EINVAL);
	tear_down();
}
END_TEST

/* --- an owner that answers what it likes ----------------------------------------- */

static struct nc_index guest;
static struct nc_transmit transmit;
static int ends[2];

/* The answer to the first question waits there before it is asked. */
static void reply_first(const void *bytes, uint32_t length, int error, uint64_t size)
{
	struct {
		struct nc_wire_reply head;
		char bytes[NC_WIRE_BEHIND_MAX];
	} reply = {.head = {.magic = NC_WIRE_MAGIC,
			    .tag = 1,
			    .error = error,
			    .size = size,
			    .length = length}};

	guest = (struct nc_index){.operates = true, .own.number = NC_ID_MEMBERS_MAX};
	transmit.index = &guest;
	ck_assert_int_eq(nc_peer_pair(ends), 0);
	nc_rpc_client_init(&guest.rpc);
	nc_rpc_client_open(&guest.rpc, ends[0]);
	if (length)
		memcpy(reply.bytes, bytes, length);
	ck_assert_int_eq(nc_peer_send(ends[1], &reply, sizeof(reply.head) + length, NULL, 0), 0);
}

static int ends_with(int result)
{
	nc_rpc_client_fini(&guest.rpc);
	close_pair(ends);
	return result;
}

static int counters(const void *bytes, uint32_t length, int error, struct NC_cache_stat *stat)
{
	reply_first(bytes, length, error, 0);
	return ends_with(nc_admin_counters(&transmit, stat));
}

static int unit(const void *bytes, uint32_t length)
{
	struct NC_stat stat;

	reply_first(bytes, length, 0, 0);
	return ends_with(nc_admin_stat(&guest, 1, &stat));
}

static int list(const void *bytes, uint32_t length)
{
	struct NC_stat units[4];
	size_t cursor = 0;

	reply_first(bytes, length, 0, 0);
	return ends_with(nc_grant_ops_list_all(&guest, &cursor, units, 4));
}

static int route(const void *bytes, uint32_t length, uint64_t found, struct NC_route *told)
{
	reply_first(bytes, length, 0, found);
	return ends_with(nc_admin_routes(&transmit, told, 1));
}

START_TEST(test_strange_answers)
{
	static char bytes[NC_WIRE_BEHIND_MAX];
	struct NC_cache_stat stat;
	struct NC_route told;
	uint32_t right = sizeof(stat), one = sizeof(struct NC_stat);

	memset(bytes, 'x', sizeof(bytes));
	ck_assert_int_eq(counters(bytes, right, 0, &stat), 0);
	/* Whatever was sent, the text has an end. */
	ck_assert_uint_eq(strnlen(stat.uring, sizeof(stat.uring)), sizeof(stat.uring) - 1);
	ck_assert_int_eq(counters(bytes, right - 8, 0, &stat), -EPROTO);
	ck_assert_int_eq(counters(bytes, right + 8, 0, &stat), -EPROTO);
	ck_assert_int_eq(counters(bytes, sizeof(bytes), 0, &stat), -EPROTO);
	ck_assert_int_eq(counters(bytes, 0, 0, &stat), -EPROTO);
	ck_assert_int_eq(counters(bytes, 0, EPERM, &stat), -EPERM);
	ck_assert_int_eq(unit(bytes, one), 0);
	ck_assert_int_eq(unit(bytes, one - 1), -EPROTO);
	ck_assert_int_eq(unit(bytes, one + 1), -EPROTO);
	ck_assert_int_eq(unit(bytes, 0), -EPROTO);
	ck_assert_int_eq(route(bytes, sizeof(told), 1, &told), 1);
	ck_assert_uint_eq(strnlen(told.address, sizeof(told.address)), sizeof(told.address) - 1);
	ck_assert_uint_eq(strnlen(told.why, sizeof(told.why)), sizeof(told.why) - 1);
	/* More are said to be there; none is, whatever is said. */
	ck_assert_int_eq(route(bytes, sizeof(told), 7, &told), 7);
	ck_assert_int_eq(route(bytes, 0, 7, &told), 0);
	ck_assert_int_eq(route(bytes, sizeof(told), (uint64_t)INT32_MAX + 1, &told), -EPROTO);
	ck_assert_int_eq(route(bytes, sizeof(told) - 1, 1, &told), -EPROTO);
	ck_assert_int_eq(route(bytes, 2 * sizeof(told), 2, &told), -EPROTO);
	ck_assert_int_eq(list(bytes, 4 * one), 4);
	ck_assert_int_eq(list(bytes, 0), 0);
	ck_assert_int_eq(list(bytes, one - 1), -EPROTO);
	ck_assert_int_eq(list(bytes, one + 1), -EPROTO);
	ck_assert_int_eq(list(bytes, 5 * one), -EPROTO);
}
END_TEST

/* --- what is forgotten by name ------------------------------------------------------- */

static char forgotten[NC_PURGE_MAX + 2];

static int note_name(void *context, const char *name)
{
	snprintf(forgotten, sizeof(forgotten), "%s", name);
	return *(int *)context;
}

START_TEST(test_purge)
{
	struct NC_attach_options light = NC_ATTACH_OPTIONS_INIT(.flags = NC_ATTACH_LIGHT);
	char name[NC_PURGE_MAX + 2];
	NC_cache *member;
	int result = 7;

	set_up();
	attach();
	FAILS(NC_purge(watcher, "a"), EOPNOTSUPP);
	FAILS(NC_purge(cache, "a"), EOPNOTSUPP);
	FAILS(NC_cache_on_purge(watcher, note_name, &result), EPERM);
	ck_assert_int_eq(NC_cache_on_purge(cache, note_name, &result), 0);
	ck_assert_int_eq(NC_purge(watcher, "http://a/b?c"), 7);
	ck_assert_str_eq(forgotten, "http://a/b?c");
	ck_assert_int_eq(NC_purge(cache, "tag"), 7);
	ck_assert_str_eq(forgotten, "tag");
	ck_assert_int_eq(NC_purge(watcher, ""), 7);
	ck_assert_str_eq(forgotten, "");
	memset(name, 'x', sizeof(name));
	name[NC_PURGE_MAX + 1] = '\0';
	FAILS(NC_purge(watcher, name), EINVAL);
	FAILS(NC_purge(cache, name), EINVAL);
	name[NC_PURGE_MAX] = '\0';
	ck_assert_int_eq(NC_purge(watcher, name), 7);
	ck_assert_str_eq(forgotten, name);
	FAILS(NC_purge(watcher, NULL), EINVAL);
	result = -ENOENT;
	FAILS(NC_purge(watcher, "a"), ENOENT);
	FAILS(NC_purge(cache, "a"), ENOENT);
	/* Members without privileges cannot, not even what is theirs. */
	member = NC_cache_attach(path, &light);
	ck_assert_ptr_nonnull(member);
	forgotten[0] = '\0';
	FAILS(NC_purge(member, "a"), EPERM);
	ck_assert_str_eq(forgotten, "");
	ck_assert_int_eq(NC_cache_close(member), 0);
	ck_assert_int_eq(NC_cache_on_purge(cache, NULL, NULL), 0);
	FAILS(NC_purge(watcher, "a"), EOPNOTSUPP);
	tear_down();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_counters);
	tcase_add_test(tcase, test_unit);
	tcase_add_test(tcase, test_keep);
	tcase_add_test(tcase, test_routes);
	tcase_add_test(tcase, test_purge);
	tcase_add_test(tcase, test_no_owner);
	tcase_add_test(tcase, test_strange_questions);
	tcase_add_test(tcase, test_strange_answers);
}

RUN_SUITE("admin", fill)
