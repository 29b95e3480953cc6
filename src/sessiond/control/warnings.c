/* SPDX-License-Identifier: MIT */
/* Warnings of a session: why less is recorded than expected (report_warnings). */
#include <inttypes.h>

#include "sessiond/control/explain.h"
#include "sessiond/control/json.h"
#include "sessiond/control/report.h"
#include "sessiond/kernel/kernel.h"
#include "sessiond/peers/app.h"
#include "sessiond/peers/collector.h"
#include "sessiond/peers/peers.h"
#include "sessiond/peers/recording.h"
#include "sessiond/peers/rundir.h"

#define NAMES_MAX 5 /* of programs, in one warning */

static void KY_PRINTF(2, 3) add_warning(struct json_object *list, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	json_append_text(list, text);
}

/*
 * Warns if threads had to make their own buffers. Nothing is lost by it, but a user of such buffers
 * does not want threads to wait.
 */
static void warn_of_pool(struct json_object *list, const struct channel *c)
{
	const struct ring_set *set;
	struct slot_counts n;

	ky_list_foreach (set, &c->sets, node) {
		if (!ring_set_is_made(set) || !set->named ||
			ring_memory_count_slots(&set->memory, &set->geometry, &n) < 0 ||
			!n.unprepared)
			continue;
		add_warning(list,
			"channel '%s': %" PRIu64
			" thread%s came before a buffer was ready and made one, which took longer, but lost no event: a larger pool helps ('kymo enable-channel NAME --buffers=thread --pool-size=N', more than %u)",
			c->name, n.unprepared, n.unprepared == 1 ? "" : "s", set->pool_size);
	}
}

static void warn_of_channel(struct json_object *list, const struct channel *c)
{
	struct rule *r;

	if (!c->enabled) {
		add_warning(list,
			"channel '%s' is disabled: it records nothing until 'kymo enable-channel %s'",
			c->name, c->name);
		return;
	}
	warn_of_pool(list, c);
	ky_list_foreach (r, &c->rules, node) {
		struct ky_buf why = {0};

		if (!r->enabled)
			continue;
		/* Of `kymo record -k`: its applications need not have events. */
		if (c->domain == DOMAIN_KERNEL ||
			(c->session->env->bound && !strcmp(r->pattern, "*") &&
				session_has_kernel(c->session)))
			continue;
		if (r->mismatch) {
			add_warning(list, "%s", r->mismatch);
		} else if (!channel_count_matches(c, r, false)) {
			explain_rule(&why, c, r);
			add_warning(list, "%s", why.data ? why.data : r->pattern);
		}
		ky_buf_deinit(&why);
	}
}

/* Programs that record into a channel that asks them to wait, and do not allow it. */
static void warn_of_blocking(struct json_object *list, const struct channel *c)
{
	struct ky_buf names = {0};
	const struct ring_set *set;
	const struct app_set *as;
	unsigned n = 0;

	if (!c->blocking_timeout_us)
		return;
	ky_list_foreach (set, &c->sets, node) {
		ky_list_foreach (as, &set->users, set_node) {
			if (!as->sent || as->app->caps & KY_CAP_BLOCKING)
				continue;
			if (n++ < NAMES_MAX)
				ky_buf_printf(&names, "%s%s (pid %d)", n > 1 ? ", " : "",
					as->app->name, (int)as->app->pid);
		}
	}
	if (n > NAMES_MAX)
		ky_buf_printf(&names, " and %u more", n - NAMES_MAX);
	if (n)
		add_warning(list,
			"channel '%s' has a blocking-timeout, but %s do%s not allow it, and discard%s: start with KYMO_ALLOW_BLOCKING=1 in the environment what is to wait",
			c->name, names.data ? names.data : "some applications", n == 1 ? "es" : "",
			n == 1 ? "s" : "");
	ky_buf_deinit(&names);
}

static void warn_of_trackers(struct json_object *list, const struct session *s)
{
	const struct tracker *processes = &s->trackers[TRACK_PID];
	const struct app *a;
	unsigned n = 0;

	if (session_has_kernel(s) && !s->env->bound && processes->narrowed && !processes->n)
		add_warning(list,
			"kernel events of no process are tracked: 'kymo track --kernel --all' tracks those of all");
	ky_list_foreach (a, &s->env->peers->apps, node) {
		if (!a->registered || !session_wants_uid(s, a->user->uid) ||
			collector_is(s->env->peers->collector, a->pid))
			continue;
		if (app_is_tracked(a, s))
			return;
		n++;
	}
	if (n == 1)
		add_warning(list,
			"the only application that runs is not tracked: 'kymo track --all' tracks every one");
	else if (n)
		add_warning(list,
			"none of the %u running applications is tracked: 'kymo track --all' tracks every one",
			n);
}

