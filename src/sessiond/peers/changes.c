/* SPDX-License-Identifier: MIT */
/* The actions of peers when the model changes. */
#include "sessiond/peers/peers.h"

#include "sessiond/kernel/samples.h"
#include "sessiond/peers/agents.h"
#include "sessiond/peers/app.h"
#include "sessiond/peers/collector.h"
#include "sessiond/peers/ended.h"
#include "sessiond/peers/firing.h"
#include "sessiond/peers/kernel-orders.h"
#include "sessiond/peers/orders.h"
#include "sessiond/peers/process.h"
#include "sessiond/peers/recording.h"
#include "sessiond/peers/triggers.h"

static void set_made(struct ring_set *set)
{
	consumer_add_set(&recording_of(set->channel->session)->consumer, set);
	firing_arm_set(set);
}

static void set_retired(struct ring_set *set)
{
	consumer_retire(&recording_of(set->channel->session)->consumer, set);
}

static void kernel_set_made(const struct kernel_set *set)
{
	consumer_add_kernel_set(&recording_of(set->channel->session)->consumer, set);
}

/* Returns the connection of the session's consumer, or NULL. */
static struct ky_msg_conn *conn_of(const struct session *s)
{
	struct consumer *c = &recording_of(s)->consumer;

	return c->connected ? &c->conn : NULL;
}

static void kernel_event_described(const struct kernel_set *set, const struct kernel_event *e)
{
	struct ky_msg_conn *conn = conn_of(set->channel->session);

	if (conn)
		kernel_order_event(conn, set, e);
}

static void kernel_stacks_wanted(const struct kernel_set *set)
{
	struct ky_msg_conn *conn = conn_of(set->channel->session);

	if (conn)
		kernel_order_symbols(conn, set->number);
}

static void kernel_threads_found(const struct kernel_set *set, const struct ky_bytes *threads)
{
	struct ky_msg_conn *conn = conn_of(set->channel->session);

	if (conn)
		kernel_order_threads(conn, set, threads);
}

static void kernel_state_dumped(
	const struct kernel_set *set, uint32_t part, bool last, const struct ky_bytes *records)
{
	struct ky_msg_conn *conn = conn_of(set->channel->session);

	if (conn)
		kernel_order_dump(conn, set, part, last, records);
}

static void samples_made(const struct samples *s)
{
	if (conn_of(s->session))
		kernel_order_samples(conn_of(s->session), s);
}

static void samples_begun(const struct samples *s)
{
	if (conn_of(s->session))
		kernel_order_samples_cpus(conn_of(s->session), s);
}

static void memory_freed(struct channel *c)
{
	if (c->session->step < SESSION_DROPPING)
		apps_query_channel(c, NULL);
}

/* Programs without a daemon, which cannot reach this one, do not get its orders. */
static void inform_orphans(struct session *s)
{
	const struct ring_set *set;
	const struct channel *c;

	ky_list_foreach (c, &s->channels, node)
		ky_list_foreach (set, &c->sets, node)
			if (ring_set_is_made(set) && set->memory.rings_fd >= 0)
				ring_memory_set_stopped(&set->memory, s->state != SESSION_STARTED);
}

static void session_state(struct session *s)
{
	inform_orphans(s);
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

static void process_ended(const struct process *p)
{
	apps_process_ended(p);
	program_ended(p);
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
		.session_settled = inform_orphans,
		.conditions_met = firing_reported,
		.copy_begun = firing_begin_copy,
		.copy_ended = firing_end_copy,
		.process_ended = process_ended,
		.program_died = triggers_program_died,
		.kernel_set_made = kernel_set_made,
		.kernel_event_described = kernel_event_described,
		.kernel_stacks_wanted = kernel_stacks_wanted,
		.kernel_threads_found = kernel_threads_found,
		.kernel_state_dumped = kernel_state_dumped,
		.samples_made = samples_made,
		.samples_begun = samples_begun,
		.chunk_begun = chunk_begun,
		.session_freed = session_freed};
	ky_list_append(&e->observers, &p->observer.node);
}
