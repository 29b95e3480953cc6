/* SPDX-License-Identifier: MIT */
/* The table of control commands (control.h), and those that only look. */
#include "sessiond/app.h"
#include "sessiond/commands.h"
#include "sessiond/report.h"

static void run_hello(struct request *r)
{
	reply_add(r, "version", json_object_new_string(KYMO_VERSION));
	reply_add(r, "pid", json_object_new_int(getpid()));
	reply_add(r, "rundir", json_object_new_string(r->daemon->run.path));
	reply_add(r, "protocol", json_object_new_int(KY_PROTO_VERSION));
	request_finish(r);
}

static void answer_events(struct barrier *b)
{
	struct request *r = ky_container_of(b, struct request, barrier);

	/* Root and the tracing group see all programs; a user's own daemon has that user's only. */
	reply_add(r, "applications", report_applications(r->daemon, 0, request_bool(r, "brief")));
	request_finish(r);
}

static void run_list_events(struct request *r)
{
	barrier_init(&r->barrier, &r->daemon->loop, answer_events);
	apps_query_all(r->daemon, &r->barrier);
	barrier_arm(&r->barrier, APP_ANSWER_NS);
}

static void answer_status(struct barrier *b)
{
	struct request *r = ky_container_of(b, struct request, barrier);

	if (!r->session) {
		request_refuse(r, "not-found", "the session was destroyed meanwhile");
		return;
	}
	reply_add(r, "session", report_session(r->session));
	reply_add(r, "warnings", report_warnings(r->session));
	request_finish(r);
}

static void run_status(struct request *r)
{
	barrier_init(&r->barrier, &r->daemon->loop, answer_status);
	apps_query_all(r->daemon, &r->barrier);
	consumer_ask(&r->session->consumer, &r->barrier);
	barrier_arm(&r->barrier, APP_ANSWER_NS);
}

/* clang-format off */
#define TARGET {"channel", PARAM_STRING, false}, {"patterns", PARAM_STRINGS, true}
#define TRACKED {"vpid", PARAM_STRINGS, false}, {"vuid", PARAM_STRINGS, false}, {"vgid", PARAM_STRINGS, false}
/* clang-format on */

const struct command commands[] = {
	{"hello", SCOPE_NONE, run_hello, {{0}}},
	{"create", SCOPE_NONE, run_create,
		{{"session", PARAM_STRING, false}, {"output", PARAM_STRING, false},
			{"snapshot", PARAM_BOOL, false}, {"shm_path", PARAM_STRING, false}}},
	{"destroy", SCOPE_SESSIONS, run_destroy, {{0}}},
	{"start", SCOPE_SESSIONS, run_start, {{0}}},
	{"stop", SCOPE_SESSIONS, run_stop, {{0}}},
	{"pause", SCOPE_SESSIONS, run_pause, {{0}}},
	{"resume", SCOPE_SESSIONS, run_resume, {{0}}},
	{"enable-channel", SCOPE_LASTING, run_enable_channel,
		{{"channel", PARAM_STRING, true}, {"OPTION", PARAM_OPTION, false}}},
	{"set", SCOPE_LASTING, run_set,
		{{"channel", PARAM_STRING, false}, {"OPTION", PARAM_OPTION, false}}},
	{"disable-channel", SCOPE_LASTING, run_disable_channel, {{"channel", PARAM_STRING, true}}},
	{"enable-event", SCOPE_LASTING, run_enable_event,
		{TARGET, {"exclude", PARAM_STRINGS, false}, {"loglevel", PARAM_NUMBER, false},
			{"loglevel_only", PARAM_NUMBER, false}, {"filter", PARAM_STRING, false}}},
	{"disable-event", SCOPE_LASTING, run_disable_event,
		{{"channel", PARAM_STRING, false}, {"patterns", PARAM_STRINGS, false},
			{"all_rules", PARAM_BOOL, false}, {"remove", PARAM_BOOL, false}}},
	{"add-context", SCOPE_LASTING, run_add_context,
		{{"contexts", PARAM_STRINGS, true}, {"channel", PARAM_STRING, false}}},
	{"track", SCOPE_LASTING, run_track, {TRACKED}},
	{"untrack", SCOPE_LASTING, run_untrack, {TRACKED}},
	{"snapshot", SCOPE_SESSION, run_snapshot,
		{{"name", PARAM_STRING, false}, {"output", PARAM_STRING, false},
			{"max_size", PARAM_BYTES, false}}},
	{"regenerate", SCOPE_SESSION, run_regenerate, {{"what", PARAM_STRING, true}}},
	{"rotate", SCOPE_SESSION, run_rotate, {{"no_wait", PARAM_BOOL, false}}},
	{"clear", SCOPE_SESSIONS, run_clear, {{0}}},
	{"enable-rotation", SCOPE_LASTING, run_enable_rotation,
		{{"timer", PARAM_BYTES, false}, {"size", PARAM_BYTES, false}}},
	{"disable-rotation", SCOPE_LASTING, run_disable_rotation,
		{{"timer", PARAM_BOOL, false}, {"size", PARAM_BOOL, false}}},
	{"list", SCOPE_NONE, run_list, {{0}}},
	{"list-events", SCOPE_NONE, run_list_events, {{"brief", PARAM_BOOL, false}}},
	{"status", SCOPE_SESSION, run_status, {{0}}},
	{"set-session", SCOPE_SESSION, run_set_session, {{0}}},
	{0},
};
