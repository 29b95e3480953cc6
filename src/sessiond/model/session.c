/* SPDX-License-Identifier: MIT */
#include "sessiond/model/session.h"

#include <inttypes.h>
#include <stdarg.h>

#include "svc/check.h"
#include "svc/log.h"

struct session *session_find(const struct env *e, const char *name)
{
	struct session *s;

	ky_list_foreach (s, &e->sessions, node)
		if (!strcmp(s->name, name))
			return s;
	return NULL;
}

bool session_wants_uid(const struct session *s, uid_t uid)
{
	return s->all_uids || s->uid == uid;
}

void session_track(struct session *s, struct tracker trackers[N_TRACKERS])
{
	for (int i = 0; i < N_TRACKERS; i++) {
		struct tracker old = s->trackers[i];

		s->trackers[i] = trackers[i];
		trackers[i] = old;
	}
	OBSERVE(s->env, session_tracks, s);
}

const char *session_state_name(const struct session *s)
{
	static const char *const names[] = {"stopped", "started", "paused", "stopped"};

	return names[s->state];
}

void session_set_error(struct session *s, const char *message)
{
	if (!message || !*message) {
		if (s->error)
			ky_info("session '%s': the failure has ended", s->name);
		free(s->error);
		s->error = NULL;
		return;
	}
	if (s->error && !strcmp(s->error, message))
		return;
	ky_error("session '%s': %s", s->name, message);
	free(s->error);
	s->error = strdup(message);
}

static bool has_notice(const struct session *s, const char *text)
{
	struct notice *n;

	ky_list_foreach (n, &s->notices, node)
		if (!strcmp(n->text, text))
			return true;
	return false;
}

static unsigned count_notices(const struct session *s, uid_t uid)
{
	struct notice *n;
	unsigned count = 0;

	ky_list_foreach (n, &s->notices, node)
		count += n->uid == uid;
	return count;
}

static struct notice *notice_free(struct notice *n)
{
	if (n)
		free(n->text);
	free(n);
	return NULL;
}

void session_notice(struct session *s, const char *fmt, ...)
{
	struct notice *n;
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (has_notice(s, text))
		return;
	if (s->n_notices >= NOTICES_MAX || count_notices(s, s->env->cause) >= USER_NOTICES_MAX) {
		s->n_notices_lost++;
		return;
	}
	ky_warning("session '%s': %s", s->name, text);
	n = calloc(1, sizeof(*n));
	if (!n || !(n->text = strdup(text))) {
		notice_free(n);
		s->n_notices_lost++;
		return;
	}
	n->uid = s->env->cause;
	ky_list_append(&s->notices, &n->node);
	s->n_notices++;
}

void session_put_unattended(const struct session *s, struct ky_buf *to)
{
	if (s->unattended_ns && s->was_started)
		ky_buf_printf(to,
			"%sno session daemon ran for %.3f s: applications that started and ended meanwhile are not in the trace",
			to->len ? "; " : "", (double)s->unattended_ns / 1e9);
}

void session_put_gaps(const struct session *s, struct ky_buf *to)
{
	unrecorded_describe(to, &s->unrecorded);
	session_put_unattended(s, to);
}

void session_clock_put(const struct ky_clock_info *info, char text[SESSION_CLOCK_MAX])
{
	snprintf(text, SESSION_CLOCK_MAX, "%" PRIu64 " %" PRId64 " %" PRIu64, info->freq,
		info->offset_s, info->offset);
}

int session_clock_take(struct ky_clock_info *info, const char *text)
{
	uint64_t freq, offset;
	int64_t seconds;
	int n = 0;

	if (sscanf(text, "%" SCNu64 " %" SCNd64 " %" SCNu64 "%n", &freq, &seconds, &offset, &n) !=
			3 ||
		text[n] || !freq || offset >= freq || seconds < 0 ||
		(info->clock == KY_CLOCK_MONOTONIC && freq != info->freq))
		return -EINVAL;
	info->freq = freq;
	info->offset_s = seconds;
	info->offset = offset;
	return 0;
}

int session_init(struct session *s, struct env *e, const struct session_spec *spec)
{
	s->env = e;
	s->number = env_next_cookie(e);
	s->snapshot = spec->snapshot;
	s->seconds = spec->seconds;
	s->switch_us = spec->switch_us;
	s->absolute_clock = spec->absolute_clock;
	s->uid = spec->uid;
	s->gid = spec->gid;
	s->bound = spec->bound;
	s->journal_fd = s->journal_kept_fd = s->shm_fd = -1;
	s->all_uids = e->uid == 0;
	ky_list_init(&s->node);
	ky_list_init(&s->channels);
	ky_list_init(&s->registries);
	ky_list_init(&s->notices);
	ky_clock_measure(e->clock, &s->clock);
	if (spec->clock && session_clock_take(&s->clock, spec->clock) < 0)
		return -EINVAL;
	s->name = strdup(spec->name);
	s->output = strdup(spec->output);
	s->shm_path = *spec->shm_path ? strdup(spec->shm_path) : NULL;
	return s->name && s->output && (s->shm_path || !*spec->shm_path) ? 0 : -ENOMEM;
}

void session_list(struct session *s)
{
	ky_list_append(&s->env->sessions, &s->node);
	s->env->n_sessions++;
}

void session_unlist(struct session *s)
{
	if (ky_list_empty(&s->node))
		return;
	KY_CHECK(s->env->n_sessions > 0);
	ky_list_remove(&s->node);
	s->env->n_sessions--;
}

void session_deinit(struct session *s)
{
	struct notice *n, *tmp;

	KY_CHECK(ky_list_empty(&s->channels) && ky_list_empty(&s->registries));
	session_unlist(s);
	for (int i = 0; i < N_TRACKERS; i++)
		tracker_deinit(&s->trackers[i]);
	ky_list_foreach_safe (n, tmp, &s->notices, node)
		notice_free(n);
	ky_close(s->shm_fd);
	free(s->shm_path);
	unrecorded_deinit(&s->unrecorded);
	free(s->error);
	free(s->output);
	free(s->name);
}

void session_set_state(struct session *s, enum session_state state)
{
	KY_CHECK(s->state != SESSION_ENDING || state == SESSION_ENDING);
	s->state = state;
	s->was_started |= state == SESSION_STARTED;
	OBSERVE(s->env, session_state, s);
}
