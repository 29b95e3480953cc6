/* SPDX-License-Identifier: MIT */
/* Messages that bring kernel channels to a consumer, and back from one that outlived a daemon. */
#ifndef SESSIOND_PEERS_KERNEL_ORDERS_H
#define SESSIOND_PEERS_KERNEL_ORDERS_H

#include "sessiond/kernel/kernel.h"
#include "svc/msg-conn.h"

/* Everything about the set: itself, threads, stacks, events, symbols, CPUs. */
void kernel_order_set(struct ky_msg_conn *conn, const struct kernel_set *set);
void kernel_order_event(
	struct ky_msg_conn *conn, const struct kernel_set *set, const struct kernel_event *e);
void kernel_order_symbols(struct ky_msg_conn *conn, uint32_t set);
void kernel_order_threads(
	struct ky_msg_conn *conn, const struct kernel_set *set, const struct ky_bytes *threads);
void kernel_order_dump(struct ky_msg_conn *conn, const struct kernel_set *set, uint32_t part,
	bool last, const struct ky_bytes *records);
void kernel_order_timers(struct ky_msg_conn *conn, const struct kernel_set *set);
/* CPU samples, and the perf events that there are. */
void kernel_order_samples(struct ky_msg_conn *conn, const struct samples *s);
void kernel_order_samples_cpus(struct ky_msg_conn *conn, const struct samples *s);
/* Takes over what KERNEL_ADOPT or KERNEL_ADOPT_CPU brings. Returns 0 or -errno. */
int kernel_adopt(struct session *s, int type, struct ky_reader *r, int *fds, size_t n_fds);

#endif
