/* SPDX-License-Identifier: MIT */
#include "sessiond/peers/ended.h"

#include <sys/wait.h>

#include "abi/ended.h"
#include "base/clock.h"
#include "sessiond/model/contents.h"
#include "sessiond/peers/collector.h"
#include "sessiond/peers/peers.h"
#include "sessiond/peers/proc-state.h"
#include "sessiond/peers/process.h"
#include "sessiond/peers/recording.h"

#define DEFAULT_LEVEL 13 /* KYMO_DEBUG_LINE */

/* Returns whether a session records the event of the collector. */
static bool end_is_wanted(const struct env *e)
{
	const struct session *s;
	const struct channel *c;
	const struct rule *r;

	ky_list_foreach (s, &e->sessions, node)
		ky_list_foreach (c, &s->channels, node)
			ky_list_foreach (r, &c->rules, node)
				if (r->enabled &&
					rule_matches(r, "kymo_process:ended", DEFAULT_LEVEL))
					return true;
	return false;
}

static bool is_tracked(const struct process *p, const struct session *s)
{
	return session_wants_uid(s, p->user->uid) &&
	       tracker_has(&s->trackers[TRACK_VPID], p->vpid) &&
	       tracker_has(&s->trackers[TRACK_VUID], p->user->uid) &&
	       tracker_has(&s->trackers[TRACK_VGID], p->gid);
}

static const struct death *remember_death(
	const struct session *s, const struct process *p, int status)
{
	struct deaths *deaths = &recording_of(s)->deaths;
	struct death *d = &deaths->last[deaths->n++ % DEATHS_MAX];

	*d = (struct death){.pid = p->pid,
		.vpid = p->vpid,
		.signal = WTERMSIG(status),
		.dumped = WCOREDUMP(status),
		.ns = ky_clock_ns(CLOCK_REALTIME)};
	memcpy(d->name, p->name, sizeof(d->name));
	return d;
}

void program_ended(const struct process *p)
{
	struct ky_ended ended = {
		.pid = p->pid, .uid = p->user->uid, .status = proc_wait_status(p->pidfd, p->pid)};
	const struct death *d;
	struct session *s;

	memcpy(ended.name, p->name, sizeof(ended.name));
	if (end_is_wanted(p->env))
		collector_report_end(p->env->peers->collector, &ended);
	if (ended.status == KY_ENDED_UNKNOWN || !WIFSIGNALED(ended.status))
		return;
	ky_list_foreach (s, &p->env->sessions, node)
		if (s->state == SESSION_STARTED && is_tracked(p, s)) {
			d = remember_death(s, p, ended.status);
			OBSERVE(s->env, program_died, s, d);
		}
}
