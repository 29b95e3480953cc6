/* SPDX-License-Identifier: MIT */
#include "sessiond/peers/rotation.h"

#include "sessiond/peers/health.h"
#include "sessiond/peers/recording.h"
#include "svc/log.h"

/* The size is looked at this often: what is written meanwhile belongs to the chunk. */
#define POLL_NS (100 * KY_NS_PER_MS)

static struct session *session_of(struct rotation *r)
{
	return &ky_container_of(r, struct recording, rotation)->session;
}

static void by_itself(struct session *s)
{
	int ret = s->state == SESSION_STARTED ? rotation_begin(s, false, NULL) : 0;

	if (ret < 0 && ret != -EBUSY)
		session_notice(s, "scheduled rotation: %s", strerror(-ret));
}

static void run_timer(struct ky_timer *t)
{
	struct rotation *r = ky_container_of(t, struct rotation, timer);
	struct session *s = session_of(r);

	ky_timer_set(&s->env->loop, t, r->timer_us * 1000);
	by_itself(s);
}

static void run_poll(struct ky_timer *t)
{
	struct rotation *r = ky_container_of(t, struct rotation, poll);

	consumer_ask(&recording_of(session_of(r))->consumer, &r->poll_barrier);
	barrier_arm(&r->poll_barrier, CONSUMER_ANSWER_NS);
}

static void chunk_polled(struct op *op, int status, const char *message)
{
	struct rotation *r = ky_container_of(op, struct rotation, polled);
	struct session *s = session_of(r);

	if (recording_of(s)->consumer.counts.bytes - r->bytes >= r->size)
		by_itself(s);
	barrier_init(&r->poll_barrier, &s->env->loop, &r->polled);
	ky_timer_set(&s->env->loop, &r->poll, POLL_NS);
}

/* Completes the order for the one who waits for it, if somebody still does. */
static void answer_order(struct rotation *r, int status, const char *message)
{
	struct op *op = r->op;

	r->op = NULL;
	barrier_deinit(&r->answer);
	op_done(op, status, message);
}

/* The consumer has not answered in time, or is stuck. It goes on with the order. */
static void order_is_late(struct op *op, int status, const char *message)
{
	struct rotation *r = ky_container_of(op, struct rotation, late);
	struct ky_buf why = {0};

	if (!status)
		return;
	ky_buf_printf(
		&why, "it is not %s yet, which goes on: ", *r->archive ? "rotated" : "cleared");
	session_put_unfinished(session_of(r), &why);
	answer_order(r, status, why.data ? why.data : "it is late");
	ky_buf_deinit(&why);
}

static void order_done(struct op *op, int status, const char *message);

void rotation_init(struct session *s)
{
	struct rotation *r = &recording_of(s)->rotation;

	*r = (struct rotation){.begin = time(NULL)};
	ky_timer_init(&r->timer, run_timer);
	ky_timer_init(&r->poll, run_poll);
	r->late.done = order_is_late;
	r->polled.done = chunk_polled;
	r->rotated.done = order_done;
	barrier_init(&r->poll_barrier, &s->env->loop, &r->polled);
}

static void set_schedule(struct session *s, uint64_t timer_us, uint64_t size)
{
	struct rotation *r = &recording_of(s)->rotation;

	r->timer_us = timer_us;
	r->size = size;
	ky_timer_cancel(&r->timer);
	ky_timer_cancel(&r->poll);
	barrier_deinit(&r->poll_barrier);
	barrier_init(&r->poll_barrier, &s->env->loop, &r->polled);
	if (timer_us)
		ky_timer_set(&s->env->loop, &r->timer, timer_us * 1000);
	if (size)
		ky_timer_set(&s->env->loop, &r->poll, 0);
}

void rotation_deinit(struct session *s)
{
	struct rotation *r = &recording_of(s)->rotation;

	set_schedule(s, 0, 0);
	answer_order(r, -ECANCELED, "the session was destroyed meanwhile");
	free(r->archive);
	free(r->error);
	free(r->path);
}

static void format_time(char *buf, size_t size, time_t t)
{
	struct tm tm;

	localtime_r(&t, &tm);
	strftime(buf, size, "%Y%m%dT%H%M%S%z", &tm);
}

/* BEGIN-END-N, as LTTng has it. */
static char *make_archive(const struct rotation *r)
{
	char begin[64], end[64], *name;

	format_time(begin, sizeof(begin), r->begin);
	format_time(end, sizeof(end), time(NULL));
	return asprintf(&name, "%s-%s-%u", begin, end, r->n_archived) < 0 ? NULL : name;
}

int rotation_begin(struct session *s, bool clear, struct op *op)
{
	struct rotation *r = &recording_of(s)->rotation;

	if (r->archive)
		return -EBUSY;
	r->archive = clear ? strdup("") : make_archive(r);
	if (!r->archive)
		return -ENOMEM;
	r->was_cleared = recording_of(s)->consumer.counts.cleared;
	r->op = op;
	barrier_init(&r->answer, &s->env->loop, &r->late);
	consumer_rotate(
		&recording_of(s)->consumer, r->chunk + 1, r->archive, &r->rotated, &r->answer);
	barrier_arm(&r->answer, CONSUMER_ANSWER_NS);
	return 0;
}

char *rotation_path(const struct session *s)
{
	char *path;

	return asprintf(&path, "%s/archives/%s", s->output, recording_of(s)->rotation.archive) < 0
		       ? NULL
		       : path;
}

/* A new chunk has begun. */
static void begin_chunk(struct session *s)
{
	struct rotation *r = &recording_of(s)->rotation;

	consumer_chunk_ended(&recording_of(s)->consumer, r->chunk, !*r->archive);
	r->chunk++;
	r->begin = time(NULL);
	r->bytes = recording_of(s)->consumer.counts.bytes;
	r->n_archived += !!*r->archive;
	OBSERVE(s->env, chunk_begun, s, !*r->archive);
	if (!*r->archive) {
		r->n_cleared = recording_of(s)->consumer.counts.cleared - r->was_cleared;
		return;
	}
	free(r->path);
	r->path = rotation_path(s);
}

void rotation_adopt(struct session *s, uint64_t chunk)
{
	struct rotation *r = &recording_of(s)->rotation;

	if (r->chunk == chunk)
		return;
	r->chunk = chunk;
	r->begin = time(NULL);
	OBSERVE(s->env, chunk_begun, s, false);
}

/* Logs a failure once, however often it is repeated. */
static void keep_error(struct session *s, const char *message)
{
	struct rotation *r = &recording_of(s)->rotation;

	if (message && (!r->error || strcmp(r->error, message)))
		ky_error("session '%s': cannot %s: %s", s->name, *r->archive ? "rotate" : "clear",
			message);
	free(r->error);
	r->error = message ? strdup(message) : NULL;
}

static void order_done(struct op *op, int status, const char *message)
{
	struct rotation *r = ky_container_of(op, struct rotation, rotated);
	struct session *s = session_of(r);

	if (!status)
		begin_chunk(s);
	keep_error(s, status < 0 && status != -ENODATA ? message : NULL);
	free(r->archive);
	r->archive = NULL;
	answer_order(r, status, message);
}

void rotation_schedule(struct session *s, uint64_t timer_us, uint64_t size)
{
	set_schedule(s, timer_us, size);
	OBSERVE(s->env, schedule_changed, s);
}
