/* SPDX-License-Identifier: MIT */
#include "cli/monitor.h"

#include "base/rundir.h"
#include "cli/daemon.h"

static const char *session_named(const struct cli *cli)
{
	const char *name = cli_arg(cli, 0);

	return name ? name : cli_get(cli, "session");
}

/* Adds the session's object to the list. A session that ended meanwhile is no error. */
static int read_session(struct kymo_ctl *ctl, const char *name, struct monitored *m)
{
	_cleanup_value_ struct kymo_value *params = kymo_value_new(), *reply = NULL;
	int r = params ? kymo_value_set_string(params, "session", name) : -ENOMEM;

	if (!r)
		r = kymo_ctl_call(ctl, "status", params, &reply);
	if (r)
		return r;
	if (!kymo_reply_ok(reply)) {
		kymo_value_free(m->refusal);
		m->refusal = reply;
		reply = NULL;
		return 0;
	}
	return kymo_value_add(m->sessions, "sessions", kymo_value_get(reply, "session"));
}

static int read_all(struct kymo_ctl *ctl, struct monitored *m)
{
	int r = kymo_ctl_call(ctl, "list", NULL, &m->listed);
	const struct kymo_value *list = kymo_value_get(m->listed, "sessions");

	for (size_t i = 0; i < kymo_value_count(list) && !r; i++)
		r = read_session(
			ctl, kymo_value_string(kymo_value_get(kymo_value_at(list, i), "name")), m);
	kymo_value_free(m->refusal);
	m->refusal = NULL;
	return r;
}

void monitor_read(struct cli *cli, struct monitored *m)
{
	const char *name = session_named(cli);
	_cleanup_ctl_ struct kymo_ctl *ctl = NULL;

	*m = (struct monitored){.sessions = kymo_value_new()};
	m->error = m->sessions ? kymo_ctl_open(NULL, &ctl) : -ENOMEM;
	if (m->error == -ECONNREFUSED || m->error == -ENOTDIR)
		m->error = -ENOENT;
	if (m->error == -ENOENT && ky_rundir_has_sessions(geteuid()))
		m->error = -ENOEXEC;
	if (m->error)
		return;
	kymo_ctl_set_timeout(ctl, MONITOR_TIMEOUT_MS);
	m->error = kymo_ctl_call(ctl, "hello", NULL, &m->hello);
	if (!m->error)
		m->error = name ? read_session(ctl, name, m) : read_all(ctl, m);
}

void monitor_free(struct monitored *m)
{
	kymo_value_free(m->hello);
	kymo_value_free(m->sessions);
	kymo_value_free(m->refusal);
	kymo_value_free(m->listed);
}

const char *monitor_why(const struct monitored *m)
{
	const char *advice;

	switch (m->error) {
	case 0:
		return kymo_reply_error(m->refusal);
	case -ENOENT:
		return cli_no_daemon();
	case -ENOEXEC:
		return "the session daemon was killed; its sessions record, but not applications that start now: any other command starts a successor";
	case -ETIMEDOUT:
		return CLI_NO_ANSWER;
	case -ENAMETOOLONG:
		return CLI_RUNDIR_TOO_LONG;
	case -EACCES:
		return cli_permission_denied(&advice);
	default:
		return strerror(-m->error);
	}
}
