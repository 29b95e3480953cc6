/* SPDX-License-Identifier: MIT */
/* snapshot, regenerate. */
#include <limits.h>

#include "sessiond/kernel/kernel.h"
#include "sessiond/control/commands.h"
#include "sessiond/control/report.h"
#include "sessiond/peers/app.h"
#include "sessiond/peers/snapshot.h"

static void snapshot_ended(struct request_op *o, int status, const char *message)
{
	if (status)
		request_fail(o->request, status, o->session->name, message);
	else
		reply_add(o->request, "snapshot", report_snapshot(o->subject));
}

/* Chooses the snapshot's directory. Returns false if it refused the request. */
static bool place_snapshot(struct request *r, char *buf, size_t size)
{
	const struct session *s = r->session;
	const char *name = request_string(r, "name"), *output = request_string(r, "output");
	const struct session *other = output ? output_find(r->env, output) : NULL;

	if (name && !ky_name_valid(name))
		request_refuse(r, "usage",
			"'%s' cannot name a snapshot: use up to 128 letters, digits, '.', '_' and '-', and no '.' first",
			name);
	else if (output && *output != '/')
		request_refuse(r, "usage", "output '%s' is not an absolute path", output);
	else if (other && (other != s || !s->snapshot))
		request_refuse(r, "exists",
			"session '%s' writes to '%s' already: choose another output directory",
			other->name, output);
	else if (!output && !*s->output)
		request_refuse(r, "usage",
			"session '%s' writes no trace, so there is no place for a snapshot: give --output=DIR",
			s->name);
	else if (output)
		return snprintf(buf, size, "%s", output) > 0;
	else
		snapshot_place(s, name ? name : "snapshot", buf, size);
	return !r->refusal.code;
}

enum outcome run_snapshot(struct request *r)
{
	char output[2 * PATH_MAX];
	struct snapshot *sn = NULL;
	struct request_op *o;
	int ret;

	if (!place_snapshot(r, output, sizeof(output)))
		return REFUSED;
	o = request_op_new(r, r->session, snapshot_ended);
	ret = o ? snapshot_new(
			  r->session, output, request_bytes(r, "max_size"), "", &o->op, NULL, &sn)
		: -ENOMEM;
	if (!ret) {
		o->subject = sn;
		return request_await(r, request_outcome);
	}
	request_op_free(o);
	if (ret == -EBUSY)
		return request_refuse(r, "busy",
			"session '%s' has %u snapshots in progress: try again when one has ended",
			r->session->name, SNAPSHOTS_MAX);
	return request_refuse(
		r, "failed", "cannot start a consumer for the snapshot: %s", strerror(-ret));
}

static enum outcome answer_regenerated(struct request *r)
{
	if (r->timed_out)
		reply_note(r,
			"some applications have not finished: their state may be recorded later");
	return DONE;
}

enum outcome run_regenerate(struct request *r)
{
	const char *what = request_string(r, "what");

	if (!strcmp(what, "metadata")) {
		reply_note(r, "metadata is always complete: there was nothing to do");
		return DONE;
	}
	if (strcmp(what, "statedump"))
		return request_refuse(r, "usage",
			"'%s' cannot be regenerated: only 'statedump' can; metadata is always complete",
			what);
	if (r->session->state != SESSION_STARTED)
		return request_refuse(r, "failed",
			"session '%s' is not started: applications record their state when it is ('kymo start')",
			r->session->name);
	kernel_dump_state(r->session);
	if (session_has_kernel(r->session))
		reply_note(r, "%s",
			r->session->snapshot ? "snapshots do not have the state of the kernel"
					     : "the state of the kernel is recorded again, too");
	apps_dump_state(r->session, true, request_barrier(r));
	return request_await_peers(r, APP_ANSWER_NS, answer_regenerated);
}
