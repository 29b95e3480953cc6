/* SPDX-License-Identifier: MIT */
#include "consumerd/retirement.h"

#include "consumerd/kept.h"
#include "consumerd/report.h"
#include "consumerd/stream/stream-set.h"

struct retired {
	struct ky_list node; /* in consumer->retired */
	struct ky_cons_retired counts;
};

static void send_retired(struct consumerd *c, const struct retired *r)
{
	uint8_t buf[256];
	struct ky_writer w = {.buf = buf, .cap = sizeof(buf)};
	int len = ky_cons_retired_encode(&w, &r->counts);

	report_send(c, buf, len);
}

/* Nothing of the set is left here but its counts. */
static int retire_set(
	struct consumerd *c, uint32_t number, const struct ky_cons_stats *s, uint64_t kept)
{
	struct retired *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->counts = (struct ky_cons_retired){
		.set = number,
		.recorded = s->recorded,
		.discarded = s->discarded,
		.discarded_too_big = s->discarded_too_big,
		.discarded_refused = s->discarded_refused,
		.discarded_no_slot = s->discarded_no_slot,
		.discarded_interrupted = s->discarded_interrupted,
		.unwritten = s->unwritten,
		.bytes = s->bytes,
		.packets = s->packets,
		.n_quarantined = s->n_quarantined,
		.removed = s->removed,
		.cleared = s->cleared,
		.damaged = s->damaged,
		.chunk = c->session->chunk,
		.kept = kept,
	};
	ky_list_append(&c->retired, &r->node);
	kept_release(c, number);
	send_retired(c, r);
	return 0;
}

int retirement_begin(struct consumerd *c, uint32_t number)
{
	static const struct ky_cons_stats none;
	struct stream_set *set;

	ky_list_foreach (set, &c->sets, node) {
		if (set->id != number)
			continue;
		stream_set_end(set);
		ky_timer_set(&c->loop, &c->timer, 0);
		return 0;
	}
	return retire_set(c, number, &none, 0); /* in overwrite mode: it was only kept */
}

bool retirement_proceed(struct consumerd *c)
{
	struct stream_set *set, *tmp;
	bool any = false;

	ky_list_foreach_safe (set, tmp, &c->sets, node) {
		struct ky_cons_stats stats = {0};

		if (!stream_set_is_written(set))
			continue;
		stream_set_give_up(set); /* what a damaged ring seems to hold */
		stream_set_add_stats(set, &stats);
		/* A successor that gets the set again, in a later chunk, continues behind it. */
		stream_set_prepare(set, c->session->chunk + 1, false);
		if (stream_set_has_packets(set))
			__atomic_store_n(
				&c->session->retired_in, c->session->chunk + 1, __ATOMIC_RELEASE);
		if (retire_set(c, set->id, &stats, stream_set_kept(set)) < 0)
			continue;
		stream_set_free(set);
		any = true;
	}
	return any;
}

static void retired_free(struct retired *r)
{
	ky_list_remove(&r->node);
	free(r);
}

void retirement_forget(struct consumerd *c, uint32_t number)
{
	struct retired *r, *tmp;

	ky_list_foreach_safe (r, tmp, &c->retired, node)
		if (r->counts.set == number)
			retired_free(r);
}

void retirement_repeat(struct consumerd *c)
{
	const struct retired *r;

	ky_list_foreach (r, &c->retired, node)
		send_retired(c, r);
}

void retirement_init(struct consumerd *c)
{
	ky_list_init(&c->retired);
}

void retirement_deinit(struct consumerd *c)
{
	struct retired *r, *tmp;

	ky_list_foreach_safe (r, tmp, &c->retired, node)
		retired_free(r);
}
