/* SPDX-License-Identifier: MIT */
/* grant-fixture.h - the table of grants alone, with made-up members. */
#ifndef GRANT_FIXTURE_H
#define GRANT_FIXTURE_H

#include <fcntl.h>
#include <nabc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fragment.h"
#include "base/id.h"
#include "cache/grant.h"
#include "os/identity.h"
#include "os/segment.h"
#include "store/revocation-map.h"
#include "wire/wire.h"

#include "process-fixture.h"
#include "suite.h"

#define PAGE ((size_t)4096)

static struct nc_grants grants;
static unsigned descriptors_before;

static inline void open_grants(void)
{
	descriptors_before = open_descriptors();
	nc_grants_init(&grants, 16 * PAGE);
}

static inline void close_grants(void)
{
	nc_grants_fini(&grants);
	ck_assert_uint_eq(open_descriptors(), descriptors_before);
}

static inline void join(struct nc_subject *subject, unsigned number, uid_t uid, size_t quota)
{
	*subject = (struct nc_subject){
		.who = {.pid = getpid(), .pidfd = -1, .uid = uid, .gid = 500},
		.number = number,
		.quota = quota,
		.revocations = {.segment = {.fd = -1}},
	};
	nc_grants_join(&grants, subject);
}

static size_t orphans[256];
static unsigned orphan_count;

static inline void note_orphan(void *context, size_t id)
{
	bool made;

	ck_assert_ptr_eq(context, orphans);
	ck_assert_uint_lt(orphan_count, 256);
	orphans[orphan_count++] = id;
	/* The callback may query the table. */
	ck_assert(nc_grants_known(&grants, id, NULL, &made));
	ck_assert(made);
}

static inline void part(struct nc_subject *subject)
{
	nc_grants_part(&grants, subject, note_orphan, orphans);
	ck_assert_ptr_null(subject->exports);
	ck_assert_ptr_null(subject->revocations.segment.base);
}

static inline struct nc_segment frozen(size_t size)
{
	struct nc_segment segment;

	ck_assert_int_eq(nc_segment_create(&segment, size, false, false), 0);
	ck_assert_int_eq(nc_segment_freeze(&segment), 0);
	return segment;
}

static inline struct nc_grantee user(unsigned uid)
{
	return (struct nc_grantee){.principal = NC_USER, .who = uid, .pidfd = -1};
}

static inline struct nc_grantee process(pid_t pid)
{
	struct nc_grantee grantee = {
		.principal = NC_PROCESS, .who = (unsigned)pid, .pidfd = nc_identity_open(pid)};

	ck_assert_int_ge(grantee.pidfd, 0);
	return grantee;
}

static inline int give(size_t id, struct nc_grantee to)
{
	int error = nc_grants_add(&grants, id, &to);

	if (error && to.pidfd >= 0)
		close(to.pidfd);
	return error;
}

/* Exports a unit with an existing descriptor; *slot is its place in the revocation map. */
static inline int export_unit(size_t id, struct nc_subject *to, uint32_t *slot)
{
	struct nc_export_info info = {.fd = -1};
	int error = nc_grants_export(&grants, id, to, STDIN_FILENO, &info);

	if (!error) {
		ck_assert_int_ge(info.fd, 0);
		ck_assert_int_eq(fcntl(info.fd, F_GETFD), FD_CLOEXEC);
		close(info.fd);
		*slot = info.slot;
		/* Other code passes the revocation map; here it only costs a descriptor. */
	}
	return error;
}

static inline uint64_t shown(const struct nc_subject *subject, uint32_t slot)
{
	return nc_revocation_map_read(&subject->revocations.segment, slot);
}

#endif
