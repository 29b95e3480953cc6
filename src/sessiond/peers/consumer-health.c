/* SPDX-License-Identifier: MIT */
#include "sessiond/peers/consumer.h"

#include "sessiond/model/contents.h"

#include "sessiond/peers/proc-state.h"

#define LATE_NS (1000 * KY_NS_PER_MS) /* a consumer may be so late on a busy machine */
#define STUCK_NS                                                                                   \
	(5000 * KY_NS_PER_MS) /* in one write: a slow disk, but one that works, is waited for */
#define STARVED_NS                                                                                 \
	(20000 * KY_NS_PER_MS) /* it is runnable, but others may use all CPUs for some seconds */
#define NS_PER_S 1000000000u

uint64_t consumer_silence_ns(const struct consumer *c)
{
	uint64_t now = ky_loop_time_ns(&c->session->env->loop), since = now;
	struct ky_resume_session m;

	if (!c->connected || !consumer_read_memory(c, &m))
		return 0; /* it is being started: that is reported already */
	if (c->asked_ns)
		since = c->asked_ns;
	if (m.due_ns)
		since = KY_MIN(since, m.due_ns);
	since = KY_MAX(since, m.alive_ns);
	return since + LATE_NS < now ? now - since : 0;
}

bool consumer_is_stuck(const struct consumer *c)
{
	uint64_t silence = consumer_silence_ns(c);

	if (!silence || proc_state_is(c->process, ") T"))
		return silence;
	return silence > (proc_state_is(c->process, ") R") ? STARVED_NS : STUCK_NS);
}

void consumer_put_silence(const struct consumer *c, struct ky_buf *to)
{
	unsigned long long s = consumer_silence_ns(c) / NS_PER_S;
	int pid = (int)c->process;

	if (proc_state_is(c->process, ") T"))
		ky_buf_printf(to,
			"its consumer (pid %d) has been stopped by a signal for %llu s: 'kill -CONT %d' continues it",
			pid, s, pid);
	else if (proc_state_is(c->process, ") D"))
		ky_buf_printf(to,
			"its consumer (pid %d) has been waiting for %llu s for the disk of '%s'",
			pid, s, c->output);
	else
		ky_buf_printf(to, "its consumer (pid %d) has not worked for %llu s", pid, s);
}
