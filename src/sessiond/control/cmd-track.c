/* SPDX-License-Identifier: MIT */
/* track, untrack. */
#include "sessiond/control/commands.h"
#include "sessiond/control/report.h"
#include "sessiond/kernel/kernel.h"
#include "sessiond/peers/app.h"

/* "all" is UINT64_MAX. False when it is neither that nor a number. */
static bool parse_tracked(const char *text, uint64_t *ret_value)
{
	char *end;

	*ret_value = UINT64_MAX;
	if (!strcmp(text, "all"))
		return true;
	errno = 0;
	*ret_value = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end && !errno && *ret_value <= UINT32_MAX;
}

static int change_tracker(struct tracker *t, uint64_t value, bool track)
{
	if (value == UINT64_MAX)
		tracker_reset(t, track);
	else if (track)
		return tracker_add(t, (uint32_t)value);
	else
		return tracker_remove(t, (uint32_t)value);
	return 0;
}

static enum outcome refuse_tracker(
	struct request *r, enum tracker_attribute which, const char *text, int error)
{
	const char *name = tracker_names[which], *session = r->session->name;

	if (error == -EINVAL)
		return request_refuse(r, "usage",
			"session '%s' tracks every %s: 'kymo track --%s=..' narrows that down, 'kymo untrack --%s=all' leaves none",
			session, name, name, name);
	if (error == -ENOENT)
		return request_refuse(
			r, "not-found", "session '%s' does not track %s %s", session, name, text);
	if (error == -EDQUOT)
		return request_refuse(r, "failed",
			"session '%s' cannot also track %s %s: it has %u, and cannot have more",
			session, name, text, TRACKER_VALUES_MAX);
	return request_refuse(r, "failed", "session '%s' cannot also track %s %s: %s", session,
		name, text, strerror(-error));
}

/* Applies the request's values of one attribute to the tracker. */
static enum outcome change_attribute(
	struct request *r, struct tracker *t, enum tracker_attribute which, bool track)
{
	for (size_t i = 0; i < request_list_length(r, tracker_names[which]); i++) {
		const char *text = request_list_string(r, tracker_names[which], i);
		uint64_t value;
		int ret;

		if (!parse_tracked(text, &value))
			return request_refuse(r, "usage",
				"'%s' is not a %s: use a number, or 'all'", text,
				tracker_names[which]);
		ret = change_tracker(t, value, track);
		if (ret < 0)
			return refuse_tracker(r, which, text, ret);
	}
	return DONE;
}

static enum outcome answer_tracked(struct request *r)
{
	const struct session *s = r->session;

	reply_add(r, "tracked", report_tracked(s));
	if (request_list_length(r, tracker_names[TRACK_PID]) && s->trackers[TRACK_PID].narrowed &&
		!session_has_kernel(s))
		reply_note(r,
			"session '%s' has no kernel events yet, and 'pid' is for these only: use 'vpid' for applications",
			s->name);
	return DONE;
}

/* Changes all trackers, or none. Ends when this is in effect in applications. */
static enum outcome change_trackers(struct request *r, bool track)
{
	struct session *s = r->session;
	struct tracker changed[N_TRACKERS] = {0};
	enum outcome outcome = DONE;

	for (int i = 0; i < N_TRACKERS && outcome == DONE; i++)
		outcome = tracker_copy(&changed[i], &s->trackers[i]) < 0
				  ? request_no_memory(r)
				  : change_attribute(
					    r, &changed[i], (enum tracker_attribute)i, track);
	if (outcome == DONE)
		session_track(s, changed);
	for (int i = 0; i < N_TRACKERS; i++)
		tracker_deinit(&changed[i]);
	if (outcome != DONE)
		return outcome;
	kernel_apply(s);
	apps_track(s, request_barrier(r));
	return request_await_peers(r, APP_ANSWER_NS, answer_tracked);
}

enum outcome run_track(struct request *r)
{
	return change_trackers(r, true);
}

enum outcome run_untrack(struct request *r)
{
	return change_trackers(r, false);
}
