/* SPDX-License-Identifier: MIT */
#include "consumerd/consumerd.h"

#include <sys/mman.h>

#include "consumerd/connection.h"
#include "consumerd/kept.h"
#include "consumerd/kernel-sets.h"
#include "consumerd/retirement.h"
#include "consumerd/round.h"
#include "consumerd/stream/stream-set.h"
#include "svc/log.h"

/* Ends the loop once the last reply was sent. */
static void on_turn(struct ky_loop *loop)
{
	struct consumerd *c = ky_container_of(loop, struct consumerd, loop);

	if (c->session)
		__atomic_store_n(&c->session->alive_ns, ky_loop_now_ns(), __ATOMIC_RELAXED);
	if (c->quitting && (!c->connected || ky_list_empty(&c->conn.queue)))
		ky_loop_stop(loop);
}

int consumerd_init(struct consumerd *c)
{
	int ret;

	*c = (struct consumerd){
		.root_fd = -1, .session_fd = -1, .source_fd = -1, .sink = &null_sink};
	ky_list_init(&c->traces);
	ky_list_init(&c->sets);
	connection_init(c);
	kept_init(c);
	kernel_sets_init(c);
	retirement_init(c);
	round_init(c);
	ret = ky_loop_init(&c->loop);
	c->loop.on_turn = on_turn;
	return ret;
}

int consumerd_run(struct consumerd *c)
{
	int ret = ky_loop_run(&c->loop);

	if (ret < 0)
		ky_error("cannot wait for events: %s", strerror(-ret));
	return ret < 0 ? 1 : c->exit_status;
}

void consumerd_deinit(struct consumerd *c)
{
	struct stream_set *set, *next_set;
	struct trace *t, *next_trace;

	round_deinit(c);
	kept_deinit(c);
	kernel_sets_deinit(c);
	retirement_deinit(c);
	ky_list_foreach_safe (set, next_set, &c->sets, node)
		stream_set_free(set);
	ky_list_foreach_safe (t, next_trace, &c->traces, node)
		trace_free(t);
	connection_deinit(c);
	archives_deinit(&c->archives);
	ky_loop_deinit(&c->loop);
	if (c->session)
		munmap(c->session, sizeof(*c->session));
	if (c->sink)
		c->sink->ops->close(c->sink);
	ky_close(c->root_fd);
	ky_close(c->session_fd);
	free(c->output);
	free(c->reason);
}
