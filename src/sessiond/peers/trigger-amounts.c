/* SPDX-License-Identifier: MIT */
#include "sessiond/peers/trigger-amounts.h"

#include <inttypes.h>

#include "sessiond/peers/backlog.h"
#include "sessiond/peers/recording.h"
#include "sessiond/peers/trigger-actions.h"

#define NS_PER_S	  UINT64_C(1000000000)
#define DISCARDED_UNKNOWN UINT64_MAX /* the consumer of a predecessor has not reported yet */

struct amounts {
	uint64_t now_ns, elapsed_ns; /* elapsed_ns 0: no rates are known yet */
	uint64_t events, new_events, bytes, new_bytes, discarded;
	uint64_t fill; /* per cent */
	uint64_t disk_free, disk_size;
	const char *failing; /* why; NULL: the consumer works */
};

/* Adds what the consumer does not count: records of buffers in overwrite mode. */
static void add_overwritten(struct amounts *a, const struct session *s)
{
	const struct channel *c;
	const struct ring_set *set;
	struct ring_counts n;

	ky_list_foreach (c, &s->channels, node)
		ky_list_foreach (set, &c->sets, node)
			if (ring_set_is_made(set) && set->geometry.overwrite) {
				ring_memory_count(&set->memory, &set->geometry, &n);
				a->events += n.recorded;
				a->discarded += n.lost;
			}
}

static void measure_amounts(struct triggers *t, struct amounts *a)
{
	const struct session *s = t->session;
	const struct consumer *c = &recording_of(s)->consumer;
	struct ky_resume_session memory;
	struct backlog b;

	*a = (struct amounts){.now_ns = ky_loop_time_ns(&s->env->loop), .disk_free = UINT64_MAX};
	consumer_backlog(c, &b);
	a->events = c->counts.recorded + c->counts.unwritten + b.recorded;
	a->discarded = c->counts.discarded + b.discarded;
	a->fill = b.fill;
	a->bytes = c->counts.bytes;
	add_overwritten(a, s);
	if (consumer_read_memory(c, &memory) && memory.disk_size) {
		a->disk_free = memory.disk_free;
		a->disk_size = memory.disk_size;
	}
	a->failing = s->error		      ? s->error
		     : consumer_silence_ns(c) ? "it has not worked for some time"
					      : NULL;
	/* A set that was retired takes its counts along: they come back with the consumer's. */
	a->new_events = a->events - KY_MIN(a->events, t->events);
	a->new_bytes = a->bytes - KY_MIN(a->bytes, t->bytes);
	a->elapsed_ns = t->looked_ns ? a->now_ns - t->looked_ns : 0;
	t->looked_ns = a->now_ns;
	t->events = KY_MAX(a->events, t->events);
	t->bytes = KY_MAX(a->bytes, t->bytes);
}

static uint64_t per_second(uint64_t n, uint64_t ns)
{
	return ns ? (uint64_t)((double)n * (double)NS_PER_S / (double)ns) : 0;
}

/* Fires if the condition became true. */
static void fire_if_met(struct trigger *t, uint64_t value, const char *unit, const char *what)
{
	bool was_met = t->is_met;

	t->is_met = condition_is_met(&t->spec.condition, value);
	if (t->is_met && !was_met)
		trigger_fire(t, "%" PRIu64 "%s %s", value, unit, what);
}

static void look_at_discarded(struct trigger *t, uint64_t discarded)
{
	uint64_t more = discarded - KY_MIN(discarded, t->discarded);

	if (t->discarded == DISCARDED_UNKNOWN)
		t->discarded = discarded;
	else if (condition_is_met(&t->spec.condition, more)) {
		t->discarded = discarded;
		trigger_fire(
			t, "%" PRIu64 " event%s discarded", more, more == 1 ? " was" : "s were");
	}
}

