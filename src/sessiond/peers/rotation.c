/* SPDX-License-Identifier: MIT */
#include "sessiond/peers/rotation.h"

#include "sessiond/kernel/kernel.h"
#include "sessiond/model/contents.h"
#include "sessiond/peers/consumer.h"
#include "svc/log.h"

/* The size is looked at this often: what is written meanwhile belongs to the chunk. */
#define POLL_NS (100 * KY_NS_PER_MS)

#define BOUND_CHUNKS  4		  /* a bounded trace has so many chunks, at least */
#define CHUNK_MIN     (64u << 10) /* bytes */
#define CHUNK_OF_FREE (64u << 20) /* bytes of a chunk if only the free space is bounded */

/* A predecessor's session may be in another chunk than the journal says until it was adopted. */
static bool may_rotate(const struct session *s)
{
	return s->state == SESSION_STARTED && s->step != SESSION_CREATING;
}

static void rotate_as_scheduled(struct rotation *r)
{
	struct session *s = r->session;
	int ret = may_rotate(s) ? rotation_begin(r, false, NULL) : 0;

	if (ret < 0 && ret != -EBUSY)
		session_notice(s, "scheduled rotation: %s", strerror(-ret));
}

static void run_timer(struct ky_timer *t)
{
	struct rotation *r = ky_container_of(t, struct rotation, timer);

	ky_timer_set(&r->session->env->loop, t, r->schedule.timer_us * 1000);
	rotate_as_scheduled(r);
}

static void run_poll(struct ky_timer *t)
{
	struct rotation *r = ky_container_of(t, struct rotation, poll);

	consumer_ask(r->consumer, &r->poll_barrier);
	barrier_arm(&r->poll_barrier, CONSUMER_ANSWER_NS);
}

/* Returns the bytes at which the session is rotated; 0: never. A bound needs chunks to remove. */
static uint64_t chunk_size_of(const struct rotation_schedule *schedule)
{
	uint64_t size = schedule->size;

	if (schedule->max_disk)
		size = KY_MIN(size ? size : UINT64_MAX,
			KY_MAX(schedule->max_disk / BOUND_CHUNKS, CHUNK_MIN));
	if (schedule->keep_free)
		size = KY_MIN(size ? size : UINT64_MAX, CHUNK_OF_FREE);
	return size;
}

/* Returns whether the chunk has reached the size of the schedule. */
static bool is_full(struct rotation *r)
{
	const struct consumer *c = r->consumer;

	return c->counted && c->counts.bytes >= r->bytes &&
	       c->counts.bytes - r->bytes >= chunk_size_of(&r->schedule);
}

static void chunk_polled(struct op *op, int status, const char *message)
{
	struct rotation *r = ky_container_of(op, struct rotation, polled);
	struct ky_loop *loop = &r->session->env->loop;

	if (!status && is_full(r))
		rotate_as_scheduled(r);
	barrier_init(&r->poll_barrier, loop, &r->polled);
	ky_timer_set(loop, &r->poll, POLL_NS);
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

	if (status)
		answer_order(r, status, "");
}

static void order_done(struct op *op, int status, const char *message);

void rotation_init(struct rotation *r, struct session *s, struct consumer *c)
{
	*r = (struct rotation){.session = s, .consumer = c, .begin = time(NULL)};
	ky_timer_init(&r->timer, run_timer);
	ky_timer_init(&r->poll, run_poll);
	r->late.done = order_is_late;
	r->polled.done = chunk_polled;
	r->rotated.done = order_done;
	barrier_init(&r->poll_barrier, &s->env->loop, &r->polled);
}

static void apply_schedule(struct rotation *r, const struct rotation_schedule *schedule)
{
	struct ky_loop *loop = &r->session->env->loop;

	r->schedule = *schedule;
	ky_timer_cancel(&r->timer);
	ky_timer_cancel(&r->poll);
	barrier_deinit(&r->poll_barrier);
	barrier_init(&r->poll_barrier, loop, &r->polled);
	if (schedule->timer_us)
		ky_timer_set(loop, &r->timer, schedule->timer_us * 1000);
	if (chunk_size_of(schedule))
		ky_timer_set(loop, &r->poll, 0);
}

