/* SPDX-License-Identifier: MIT */
/* rotate, clear, enable-rotation, disable-rotation. */
#include <inttypes.h>

#include "sessiond/commands.h"
#include "sessiond/health.h"
#include "sessiond/json.h"
#include "sessiond/report.h"

/* Without a trace of the session there are no chunks. */
static bool may_rotate(struct request *r)
{
	const struct session *s = r->session;

	if (s->snapshot)
		request_refuse(r, "unsupported",
			"session '%s' keeps events for snapshots only and writes no trace: 'kymo snapshot record' writes one",
			s->name);
	else if (!*s->output)
		request_refuse(r, "unsupported",
			"session '%s' writes no trace: there is nothing to rotate", s->name);
	else
		return true;
	return false;
}

static const char busy_rotating[] = "it is being rotated or cleared: try again";

static void add_rotation(struct request *r, const char *state, const char *path)
{
	struct json_object *o = json_object_new_object();

	json_add(o, "session", json_object_new_string(r->session->name));
	json_add(o, "state", json_object_new_string(state));
	json_add(o, "path", json_object_new_string(path ? path : ""));
	reply_add(r, "rotation", o);
}

/* Its consumer has not answered in time. */
static void reply_unfinished(struct request *r, const struct session *s, const char *what)
{
	struct ky_buf why = {0};

	ky_buf_printf(&why, "it is not %s yet, which goes on: ", what);
	session_put_unfinished(s, &why);
	reply_failure(r, -ETIMEDOUT, s->name, why.data ? why.data : what);
	ky_buf_deinit(&why);
}

static void answer_rotate(struct barrier *b)
{
	struct request *r = ky_container_of(b, struct request, barrier);
	const struct session *s = r->session;

	if (!s)
		request_refuse(r, "not-found", "the session was destroyed meanwhile");
	else if (b->timed_out) {
		reply_unfinished(r, s, "rotated");
		request_finish(r);
	} else if (s->rotation.status < 0 && s->rotation.status != -ENODATA)
		request_refuse(r, "failed", "session '%s' cannot be rotated: %s", s->name,
			s->rotation.message ? s->rotation.message : "");
	else {
		if (s->rotation.status)
			add_rotation(r, "empty", NULL);
		else
			add_rotation(r, "completed", s->rotation.path);
		request_finish(r);
	}
}

void run_rotate(struct request *r)
{
	bool no_wait = request_bool(r, "no_wait");
	int ret;

	if (!may_rotate(r))
		return;
	barrier_init(&r->barrier, &r->daemon->loop, answer_rotate);
	ret = rotation_begin(r->session, false, no_wait ? NULL : &r->barrier);
	if (ret < 0) {
		request_refuse(r, ret == -EBUSY ? "busy" : "failed", "session '%s': %s",
			r->session->name, ret == -EBUSY ? busy_rotating : strerror(-ret));
	} else if (no_wait) {
		_cleanup_free_ char *path = rotation_path(r->session);

		add_rotation(r, "ongoing", path);
		request_finish(r);
	} else {
		barrier_arm(&r->barrier, CONSUMER_ANSWER_NS);
	}
}

static void report_cleared(struct request *r, const struct session *s)
{
	struct json_object *o;

	reply_add_to(r, "sessions", report_session(s));
	if (request_bool(r, "no_wait"))
		return;
	o = json_object_new_object();
	json_add(o, "session", json_object_new_string(s->name));
	json_add(o, "events", json_object_new_uint64(s->rotation.n_cleared));
	reply_add_to(r, "cleared", o);
}

static bool is_target(const struct request *r, const struct session *s)
{
	return s == r->session || (request_bool(r, "all") && s->uid == r->peer.uid);
}

static void answer_clear(struct barrier *b)
{
	struct request *r = ky_container_of(b, struct request, barrier);
	const struct session *s;

	ky_list_foreach (s, &r->daemon->sessions, node) {
		if (!is_target(r, s))
			continue;
		if (b->timed_out)
			reply_unfinished(r, s, "cleared");
		else if (s->rotation.status < 0 && !request_bool(r, "no_wait"))
			reply_failure(r, s->rotation.status, s->name,
				s->rotation.message ? s->rotation.message : "");
		else
			report_cleared(r, s);
	}
	request_finish(r);
}

/* What is in buffers that are overwritten is the programs' alone: nobody but they may move their heads. */
static const char *why_not_cleared(const struct session *s)
{
	const struct channel *c;

	if (s->snapshot)
		return "it keeps events for snapshots, which are in the programs' hands: new ones will overwrite them";
	ky_list_foreach (c, &s->channels, node)
		if (c->overwrite)
			return "it has a channel in overwrite mode, whose events are in the programs' hands: new ones will overwrite them";
	return NULL;
}

static void clear(struct request *r, struct session *s)
{
	const char *why = why_not_cleared(s);
	struct barrier *b = request_bool(r, "no_wait") ? NULL : &r->barrier;
	int ret = why ? -EOPNOTSUPP : rotation_begin(s, true, b);

	if (ret < 0)
		reply_failure(r, ret, s->name,
			why		? why
			: ret == -EBUSY ? busy_rotating
					: strerror(-ret));
}

void run_clear(struct request *r)
{
	struct session *s;

	barrier_init(&r->barrier, &r->daemon->loop, answer_clear);
	reply_add(r, "sessions", json_object_new_array());
	ky_list_foreach (s, &r->daemon->sessions, node)
		if (is_target(r, s))
			clear(r, s);
	barrier_arm(&r->barrier, CONSUMER_ANSWER_NS);
}

static void answer_schedule(struct request *r)
{
	reply_add(r, "session", report_session(r->session));
	request_finish(r);
}

#define ROTATION_TIMER_MIN_US 1000u
#define ROTATION_TIMER_MAX_US (1000000ull * 3600 * 24 * 365)

void run_enable_rotation(struct request *r)
{
	uint64_t timer_us = request_bytes(r, "timer"), size = request_bytes(r, "size");
	const struct rotation *old = &r->session->rotation;

	if (!may_rotate(r))
		return;
	if (!timer_us && !size) {
		request_refuse(r, "usage", "a schedule needs 'timer' or 'size'");
	} else if (timer_us &&
		   (timer_us < ROTATION_TIMER_MIN_US || timer_us > ROTATION_TIMER_MAX_US)) {
		request_refuse(r, "usage",
			"a rotation every %" PRIu64
			" us is not possible: from %u us, which is a millisecond, to a year",
			timer_us, ROTATION_TIMER_MIN_US);
	} else {
		rotation_schedule(
			r->session, timer_us ? timer_us : old->timer_us, size ? size : old->size);
		answer_schedule(r);
	}
}

void run_disable_rotation(struct request *r)
{
	const struct rotation *old = &r->session->rotation;
	bool timer = request_bool(r, "timer"), size = request_bool(r, "size");

	if ((timer && !old->timer_us) || (size && !old->size)) {
		request_refuse(r, "not-found", "session '%s' has no rotation by %s",
			r->session->name, timer && !old->timer_us ? "timer" : "size");
		return;
	}
	if (!timer && !size)
		timer = size = true;
	rotation_schedule(r->session, timer ? 0 : old->timer_us, size ? 0 : old->size);
	answer_schedule(r);
}