static void look_at(struct trigger *t, const struct amounts *a)
{
	const struct condition *c = &t->spec.condition;

	switch (c->kind) {
	case WHEN_EVENTS_RATE:
		if (a->elapsed_ns)
			fire_if_met(
				t, per_second(a->new_events, a->elapsed_ns), "", "events a second");
		break;
	case WHEN_BYTES_RATE:
		if (a->elapsed_ns)
			fire_if_met(
				t, per_second(a->new_bytes, a->elapsed_ns), "", "bytes a second");
		break;
	case WHEN_DISCARDED:
		look_at_discarded(t, a->discarded);
		break;
	case WHEN_BUFFERS:
		fire_if_met(t, a->fill, "%", "of a buffer are in use");
		break;
	case WHEN_SIZE:
		fire_if_met(t, a->bytes, "", "bytes are written");
		break;
	case WHEN_DISK_FREE:
		if (a->disk_size && c->percent)
			fire_if_met(
				t, a->disk_free * 100 / a->disk_size, "%", "of the disk are free");
		else if (a->disk_size)
			fire_if_met(t, a->disk_free, "", "bytes of the disk are free");
		break;
	case WHEN_FAILING:
		if (a->failing && !t->is_met)
			trigger_fire(t, "the consumer fails: %s", a->failing);
		t->is_met = a->failing;
		break;
	case WHEN_ROTATED:
	case WHEN_DIED:
	case WHEN_EVENT:
	case WHEN_SPAN:
		break;
	}
}

static bool is_watched(const struct triggers *t)
{
	const struct trigger *one;

	if (t->session->state != SESSION_STARTED)
		return false;
	ky_list_foreach (one, &t->list, node)
		if (condition_is_polled(&one->spec.condition))
			return true;
	return false;
}

void trigger_amounts_watch(struct triggers *t)
{
	bool wanted = is_watched(t), runs = ky_timer_is_set(&t->timer) || t->answer.op;

	if (wanted && !runs) {
		t->looked_ns = 0;
		ky_timer_set(&t->session->env->loop, &t->timer, 0);
	} else if (!wanted && runs) {
		ky_timer_cancel(&t->timer);
		barrier_deinit(&t->answer);
		t->answer = (struct barrier){0};
	}
}

static void run_timer(struct ky_timer *timer)
{
	struct triggers *t = ky_container_of(timer, struct triggers, timer);

	t->asked = recording_of(t->session)->consumer.connected;
	barrier_init(&t->answer, &t->session->env->loop, &t->answered);
	consumer_ask(&recording_of(t->session)->consumer, &t->answer);
	barrier_arm(&t->answer, TRIGGER_LOOK_NS);
}

/* Also if the consumer has not answered in time: then its last counts are compared. */
static void consumer_answered(struct op *op, int status, const char *message)
{
	struct triggers *t = ky_container_of(op, struct triggers, answered);
	struct trigger *one, *tmp;
	struct amounts a;

	t->answer = (struct barrier){0};
	measure_amounts(t, &a);
	if (!t->asked)
		status = -ENOTCONN;
	if (status) /* the next look has nothing to compare with */
		t->looked_ns = a.elapsed_ns = 0;
	ky_list_foreach_safe (one, tmp, &t->list, node)
		if (!status || one->discarded != DISCARDED_UNKNOWN)
			look_at(one, &a);
	if (is_watched(t))
		ky_timer_set(&t->session->env->loop, &t->timer, TRIGGER_LOOK_NS);
}

void trigger_amounts_init(struct triggers *t)
{
	ky_timer_init(&t->timer, run_timer);
	t->answered.done = consumer_answered;
}

void trigger_amounts_deinit(struct triggers *t)
{
	ky_timer_cancel(&t->timer);
	barrier_deinit(&t->answer);
}

void trigger_amounts_begin(struct trigger *t)
{
	struct amounts a;

	measure_amounts(&recording_of(t->session)->triggers, &a);
	t->discarded = t->session->step == SESSION_CREATING ? DISCARDED_UNKNOWN : a.discarded;
}
