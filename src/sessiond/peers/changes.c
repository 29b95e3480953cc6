/* SPDX-License-Identifier: MIT */
/* The actions of peers when the model changes. */
#include "sessiond/peers/peers.h"

#include "sessiond/peers/agents.h"
#include "sessiond/peers/app.h"
#include "sessiond/peers/collector.h"
#include "sessiond/peers/firing.h"
#include "sessiond/peers/kernel-orders.h"
#include "sessiond/peers/orders.h"
#include "sessiond/peers/process.h"
#include "sessiond/peers/recording.h"

static void set_made(struct ring_set *set)
{
	consumer_add_set(&recording_of(set->channel->session)->consumer, set);
	firing_arm_set(set);
}

static void set_retired(struct ring_set *set)
{
	consumer_retire(&recording_of(set->channel->session)->consumer, set);
}

static void memory_freed(struct channel *c)
{
	if (c->session->step < SESSION_DROPPING)
		apps_query_channel(c, NULL);
}

static void session_state(struct session *s)
{
	triggers_session_state(s);
	if (s->state == SESSION_ENDING)
		agents_session_ends(s->env->peers->agents);
}

static void session_freed(struct session *s)
{
	agents_session_ends(s->env->peers->agents);
	processes_forget(s->env);
}

static void chunk_begun(struct session *s, bool cleared)
{
	if (!cleared)
		triggers_rotated(s);
}

void peers_init(
	struct peers *p, struct env *e, struct rundir *run, struct collector *c, struct agents *a)
{
	p->env = e;
	e->run = run;
	p->collector = c;
	p->agents = a;
	e->peers = p;
	ky_list_init(&p->apps);
	ky_list_init(&p->processes);
	ky_list_init(&p->messages);
	ky_list_init(&p->commands);
	ky_list_init(&p->searches);
	collector_init(c, e);
	agents_init(a, e);
	p->observer = (struct observer){.set_prepared = orders_add_set,
		.set_made = set_made,
		.set_retired = set_retired,
		.set_withdrawn = apps_drop_set,
		.set_closed = apps_forget_set,
		.memory_freed = memory_freed,
		.rules_changed = agents_rules_changed,
		.session_state = session_state,
		.kernel_set_made = consumer_add_kernel_set,
		.kernel_event_described = consumer_add_kernel_event,
		.kernel_stacks_wanted = consumer_add_kernel_symbols,
		.kernel_threads_found = consumer_add_kernel_threads,
		.kernel_state_dumped = consumer_add_kernel_dump,
		.samples_made = consumer_add_samples,
		.samples_begun = consumer_begin_samples,
		.chunk_begun = chunk_begun,
		.session_freed = session_freed};
	ky_list_append(&e->observers, &p->observer.node);
}
