/* SPDX-License-Identifier: MIT */
/* rotate, clear, enable-rotation, disable-rotation. */
#include <inttypes.h>

#include "sessiond/control/commands.h"
#include "sessiond/control/json.h"
#include "sessiond/control/report.h"
#include "sessiond/peers/backlog.h"

/* Without a trace of the session there are no chunks. */
static enum outcome check_rotate(struct request *r)
{
	const struct session *s = r->session;

	if (s->snapshot)
		return request_refuse(r, "unsupported",
			"session '%s' keeps events for snapshots only and writes no trace: 'kymo snapshot record' writes one",
			s->name);
	if (!*s->output)
		return request_refuse(r, "unsupported",
			"session '%s' writes no trace: there is nothing to rotate", s->name);
	return DONE;
}

static void add_rotation(struct request *r, const char *state, const char *path)
{
	struct json_object *o = json_object_new_object();

	json_add(o, "session", json_object_new_string(r->session->name));
	json_add(o, "state", json_object_new_string(state));
	json_add(o, "path", json_object_new_string(path ? path : ""));
	reply_add(r, "rotation", o);
}

/* done: what is not done in time. */
static void fail_order(
	const struct request_op *o, int status, const char *message, const char *done)
{
	struct ky_buf why = {0};

	if (status == -ETIMEDOUT) {
		ky_buf_printf(&why, "it is not %s yet, which goes on: ", done);
		consumer_put_unfinished(&recording_of(o->session)->consumer, &why);
	}
	request_fail(o->request, status, o->session->name, why.data ? why.data : message);
	ky_buf_deinit(&why);
}

static void rotated(struct request_op *o, int status, const char *message)
{
	if (status && status != -ENODATA)
		fail_order(o, status, message, "rotated");
	else
		add_rotation(o->request, status ? "empty" : "completed",
			status ? NULL : recording_of(o->session)->rotation.path);
}

static const char *why_not_begun(int error)
{
	return error == -EBUSY ? "it is being rotated or cleared: try again" : strerror(-error);
}

/* op: NULL with no_wait. */
static int begin_rotation(struct request *r, struct session *s, bool clear,
	void (*ended)(struct request_op *o, int status, const char *message))
{
	bool no_wait = request_bool(r, "no_wait");
	struct request_op *o = no_wait ? NULL : request_op_new(r, s, ended);
	int ret = o || no_wait
			  ? rotation_begin(&recording_of(s)->rotation, clear, o ? &o->op : NULL)
			  : -ENOMEM;

	if (ret < 0) {
		request_op_free(o);
		request_fail(r, ret, s->name, why_not_begun(ret));
	}
	return ret;
}

enum outcome run_rotate(struct request *r)
{
	_cleanup_free_ char *path = NULL;

	if (check_rotate(r) == REFUSED || begin_rotation(r, r->session, false, rotated) < 0)
		return REFUSED;
	if (!ky_list_empty(&r->ops))
		return request_await(r, request_outcome);
	path = rotation_path(&recording_of(r->session)->rotation);
	add_rotation(r, "ongoing", path);
	return DONE;
}

static void cleared(struct request_op *o, int status, const char *message)
{
	const struct session *s = o->session;
	struct json_object *count;

	if (status) {
		fail_order(o, status, message, "cleared");
		return;
	}
	reply_add_to(o->request, "sessions", report_session(s));
	count = json_object_new_object();
	json_add(count, "session", json_object_new_string(s->name));
	json_add(count, "events", json_object_new_uint64(recording_of(s)->rotation.n_cleared));
	reply_add_to(o->request, "cleared", count);
}

static bool is_target(const struct request *r, const struct session *s)
{
	return s == r->session || (request_bool(r, "all") && s->uid == r->peer.uid);
}

/* Only programs may move the heads of buffers in overwrite mode, so nobody else can clear them. */
static const char *why_not_cleared(const struct session *s)
{
	const struct channel *c;

	if (s->snapshot)
		return "it keeps events for snapshots, which are in the applications' memory: new ones will overwrite them";
	ky_list_foreach (c, &s->channels, node)
		if (c->overwrite)
			return "it has a channel in overwrite mode, whose events are in the applications' memory: new ones will overwrite them";
	return NULL;
}

static void clear_session(struct request *r, struct session *s)
{
	const char *why = why_not_cleared(s);

	if (why)
		request_fail(r, -EOPNOTSUPP, s->name, why);
	else if (begin_rotation(r, s, true, cleared) == 0 && request_bool(r, "no_wait"))
		reply_add_to(r, "sessions", report_session(s));
}

