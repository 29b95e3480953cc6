/* SPDX-License-Identifier: MIT */
#include "consumerd/stream/pace.h"

#include "svc/loop.h"

/* A source that fills in less time does not wait: the disk takes half a millisecond or more. */
#define CALM_NS (4 * KY_NS_PER_MS)

void pace_init(struct pace *p, uint64_t now_ns)
{
	p->looked_ns = now_ns;
	p->fill_ns = CALM_NS;
}

void pace_measure(struct pace *p, const struct source *s, uint64_t n_bytes, uint64_t now_ns)
{
	uint64_t size = (uint64_t)s->n_blocks * s->block_size;
	uint64_t passed = now_ns - p->looked_ns, sample;

	p->looked_ns = now_ns;
	p->fill_ns += passed / 8;
	if (n_bytes && !__builtin_mul_overflow(passed, size / n_bytes, &sample))
		p->fill_ns = KY_MIN(p->fill_ns, sample);
}

uint64_t pace_spare_ns(const struct pace *p, const struct source *s)
{
	bool calm = p->fill_ns >= CALM_NS && s->n_ready < s->n_blocks - s->n_blocks / 4;

	return calm && !s->hurries ? p->fill_ns : 0;
}

bool pace_is_due(const struct pace *p, const struct source *s)
{
	uint32_t n = KY_MIN(s->n_blocks / 2, PACE_BATCH_BYTES / s->block_size);

	return s->n_ready >= (pace_spare_ns(p, s) ? KY_MAX(n, 1u) : 1u);
}
