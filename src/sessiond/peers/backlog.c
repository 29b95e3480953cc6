/* SPDX-License-Identifier: MIT */
#include "sessiond/peers/backlog.h"

#include <inttypes.h>

#include "sessiond/model/contents.h"
#include "sessiond/peers/consumer.h"

#define RECORD_SIZE 4u /* bytes, at least */

/* The rings are in the memory of programs: no count can be believed that they cannot hold. */
static void add_backlog(struct backlog *to, const struct ring_set *set)
{
	struct ring_counts n;

	ring_memory_count(&set->memory, &set->geometry, &n);
	to->recorded += n.recorded;
	to->discarded += n.lost;
	to->fill = KY_MAX(to->fill, ring_memory_fill(&set->memory, &set->geometry));
}

static uint64_t capacity(const struct ring_set *set)
{
	return set->geometry.n_rings * set->geometry.data_stride / RECORD_SIZE;
}

void consumer_backlog(const struct consumer *c, struct backlog *ret_backlog)
{
	const struct event_counts *n = &c->counts, *retired = &c->retired;
	uint64_t written = n->recorded + n->unwritten - retired->recorded - retired->unwritten;
	uint64_t reported = n->discarded - retired->discarded, most = 0;
	struct backlog b = {0};
	const struct channel *channel;
	const struct ring_set *set;

	ky_list_foreach (channel, &c->session->channels, node)
		ky_list_foreach (set, &channel->sets, node)
			if (ring_set_is_made(set) && !set->geometry.overwrite) {
				add_backlog(&b, set);
				most += capacity(set);
			}
	b.recorded = KY_MIN(b.recorded - KY_MIN(b.recorded, written), most);
	b.discarded -= KY_MIN(b.discarded, reported);
	if (n->n_quarantined)
		b.recorded = 0; /* nobody reads the rings that were given up */
	*ret_backlog = b;
}

void consumer_put_unfinished(const struct consumer *c, struct ky_buf *to)
{
	struct backlog b;

	consumer_backlog(c, &b);
	if (consumer_silence_ns(c))
		consumer_put_silence(c, to);
	else
		ky_buf_puts(to, "its consumer is still writing");
	if (b.recorded)
		ky_buf_printf(to, "; %" PRIu64 " event%s still in the buffers", b.recorded,
			b.recorded == 1 ? " is" : "s are");
}
