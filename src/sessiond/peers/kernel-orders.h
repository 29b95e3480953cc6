/* SPDX-License-Identifier: MIT */
/* Messages that bring kernel channels to a consumer, and back from one that outlived a daemon. */
#ifndef SESSIOND_PEERS_KERNEL_ORDERS_H
#define SESSIOND_PEERS_KERNEL_ORDERS_H

#include "sessiond/kernel/kernel.h"
#include "svc/msg-conn.h"

struct consumer;

/*
 * All about the set: itself, threads, events, CPUs. A consumer that drains its buffers gets
 * precedence over ordinary processes.
 */
void kernel_order_set(struct consumer *c, const struct kernel_set *set);
void kernel_order_event(
	struct ky_msg_conn *conn, const struct kernel_set *set, const struct kernel_event *e);
void kernel_order_timers(struct ky_msg_conn *conn, const struct kernel_set *set);
/* Takes over what KERNEL_ADOPT or KERNEL_ADOPT_CPU brings. Returns 0 or -errno. */
/* CPU samples, and the perf events that there are. */
void kernel_order_samples(struct ky_msg_conn *conn, const struct samples *s);
void consumer_add_samples(const struct samples *s);
void consumer_begin_samples(const struct samples *s);
int kernel_adopt(struct session *s, int type, struct ky_reader *r, int *fds, size_t n_fds);

/* For observers: to the consumer of the set's session. */
void consumer_add_kernel_set(const struct kernel_set *set);
void consumer_add_kernel_event(const struct kernel_set *set, const struct kernel_event *e);
void consumer_add_kernel_symbols(const struct kernel_set *set);
void consumer_add_kernel_threads(const struct kernel_set *set, const struct ky_bytes *threads);
void consumer_add_kernel_dump(
	const struct kernel_set *set, uint32_t part, bool last, const struct ky_bytes *records);

#endif
