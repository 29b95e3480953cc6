/* SPDX-License-Identifier: MIT */
#include "sessiond/peers/kernel-orders.h"

#include <fcntl.h>

#include "kernel/contexts.h"
#include "kernel/program.h"
#include "proto/consumer.h"
#include "sessiond/kernel/events.h"
#include "sessiond/kernel/samples.h"
#include "sessiond/kernel/statedump.h"
#include "sessiond/model/channel.h"

KY_CONS_MESSAGES(KY_MSG_SENDER)

static uint32_t mode_of(const struct channel *c)
{
	return c->overwrite ? KY_KERNEL_SNAPSHOT : KY_KERNEL_DISCARD;
}

static void send_set(struct ky_msg_conn *conn, const struct kernel_set *set)
{
	const struct channel *c = set->channel;
	_cleanup_close_ int log = memory_open_read_only(set->registry->log_fd);
	const int fds[] = {set->memory_fd, log, set->main.free_buffer, set->main.dir};
	uint64_t uuid[2];
	struct ky_cons_kernel_set m = {
		.set = set->number,
		.stream_id = set->stream_id,
		.dir = "kernel",
		.name = c->name,
		.overwrite = mode_of(c),
		.clock = c->session->clock.clock,
		.n_cpus = set->main.n_cpus,
		.subbuf_size = set->main.subbuf_size,
		.buffer_size = set->main.buffer_size,
		.file_size = set->tracefile_size,
		.n_files = set->tracefile_count,
		.dump_cpu = set->dump_cpu,
		.may_map = set->may_map,
	};

	registry_uuid(set->registry, uuid);
	m.uuid_hi = uuid[0];
	m.uuid_lo = uuid[1];
	if (log < 0)
		ky_msg_conn_fail(conn, log);
	else
		ky_cons_kernel_set_send(conn, &m, fds, KY_ARRAY_SIZE(fds));
}

static void send_tasks(struct ky_msg_conn *conn, const struct kernel_set *set)
{
	const struct ky_cons_kernel_tasks m = {.set = set->number,
		.subbuf_size = set->tasks.subbuf_size,
		.tasks = {set->task_fields, sizeof(*set->task_fields)}};

	ky_cons_kernel_tasks_send(conn, &m, NULL, 0);
}

static void send_cpus(struct ky_msg_conn *conn, const struct kernel_set *set)
{
	for (uint32_t i = 0; i < set->main.n_cpus; i++) {
		const int fds[] = {
			set->main.cpus[i].raw, set->main.cpus[i].stats, set->tasks.cpus[i].raw};

		if (fds[0] >= 0)
			ky_cons_kernel_cpu_send(conn,
				&(struct ky_cons_kernel_cpu){.set = set->number, .cpu = i}, fds,
				KY_ARRAY_SIZE(fds));
	}
}

void kernel_order_timers(struct ky_msg_conn *conn, const struct kernel_set *set)
{
	const struct ky_cons_timers m = {
		.set = set->number,
		.switch_us = set->channel->switch_timer_us,
		.read_us = set->channel->read_timer_us,
	};

	ky_cons_timers_send(conn, &m, NULL, 0);
}

void kernel_order_event(
	struct ky_msg_conn *conn, const struct kernel_set *set, const struct kernel_event *e)
{
	uint8_t buf[KY_MSG_MAX];
	struct ky_writer w = {.buf = buf, .cap = sizeof(buf)};

	ky_msg_conn_send(conn, buf, kernel_event_encode(&w, set, e), NULL, 0);
}

void kernel_order_threads(
	struct ky_msg_conn *conn, const struct kernel_set *set, const struct ky_bytes *threads)
{
	const struct ky_cons_kernel_threads m = {.set = set->number, .threads = *threads};

	ky_cons_kernel_threads_send(conn, &m, NULL, 0);
}

static void order_threads(void *conn, const struct kernel_set *set, const struct ky_bytes *threads)
{
	kernel_order_threads(conn, set, threads);
}

void kernel_order_dump(struct ky_msg_conn *conn, const struct kernel_set *set, uint32_t part,
	bool last, const struct ky_bytes *records)
{
	const struct ky_cons_kernel_dump m = {.set = set->number,
		.number = set->n_dumps,
		.part = part,
		.last = last,
		.clock = set->dump_clock,
		.records = *records};

	ky_cons_kernel_dump_send(conn, &m, NULL, 0);
}