enum outcome run_clear(struct request *r)
{
	struct session *s;

	reply_add(r, "sessions", json_object_new_array());
	ky_list_foreach (s, &r->env->sessions, node)
		if (is_target(r, s))
			clear_session(r, s);
	return request_await(r, request_outcome);
}

/* A bound that no removal can keep would remove everything. */
static enum outcome check_room(struct request *r, uint64_t keep_free)
{
	struct ky_resume_session memory;

	if (!consumer_read_memory(&recording_of(r->session)->consumer, &memory) ||
		!memory.disk_size || keep_free < memory.disk_size)
		return DONE;
	return request_refuse(r, "usage",
		"%" PRIu64 " bytes cannot stay free: the disk of the trace has %" PRIu64 " in all",
		keep_free, memory.disk_size);
}

static enum outcome set_schedule(struct request *r, const struct rotation_schedule *schedule)
{
	rotation_set_schedule(&recording_of(r->session)->rotation, schedule);
	reply_add(r, "session", report_session(r->session));
	return DONE;
}

#define ROTATION_TIMER_MIN_US 1000u
#define ROTATION_TIMER_MAX_US (1000000ull * 3600 * 24 * 365)
#define ROTATION_SIZE_MIN     (4u << 10)
#define MAX_DISK_MIN	      (1u << 20)

/* The parameters, and their places in the schedule. disable-rotation has the first four. */
#define KEEP_PARTS 4
static const struct {
	const char *name;
	size_t offset;
} parts[] = {
	{"timer", offsetof(struct rotation_schedule, timer_us)},
	{"size", offsetof(struct rotation_schedule, size)},
	{"max_disk", offsetof(struct rotation_schedule, max_disk)},
	{"keep_free", offsetof(struct rotation_schedule, keep_free)},
	{"keep_chunks", offsetof(struct rotation_schedule, keep_chunks)},
	{"keep_bytes", offsetof(struct rotation_schedule, keep_bytes)},
	{"keep_s", offsetof(struct rotation_schedule, keep_s)},
};

static uint64_t *part_of(struct rotation_schedule *schedule, size_t i)
{
	return (uint64_t *)((char *)schedule + parts[i].offset);
}

enum outcome run_enable_rotation(struct request *r)
{
	struct rotation_schedule schedule = recording_of(r->session)->rotation.schedule;
	uint64_t timer_us = request_bytes(r, "timer"), max_disk = request_bytes(r, "max_disk");
	uint64_t chunk = request_bytes(r, "size");
	bool any = false;

	if (check_rotate(r) == REFUSED)
		return REFUSED;
	for (size_t i = 0; i < KY_ARRAY_SIZE(parts); i++) {
		uint64_t v = request_bytes(r, parts[i].name);

		any |= v != 0;
		*part_of(&schedule, i) = v ? v : *part_of(&schedule, i);
	}
	if (!any)
		return request_refuse(
			r, "usage", "a schedule needs 'timer', 'size', or a bound of the disk");
	if (timer_us && (timer_us < ROTATION_TIMER_MIN_US || timer_us > ROTATION_TIMER_MAX_US))
		return request_refuse(r, "usage",
			"a rotation every %" PRIu64
			" us is not possible: the period can be from 1ms to a year (8760h)",
			timer_us);
	if (chunk && chunk < ROTATION_SIZE_MIN)
		return request_refuse(r, "usage",
			"a rotation every %" PRIu64 " bytes is not possible: the least size is 4K",
			chunk);
	if (max_disk && max_disk < MAX_DISK_MIN)
		return request_refuse(r, "usage",
			"a trace of at most %" PRIu64
			" bytes is not possible: the least size is 1M",
			max_disk);
	if (check_room(r, request_bytes(r, "keep_free")) == REFUSED)
		return REFUSED;
	return set_schedule(r, &schedule);
}

enum outcome run_disable_rotation(struct request *r)
{
	struct rotation_schedule schedule = recording_of(r->session)->rotation.schedule;
	bool any = request_bool(r, "keep_all");

	if (any)
		schedule.keep_chunks = schedule.keep_bytes = schedule.keep_s = 0;
	for (size_t i = 0; i < KEEP_PARTS; i++) {
		if (!request_bool(r, parts[i].name))
			continue;
		if (!*part_of(&schedule, i))
			return request_refuse(r, "not-found", "session '%s' has no rotation by %s",
				r->session->name, parts[i].name);
		*part_of(&schedule, i) = 0;
		any = true;
	}
	return set_schedule(r, any ? &schedule : &(struct rotation_schedule){0});
}
