/* SPDX-License-Identifier: MIT */
/* track, untrack. */
#include "sessiond/app.h"
#include "sessiond/commands.h"
#include "sessiond/report.h"

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

static void refuse_tracker(
	struct request *r, enum tracker_attribute which, const char *text, int error)
{
	const char *name = tracker_names[which], *session = r->session->name;

	if (error == -EINVAL)
		request_refuse(r, "usage",
			"session '%s' tracks every %s: 'kymo track --%s=..' narrows that down, 'kymo untrack --%s=all' leaves none",
			session, name, name, name);
	else if (error == -ENOENT)
		request_refuse(
			r, "not-found", "session '%s' does not track %s %s", session, name, text);
	else if (error == -EDQUOT)
		request_refuse(r, "failed",
			"session '%s' cannot track %s %s too: it has %u, and no more are possible",
			session, name, text, TRACKER_VALUES_MAX);
	else
		request_refuse(r, "failed", "session '%s' cannot track %s %s too: %s", session,
			name, text, strerror(-error));
}

/* All values of one attribute. False when one was refused: those before it are in effect. */
static bool change_attribute(struct request *r, enum tracker_attribute which, bool track)
{
	struct json_object *list = request_list(r, tracker_names[which]);

	for (size_t i = 0; list && i < json_object_array_length(list); i++) {
		const char *text = json_object_get_string(json_object_array_get_idx(list, i));
		uint64_t value;
		int ret;

		if (!parse_tracked(text, &value)) {
			request_refuse(r, "usage", "'%s' is no %s: use a number, or 'all'", text,
				tracker_names[which]);
			return false;
		}
		ret = change_tracker(&r->session->trackers[which], value, track);
		if (ret < 0) {
			refuse_tracker(r, which, text, ret);
			return false;
		}
	}
	return true;
}

static void answer_tracked(struct barrier *b)
{
	struct request *r = ky_container_of(b, struct request, barrier);

	if (r->session)
		reply_add(r, "tracked", report_tracked(r->session));
	request_finish(r);
}

/* Answered when the programs that are not tracked record no more, and the others do. */
static void change_trackers(struct request *r, bool track)
{
	struct session *s = r->session;

	for (int i = 0; i < N_TRACKERS; i++) {
		if (!change_attribute(r, (enum tracker_attribute)i, track)) {
			apps_track(s, NULL);
			return;
		}
	}
	barrier_init(&r->barrier, &r->daemon->loop, answer_tracked);
	apps_track(s, &r->barrier);
	barrier_arm(&r->barrier, APP_ANSWER_NS);
}

void run_track(struct request *r)
{
	change_trackers(r, true);
}

void run_untrack(struct request *r)
{
	change_trackers(r, false);
}