static bool wants_kernel_stacks(const struct channel *c)
{
	for (uint32_t i = 0; i < c->n_contexts; i++)
		if (c->contexts[i].type->kind == KY_KCTX_CALLSTACK_KERNEL)
			return true;
	return false;
}

/* The kernel shows addresses to a reader if it shows them to the process that opened the file. */
void kernel_order_symbols(struct ky_msg_conn *conn, uint32_t set)
{
	_cleanup_close_ int fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
	const struct ky_cons_kernel_symbols m = {.set = set};

	if (fd >= 0)
		ky_cons_kernel_symbols_send(conn, &m, &fd, 1);
}

/* A kernel that has none of these records no stacks. */
static void send_stacks(struct ky_msg_conn *conn, const struct kernel_set *set)
{
	static const char *const names[] = {"kernel_stack", "user_stack"};

	for (size_t i = 0; i < KY_ARRAY_SIZE(names); i++) {
		uint8_t buf[1024];
		struct ky_writer w = {.buf = buf, .cap = sizeof(buf)};
		int len = kernel_stack_encode(&w, set, names[i]);

		if (len > 0)
			ky_msg_conn_send(conn, buf, len, NULL, 0);
	}
}

void kernel_order_set(struct ky_msg_conn *conn, const struct kernel_set *set)
{
	const struct kernel_event *e;

	send_set(conn, set);
	send_tasks(conn, set);
	statedump_threads(set, order_threads, conn);
	send_stacks(conn, set);
	ky_list_foreach (e, &set->events, node)
		kernel_order_event(conn, set, e);
	if (wants_kernel_stacks(set->channel))
		kernel_order_symbols(conn, set->number);
	send_cpus(conn, set);
}

/* --- CPU samples --- */

#define SAMPLES_TIMER_US 1000000u

void kernel_order_samples_cpus(struct ky_msg_conn *conn, const struct samples *s)
{
	for (uint32_t i = 0; i < s->n_cpus; i++)
		if (s->fds[i] >= 0)
			ky_cons_samples_cpu_send(conn,
				&(struct ky_cons_samples_cpu){.set = s->number, .cpu = i},
				&s->fds[i], 1);
}

void kernel_order_samples(struct ky_msg_conn *conn, const struct samples *s)
{
	_cleanup_close_ int log = memory_open_read_only(s->registry->log_fd);
	const int fds[] = {s->memory_fd, log};
	uint64_t uuid[2];
	struct ky_cons_samples_set m = {.set = s->number,
		.stream_id = s->stream_id,
		.dir = "kernel",
		.name = SAMPLES_NAME,
		.clock = s->session->clock.clock,
		.n_cpus = s->n_cpus,
		.counts_lost = s->counts_lost,
		.ns = s->ns,
		.clock_at = s->clock_at};

	registry_uuid(s->registry, uuid);
	m.uuid_hi = uuid[0];
	m.uuid_lo = uuid[1];
	if (log < 0) {
		ky_msg_conn_fail(conn, log);
		return;
	}
	ky_cons_samples_set_send(conn, &m, fds, KY_ARRAY_SIZE(fds));
	ky_cons_timers_send(conn,
		&(struct ky_cons_timers){.set = s->number,
			.switch_us = SAMPLES_TIMER_US,
			.read_us = SAMPLES_TIMER_US},
		NULL, 0);
	if (s->kernel)
		kernel_order_symbols(conn, s->number);
	kernel_order_samples_cpus(conn, s);
}

int kernel_adopt(struct session *s, int type, struct ky_reader *r, int *fds, size_t n_fds)
{
	struct ky_cons_kernel_adopt_cpu cpu;
	struct ky_cons_kernel_adopt whole;
	struct kernel_set *set;

	if (type == KY_CONS_KERNEL_ADOPT_CPU) {
		if (ky_cons_kernel_adopt_cpu_decode(r, &cpu) < 0 || n_fds != 3)
			return -EBADMSG;
		set = kernel_set_find(s, cpu.set);
		return set ? kernel_set_adopt_cpu(set, cpu.cpu, fds) : -ENOENT;
	}
	if (ky_cons_kernel_adopt_decode(r, &whole) < 0 || n_fds != 4)
		return -EBADMSG;
	set = kernel_set_find(s, whole.set);
	return set ? kernel_set_adopt(set, fds) : -ENOENT;
}