void rotation_deinit(struct rotation *r)
{
	apply_schedule(r, &(struct rotation_schedule){0});
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

int rotation_begin(struct rotation *r, bool clear, struct op *op)
{
	struct ky_resume_session memory;

	/*
	 * The consumer may have carried out an order of a dead daemon. Then a trigger may begin a
	 * rotation.
	 */
	if (!r->ongoing && consumer_read_memory(r->consumer, &memory))
		rotation_adopt(r, memory.chunk);
	if (r->ongoing)
		return -EBUSY;
	free(r->archive);
	r->archive = clear ? strdup("") : make_archive(r);
	if (!r->archive)
		return -ENOMEM;
	r->ongoing = true;
	r->clears = clear;
	OBSERVE(r->session->env, rotation_ordered, r->session);
	kernel_check_instances(r->session);
	r->was_cleared = r->consumer->counts.cleared;
	r->op = op;
	barrier_init(&r->answer, &r->session->env->loop, &r->late);
	consumer_rotate(r->consumer, r->chunk + 1, r->archive, &r->rotated, &r->answer);
	barrier_arm(&r->answer, CONSUMER_ANSWER_NS);
	return 0;
}

char *rotation_path(const struct rotation *r)
{
	const char *name = r->archive ? r->archive : "", *output = r->session->output;
	char *path;

	return asprintf(&path, "%s/archives/%s", output, name) < 0 ? NULL : path;
}

/* A new chunk has begun: the last order was carried out. */
static void enter_chunk(struct rotation *r)
{
	consumer_chunk_ended(r->consumer, r->chunk, r->clears);
	r->chunk++;
	r->begin = time(NULL);
	if (!r->clears) {
		r->n_archived++;
		free(r->path);
		r->path = rotation_path(r);
	}
	OBSERVE(r->session->env, chunk_begun, r->session, r->clears);
}

static void begin_chunk(struct rotation *r)
{
	if (r->consumer->counted)
		r->bytes = r->consumer->counts.bytes;
	enter_chunk(r);
	if (r->clears)
		r->n_cleared = r->consumer->counts.cleared - r->was_cleared;
}

/*
 * Does not change r->bytes: nobody has counted what the new chunk has already. So it may be shorter
 * than others, but not longer.
 */
void rotation_adopt(struct rotation *r, uint64_t chunk)
{
	if (chunk == r->chunk + 1)
		enter_chunk(r);
}

/* Logs a failure once, however often it is repeated. */
static void keep_error(struct rotation *r, const char *message)
{
	if (message && (!r->error || strcmp(r->error, message)))
		ky_error("session '%s': cannot %s: %s", r->session->name,
			*r->archive ? "rotate" : "clear", message);
	free(r->error);
	r->error = message ? strdup(message) : NULL;
}

static void order_done(struct op *op, int status, const char *message)
{
	struct rotation *r = ky_container_of(op, struct rotation, rotated);

	/* Else a predecessor's order led to the same chunk, which was adopted meanwhile. */
	if (!status && r->chunk < r->consumer->rotate_chunk)
		begin_chunk(r);
	keep_error(r, status < 0 && status != -ENODATA ? message : NULL);
	r->ongoing = false;
	answer_order(r, status, message);
}

void rotation_set_schedule(struct rotation *r, const struct rotation_schedule *schedule)
{
	const struct ky_cons_bounds bounds = {.max_disk = schedule->max_disk,
		.keep_free = schedule->keep_free,
		.keep_chunks = schedule->keep_chunks,
		.keep_bytes = schedule->keep_bytes,
		.keep_s = schedule->keep_s};

	apply_schedule(r, schedule);
	consumer_set_bounds(r->consumer, &bounds);
	OBSERVE(r->session->env, schedule_changed, r->session);
}
