/* SPDX-License-Identifier: MIT */
/* The table of control commands (parse.h), and the commands that only look. */
#include "sessiond/control/commands.h"
#include "sessiond/control/report.h"
#include "sessiond/peers/app.h"
#include "sessiond/peers/peers.h"
#include "sessiond/peers/rundir.h"

enum outcome request_no_memory(struct request *r)
{
	return request_refuse(r, "failed", "the session daemon has no memory left");
}

static enum outcome run_hello(struct request *r)
{
	reply_add(r, "version", json_object_new_string(KYMO_VERSION));
	reply_add(r, "pid", json_object_new_int(getpid()));
	reply_add(r, "rundir", json_object_new_string(r->env->run->path));
	reply_add(r, "protocol", json_object_new_int(KY_PROTO_VERSION));
	return DONE;
}

static enum outcome answer_events(struct request *r)
{
	/* Root and the tracing group see all applications. A user's daemon has only that user's. */
	reply_add(r, "applications", report_applications(r->env, 0, request_bool(r, "brief")));
	return DONE;
}

static enum outcome run_list_events(struct request *r)
{
	apps_query_all(r->env, request_barrier(r));
	return request_await_peers(r, APP_ANSWER_NS, answer_events);
}

static enum outcome answer_status(struct request *r)
{
	apps_report_ended(r->env);
	reply_add(r, "session", report_session(r->session));
	reply_add(r, "warnings", report_warnings(r->session, !request_bool(r, "without_losses")));
	return DONE;
}

static enum outcome run_status(struct request *r)
{
	apps_query_all(r->env, request_barrier(r));
	consumer_ask(&recording_of(r->session)->consumer, request_barrier(r));
	return request_await_peers(r, APP_ANSWER_NS, answer_status);
}

/* clang-format off */
#define TARGET {"channel", PARAM_STRING, false}, {"patterns", PARAM_STRINGS, true}
#define TRACKED {"vpid", PARAM_STRINGS, false}, {"vuid", PARAM_STRINGS, false}, {"vgid", PARAM_STRINGS, false}, {"pid", PARAM_STRINGS, false}
/* clang-format on */

const struct command commands[] = {
	{"hello", SCOPE_NONE, run_hello, {{0}}},
	{"create", SCOPE_NONE, run_create,
		{{"session", PARAM_STRING, false}, {"output", PARAM_STRING, false},
			{"snapshot", PARAM_BOOL, false}, {"absolute_clock", PARAM_BOOL, false},
			{"shm_path", PARAM_STRING, false}, {"clock", PARAM_STRING, false},
			{"bound", PARAM_BOOL, false}, {"seconds", PARAM_BYTES, false},
			{"switch_timer", PARAM_BYTES, false}}},
	{"destroy", SCOPE_SESSIONS, run_destroy, {{0}}},
	{"start", SCOPE_SESSIONS, run_start, {{0}}},
	{"stop", SCOPE_SESSIONS, run_stop, {{0}}},
	{"pause", SCOPE_SESSIONS, run_pause, {{0}}},
	{"resume", SCOPE_SESSIONS, run_resume, {{0}}},
	{"enable-channel", SCOPE_SESSION, run_enable_channel,
		{{"channel", PARAM_STRING, true}, {"domain", PARAM_STRING, false},
			{"OPTION", PARAM_OPTION, false}}},
	{"set", SCOPE_SESSION, run_set,
		{{"channel", PARAM_STRING, false}, {"OPTION", PARAM_OPTION, false}}},
	{"disable-channel", SCOPE_SESSION, run_disable_channel,
		{{"channel", PARAM_STRING, true}, {"domain", PARAM_STRING, false}}},
	{"enable-event", SCOPE_SESSION, run_enable_event,
		{TARGET, {"exclude", PARAM_STRINGS, false}, {"loglevel", PARAM_NUMBER, false},
			{"loglevel_only", PARAM_NUMBER, false}, {"filter", PARAM_STRING, false},
			{"domain", PARAM_STRING, false}, {"kind", PARAM_STRING, false},
			{"place", PARAM_STRING, false}, {"definitions", PARAM_STRINGS, false}}},
	{"disable-event", SCOPE_SESSION, run_disable_event,
		{{"channel", PARAM_STRING, false}, {"patterns", PARAM_STRINGS, false},
			{"all_rules", PARAM_BOOL, false}, {"remove", PARAM_BOOL, false},
			{"filter", PARAM_STRING, false}, {"domain", PARAM_STRING, false}}},
	{"add-context", SCOPE_SESSION, run_add_context,
		{{"contexts", PARAM_STRINGS, true}, {"channel", PARAM_STRING, false},
			{"domain", PARAM_STRING, false}}},
	{"track", SCOPE_SESSION, run_track, {TRACKED}},
	{"untrack", SCOPE_SESSION, run_untrack, {TRACKED}},
	{"snapshot", SCOPE_SESSION, run_snapshot,
		{{"name", PARAM_STRING, false}, {"output", PARAM_STRING, false},
			{"max_size", PARAM_BYTES, false}}},
	{"regenerate", SCOPE_SESSION, run_regenerate, {{"what", PARAM_STRING, true}}},
	{"rotate", SCOPE_SESSION, run_rotate, {{"no_wait", PARAM_BOOL, false}}},
	{"clear", SCOPE_SESSIONS, run_clear, {{0}}},
	{"enable-rotation", SCOPE_SESSION, run_enable_rotation,
		{{"timer", PARAM_BYTES, false}, {"size", PARAM_BYTES, false},
			{"max_disk", PARAM_BYTES, false}, {"keep_free", PARAM_BYTES, false},
			{"keep_chunks", PARAM_BYTES, false}, {"keep_bytes", PARAM_BYTES, false},
			{"keep_s", PARAM_BYTES, false}}},
	{"disable-rotation", SCOPE_SESSION, run_disable_rotation,
		{{"timer", PARAM_BOOL, false}, {"size", PARAM_BOOL, false},
			{"max_disk", PARAM_BOOL, false}, {"keep_free", PARAM_BOOL, false},
			{"keep_all", PARAM_BOOL, false}}},
	{"add-trigger", SCOPE_SESSION, run_add_trigger,
		{{"trigger", PARAM_STRING, false}, {"when", PARAM_STRING, true},
			{"do", PARAM_STRING, true}, {"rate", PARAM_STRING, false},
			{"keep", PARAM_STRING, false}}},
	{"list-triggers", SCOPE_NONE, run_list_triggers, {{"session", PARAM_STRING, false}}},
	{"remove-trigger", SCOPE_SESSION, run_remove_trigger, {{"trigger", PARAM_STRING, true}}},
	{"watch", SCOPE_NONE, run_watch,
		{{"session", PARAM_STRING, false}, {"after", PARAM_BYTES, false}}},
	{"list", SCOPE_NONE, run_list, {{0}}},
	{"list-events", SCOPE_NONE, run_list_events, {{"brief", PARAM_BOOL, false}}},
	{"list-kernel", SCOPE_NONE, run_list_kernel,
		{{"syscall", PARAM_BOOL, false}, {"fields", PARAM_BOOL, false}}},
	{"list-loggers", SCOPE_NONE, run_list_loggers, {{0}}},
	{"sample", SCOPE_SESSION, run_sample,
		{{"frequency", PARAM_NUMBER, false}, {"pid", PARAM_NUMBER, false}}},
	{"status", SCOPE_SESSION, run_status, {{"without_losses", PARAM_BOOL, false}}},
	{"set-session", SCOPE_SESSION, run_set_session, {{0}}},
	{0},
};