static void warn_of_rules(struct json_object *list, const struct session *s)
{
	const struct channel *c;

	ky_list_foreach (c, &s->channels, node) {
		warn_of_channel(list, c);
		warn_of_blocking(list, c);
	}
	if (!session_has_enabled_rule(s))
		add_warning(list,
			"session '%s' has no event rule that is enabled: 'kymo enable-event PATTERN' adds one",
			s->name);
	else if (!s->was_started)
		add_warning(list,
			"session '%s' has not been started: 'kymo start %s' begins to record",
			s->name, s->name);
	else if (s->state == SESSION_PAUSED)
		add_warning(list,
			"session '%s' is paused: nothing is recorded until 'kymo resume %s'",
			s->name, s->name);
}

static void warn_of_silence(struct json_object *list, const struct session *s)
{
	struct ky_buf text = {0};

	if (!consumer_silence_ns(&recording_of(s)->consumer))
		return;
	consumer_put_silence(&recording_of(s)->consumer, &text);
	ky_buf_puts(&text,
		"; events wait in the buffers until it goes on, and are discarded when these are full");
	add_warning(list, "%s", text.data ? text.data : "its consumer is not at work");
	ky_buf_deinit(&text);
}

/* why: follows "3 events were discarded". */
static void warn_of_discarded(struct json_object *list, uint64_t n, const char *why)
{
	if (n)
		add_warning(list, "%" PRIu64 " event%s discarded%s", n, n == 1 ? " was" : "s were",
			why);
}

static void warn_of_losses(struct json_object *list, const struct session *s)
{
	const struct event_counts *n = &recording_of(s)->consumer.counts;
	uint64_t full = n->discarded -
			KY_MIN(n->discarded, n->discarded_too_big + n->discarded_refused +
						     n->discarded_no_slot +
						     n->discarded_interrupted);

	warn_of_discarded(list, full,
		s->error
			? " because the buffers were full, and the trace could not be written"
			: " because the buffers were full: a channel with more or larger sub-buffers holds more ('kymo enable-channel NAME --subbuf-size=SIZE --num-subbuf=N')");
	warn_of_discarded(list, n->discarded_too_big,
		": too large for a sub-buffer ('kymo enable-channel NAME --subbuf-size=SIZE' makes these larger), with too many elements, or states for which there was no room");
	warn_of_discarded(list, n->discarded_no_slot,
		" because their threads had no buffer: more lived at a time than there are buffers, or they started faster than an application that may lock its memory maps buffers; smaller ones are more ('kymo enable-channel NAME --buffers=thread --subbuf-size=SIZE --num-subbuf=N')");
	warn_of_discarded(list, n->discarded_interrupted,
		" because the recording was interrupted at every attempt, as by a debugger that executes single steps, or their threads have given up restartable sequences (rseq): channels with --buffers=thread record them");
	warn_of_discarded(list, n->discarded_refused,
		" because another definition of the name came first, their description is too large, or libkymo cannot record their contexts");
	if (n->unwritten)
		add_warning(list, "%" PRIu64 " event%s could not be written", n->unwritten,
			n->unwritten == 1 ? "" : "s");
	if (n->n_quarantined)
		add_warning(list,
			"%" PRIu64
			" buffer%s given up: an application has overwritten the control words; %" PRIu64
			" recorded event%s apart, in directories 'damaged' of the trace; it may have overwritten their counts of discarded events, too. Applications that use these buffers record nothing more into them; those that start later get others",
			n->n_quarantined, n->n_quarantined == 1 ? " was" : "s were", n->damaged,
			n->damaged == 1 ? " is" : "s are");
	if (s->error)
		add_warning(list, "%s", s->error);
}

static void warn_of_gaps(struct json_object *list, const struct session *s)
{
	struct ky_buf gaps = {0};

	session_put_gaps(s, &gaps);
	if (gaps.data)
		add_warning(list, "%s", gaps.data);
	ky_buf_deinit(&gaps);
}

static void warn_of_journal(struct json_object *list, const struct session *s)
{
	if (s->journal_fd >= 0 || s->env->bound)
		return;
	add_warning(list,
		"session '%s' would not survive the session daemon: its journal in %s cannot be written: %s%s",
		s->name, rundir_path(s->env->run, KY_RUN_SESSIONS),
		s->journal_error ? strerror(-s->journal_error) : "it has ended",
		!s->journal_suspended ? ": destroy the session and create it again"
		: s->journal_error == -ENOSPC || s->journal_error == -EDQUOT
			? ": free some space there; it is tried again"
			: ": it is tried again");
}

struct json_object *report_warnings(const struct session *s, bool losses)
{
	struct json_object *list = json_object_new_array();
	const struct notice *n;

	if (losses)
		warn_of_silence(list, s);
	warn_of_rules(list, s);
	warn_of_trackers(list, s);
	conflicts_report(s, losses ? CONFLICTS_ALL : CONFLICTS_RECORDED, json_append_text, list);
	ky_list_foreach (n, &s->notices, node)
		add_warning(list, "%s", n->text);
	warn_of_journal(list, s);
	if (s->n_notices_lost)
		add_warning(list, "%u more warnings were left out", s->n_notices_lost);
	if (losses)
		warn_of_losses(list, s);
	warn_of_gaps(list, s);
	return list;
}
