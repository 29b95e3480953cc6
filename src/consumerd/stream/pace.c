/* SPDX-License-Identifier: MIT */
#include "consumerd/stream/pace.h"

#include "svc/loop.h"

/* A source that fills in less time does not wait: the disk takes half a millisecond or more. */
#define CALM_NS (4 * KY_NS_PER_MS)
/* Bytes that the fastest writers record in a nanosecond. */
#define FASTEST 4

/*
 * Returns true if writers that are suddenly fast take more memory, instead of losing events. A
 * program in a control group with little memory does not: the source shows it by its first loss.
 */
static bool is_growable(const struct source *s)
{
	return s->capacity > (uint64_t)s->n_blocks * s->block_size && !s->lost[KY_LOST_FULL];
}

void pace_init(struct pace *p, uint64_t now_ns)
{
	p->looked_ns = now_ns;
	p->fill_ns = CALM_NS;
}

void pace_measure(struct pace *p, const struct source *s, uint64_t n_bytes, uint64_t now_ns)
{
	uint64_t size = (uint64_t)s->n_blocks * s->block_size;
	uint64_t passed = now_ns - p->looked_ns, product;

	p->looked_ns = now_ns;
	/* A source that cannot grow must not be surprised by the next burst. */
	p->fill_ns += passed / (is_growable(s) ? 8 : 64);
	if (n_bytes && !__builtin_mul_overflow(passed, size, &product))
		p->fill_ns = KY_MIN(p->fill_ns, product / n_bytes);
}

uint64_t pace_spare_ns(const struct pace *p, const struct source *s)
{
	bool calm = p->fill_ns >= CALM_NS && s->n_ready < s->n_blocks - s->n_blocks / 4;

	return calm && !s->hurries ? p->fill_ns : 0;
}

/* Returns the number of blocks that are worth one write. */
static uint32_t batch(const struct pace *p, const struct source *s)
{
	uint32_t n = KY_MIN(s->n_blocks / 2, PACE_BATCH_BYTES / s->block_size);

	if (!is_growable(s))
		n = KY_MIN(n, KY_MAX(s->n_blocks / 8, PACE_SMALL_BYTES / s->block_size));
	return pace_spare_ns(p, s) ? KY_MAX(n, 1u) : 1;
}

bool pace_is_due(const struct pace *p, const struct source *s)
{
	return s->n_ready >= batch(p, s);
}

uint64_t pace_wait_ns(const struct pace *p, const struct source *s, bool due)
{
	uint32_t missing = batch(p, s);
	uint64_t wait = p->fill_ns / 4;

	missing -= due ? 0 : KY_MIN(missing, s->n_ready);
	/* Half a block more, or the last one is often not yet full. */
	if (is_growable(s) && pace_spare_ns(p, s))
		wait = p->fill_ns / s->n_blocks * (2 * missing + 1) / 2;
	return KY_MIN(wait, is_growable(s) ? KY_MAX(s->capacity / FASTEST, CALM_NS) : CALM_NS);
}
