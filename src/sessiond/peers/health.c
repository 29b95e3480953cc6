/* SPDX-License-Identifier: MIT */
#include "sessiond/peers/health.h"

#include <inttypes.h>

#include "sessiond/peers/proc-state.h"
#include "sessiond/peers/recording.h"

#define LATE_NS (1000 * KY_NS_PER_MS) /* a consumer may be so late on a busy machine */
#define STUCK_NS                                                                                   \
	(5000 * KY_NS_PER_MS) /* in one write: a slow disk, but one that works, is waited for */
#define NS_PER_S    1000000000u
#define RECORD_SIZE 4u /* bytes, at least */

static bool read_memory(const struct consumer *c, struct ky_resume_session *ret_memory)
{
	return c->memory_fd >= 0 &&
	       pread(c->memory_fd, ret_memory, sizeof(*ret_memory), 0) == sizeof(*ret_memory);
}

uint64_t consumer_silence_ns(const struct consumer *c)
{
	uint64_t now = ky_loop_time_ns(&c->session->env->loop), since;
	struct ky_resume_session m;

	if (!c->connected || !read_memory(c, &m))
		return 0; /* it is being started: that is reported already */
	if (c->asked_ns)
		since = c->asked_ns;
	else if (m.due_ns && m.due_ns < now)
		since = m.due_ns;
	else
		return 0;
	since = KY_MAX(since, m.alive_ns);
	return since + LATE_NS < now ? now - since : 0;
}

bool consumer_is_stuck(const struct consumer *c)
{
	uint64_t silence = consumer_silence_ns(c);

	return silence && (silence > STUCK_NS || proc_state_is(c->process, ") T"));
}

void consumer_put_silence(const struct consumer *c, struct ky_buf *to)
{
	unsigned long long s = consumer_silence_ns(c) / NS_PER_S;
	int pid = (int)c->process;

	if (proc_state_is(c->process, ") T"))
		ky_buf_printf(to,
			"its consumer (pid %d) has been stopped by a signal for %llu s: 'kill -CONT %d' lets it go on",
			pid, s, pid);
	else if (proc_state_is(c->process, ") D"))
		ky_buf_printf(to,
			"its consumer (pid %d) has been waiting for %llu s for the disk of '%s'",
			pid, s, c->output);
	else
		ky_buf_printf(to, "its consumer (pid %d) has not been at work for %llu s", pid, s);
}

/* The rings are in the memory of programs: no count can be believed that they cannot hold. */
static void add_backlog(struct backlog *to, const struct ring_set *set)
{
	struct ring_counts n;

	ring_memory_count(&set->memory, &set->geometry, &n);
	to->recorded += n.recorded;
	to->discarded += n.lost;
}

static uint64_t capacity(const struct ring_set *set)
{
	return set->geometry.n_rings * set->geometry.data_stride / RECORD_SIZE;
}

void session_backlog(const struct session *s, struct backlog *ret_backlog)
{
	const struct event_counts *n = &recording_of(s)->consumer.counts,
				  *retired = &recording_of(s)->consumer.retired;
	uint64_t written = n->recorded + n->unwritten - retired->recorded - retired->unwritten;
	uint64_t reported = n->discarded - retired->discarded, most = 0;
	struct backlog b = {0};
	const struct channel *c;
	const struct ring_set *set;

	ky_list_foreach (c, &s->channels, node)
		ky_list_foreach (set, &c->sets, node)
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

void session_put_unfinished(const struct session *s, struct ky_buf *to)
{
	struct backlog b;

	session_backlog(s, &b);
	if (consumer_silence_ns(&recording_of(s)->consumer))
		consumer_put_silence(&recording_of(s)->consumer, to);
	else
		ky_buf_puts(to, "its consumer is still writing");
	if (b.recorded)
		ky_buf_printf(to, "; %" PRIu64 " event%s still in the buffers", b.recorded,
			b.recorded == 1 ? " is" : "s are");
}
