/* SPDX-License-Identifier: MIT */
#include "consumerd/kernel.h"

#include <fcntl.h>

#include "abi/kernel.h"
#include "consumerd/round.h"
#include "consumerd/sink/trace-dir.h"
#include "consumerd/source/ftrace.h"
#include "consumerd/source/perf.h"
#include "consumerd/stream/stream-set.h"
#include "consumerd/stream/symbols.h"
#include "consumerd/traces.h"
#include "svc/check.h"
#include "svc/log.h"

static void take_fds(int *to, int *from, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		to[i] = from[i];
		from[i] = -1;
	}
}

/* Returns true if this consumer reads the rings: those that are only for snapshots wait for one. */
static bool is_read(const struct consumerd *c, uint32_t mode)
{
	return c->snapshot || mode != KY_KERNEL_SNAPSHOT;
}

/* Returns 0 if output and names are as they must be, and the set is new; else -errno. */
static int check_set(
	const struct consumerd *c, const struct ky_cons_ring_set *like, uint32_t n_cpus)
{
	if (!c->output || (*c->output && c->root_fd < 0) || !trace_dir_in_chunk(like->dir) ||
		!trace_dir_name_valid(like->name) || !n_cpus || n_cpus > KY_KERNEL_CPUS_MAX ||
		(like->file_size && like->file_size < KY_KERNEL_BLOCK))
		return -EBADMSG;
	return kernel_set_find(c, like->set) ? -EEXIST : 0;
}

/* Finds the set's trace, to which its metadata log belongs. Returns NULL if allocation fails. */
static struct trace *get_trace(struct consumerd *c, const struct kernel_set *k)
{
	int log_fd = fcntl(k->fds[1], F_DUPFD_CLOEXEC, 0);
	struct trace *t = log_fd < 0 ? NULL : traces_get(c, &k->like, &log_fd);

	ky_close(log_fd);
	return t;
}

/*
 * The names of the set of a message, as those of a ring set. Other streams of the trace have the
 * same stream_id only in other channels: instance 0.
 */
#define RING_SET_LIKE(m)                                                                           \
	((struct ky_cons_ring_set){.set = (m).set,                                                 \
		.stream_id = (m).stream_id,                                                        \
		.dir = (m).dir,                                                                    \
		.name = (m).name,                                                                  \
		.clock = (m).clock,                                                                \
		.uuid_hi = (m).uuid_hi,                                                            \
		.uuid_lo = (m).uuid_lo})

/* Makes a set with its files. */
static int take_set(struct consumerd *c, const struct ky_cons_ring_set *like, uint32_t n_cpus,
	int *fds, unsigned n_fds, struct kernel_set **ret_set)
{
	int ret = check_set(c, like, n_cpus);

	if (ret < 0)
		return ret;
	*ret_set = kernel_set_new(c, like, n_cpus);
	if (!*ret_set)
		return -ENOMEM;
	take_fds((*ret_set)->fds, fds, n_fds);
	return 0;
}

/*
 * Finds the set of an order about events. decoded: of the message, which has the set's number.
 * Returns 1, 0 if this consumer does not read the set's rings, or -EBADMSG.
 */
static int open_order(
	const struct consumerd *c, int decoded, const uint32_t *set, struct kernel_set **ret_set)
{
	struct kernel_set *k = decoded < 0 ? NULL : kernel_set_find(c, *set);

	*ret_set = k;
	return !k || k->has_samples ? -EBADMSG : k->sources != NULL;
}

/* Finds a CPU whose files the set does not have yet. Returns 0 or -EBADMSG. */
static int open_cpu(const struct kernel_set *k, uint32_t number, struct kernel_cpu **ret_cpu)
{
	if (number >= k->n_cpus || k->cpus[number].fds[0] >= 0)
		return -EBADMSG;
	*ret_cpu = &k->cpus[number];
	return 0;
}

int kernel_on_set(struct consumerd *c, struct ky_reader *r, int *fds)
{
	struct ky_cons_kernel_set m;
	struct ky_cons_ring_set like;
	struct kernel_set *k;
	int ret = -EBADMSG;

	if (ky_cons_kernel_set_decode(r, &m) < 0)
		return ret;
	like = RING_SET_LIKE(m);
	like.file_size = m.file_size;
	like.n_files = m.n_files;
	ret = take_set(c, &like, m.n_cpus, fds, N_KERNEL_FDS, &k);
	if (ret < 0)
		return ret;
	if (!is_read(c, m.overwrite))
		return 0;
	k->trace = get_trace(c, k);
	ret = k->trace ? ftrace_new(&m, c->snapshot ? -1 : k->fds[0], &k->pending) : -ENOMEM;
	if (ret < 0)
		kernel_set_free(k);
	else
		k->sources = k->pending;
	return ret;
}

/*
 * Wakes the consumer when a part of the ring is full. It stays so until the round, which makes the
 * kernel's answer another one.
 */
static void on_readable(struct ky_watch *w, uint32_t events)
{
	struct kernel_waker *waker = ky_container_of(w, struct kernel_waker, watch);

	if (events & (EPOLLHUP | EPOLLERR)) {
		/* Nothing will wake it any more: no sampled process is left. */
		ky_watch_remove(w);
	} else {
		ky_watch_modify(w, 0);
		waker->asleep = true;
	}
	waker->set->sources->ready = true;
	round_soon(waker->set->consumer);
}

/* All files of the set have come: makes its streams. */
static int begin_streams(struct consumerd *c, struct kernel_set *k)
{
	struct stream_set *set;
	int ret = stream_set_new(&k->like, k->trace, k->pending, &set);

	k->pending = NULL;
	if (ret < 0)
		return ret;
	ky_list_append(&c->sets, &set->node);
	for (uint32_t i = 0; i < k->n_cpus && !c->snapshot && !k->has_samples; i++) {
		struct kernel_cpu *cpu = &k->cpus[i];

		ky_watch_add(&c->loop, &cpu->events.watch, cpu->fds[0], EPOLLIN, on_readable);
		ky_watch_add(&c->loop, &cpu->tasks.watch, cpu->fds[2], EPOLLIN, on_readable);
	}
	if (!c->snapshot)
		round_soon(c);
	return 0;
}

int kernel_on_cpu(struct consumerd *c, struct ky_reader *r, int *fds)
{
	struct ky_cons_kernel_cpu m;
	struct kernel_set *k;
	struct kernel_cpu *cpu;
	int ret = open_order(c, ky_cons_kernel_cpu_decode(r, &m), &m.set, &k);
	bool here = ret > 0;

	if (ret >= 0)
		ret = open_cpu(k, m.cpu, &cpu);
	if (ret < 0)
		return ret;
	take_fds(cpu->fds, fds, N_CPU_FDS);
	KY_CHECK(k->n_known < k->n_cpus);
	k->n_known++;
	if (!here)
		return 0;
	ret = ftrace_add_cpu(k->sources, m.cpu, cpu->fds);
	if (ret < 0 && c->snapshot) {
		ky_error("%s_%u: cannot copy the kernel's buffer of this CPU: %s", k->like.name,
			m.cpu, strerror(-ret));
		ret = 0;
	}
	return !ret && k->n_known == k->n_cpus ? begin_streams(c, k) : ret;
}

int kernel_on_event(struct consumerd *c, struct ky_reader *r, int *fds)
{
	struct ky_cons_kernel_event m;
	struct kernel_set *k;
	bool is_new = false;
	int ret = open_order(c, ky_cons_kernel_event_decode(r, &m), &m.set, &k);

	if (ret <= 0)
		return ret;
	ret = ftrace_add_event(k->sources, &m, &is_new);
	return ret < 0 || !is_new ? ret : trace_add_format(k->trace, m.format);
}

/* Makes its streams at once: the files come when the sampled process is known. */
int kernel_on_samples_set(struct consumerd *c, struct ky_reader *r, int *fds)
{
	struct ky_cons_samples_set m;
	struct ky_cons_ring_set like;
	struct kernel_set *k;
	int ret;

	if (ky_cons_samples_set_decode(r, &m) < 0 || c->snapshot)
		return -EBADMSG;
	like = RING_SET_LIKE(m);
	ret = take_set(c, &like, m.n_cpus, fds, N_SAMPLES_FDS, &k);
	if (ret < 0)
		return ret;
	k->has_samples = true;
	k->trace = get_trace(c, k);
	ret = k->trace ? perf_new(&m, k->fds[0], &k->pending) : -ENOMEM;
	k->sources = k->pending;
	if (!ret)
		ret = begin_streams(c, k);
	if (ret < 0)
		kernel_set_free(k);
	return ret;
}

int kernel_on_samples_cpu(struct consumerd *c, struct ky_reader *r, int *fds)
{
	struct ky_cons_samples_cpu m;
	struct kernel_set *k;
	struct kernel_cpu *cpu;
	int ret;

	if (ky_cons_samples_cpu_decode(r, &m) < 0)
		return -EBADMSG;
	k = kernel_set_find(c, m.set);
	if (!k || !k->has_samples || open_cpu(k, m.cpu, &cpu) < 0)
		return -EBADMSG;
	take_fds(cpu->fds, fds, 1);
	ret = perf_add_cpu(k->sources, m.cpu, cpu->fds[0]);
	if (!ret)
		ret = ky_watch_add(&c->loop, &cpu->events.watch, cpu->fds[0], EPOLLIN, on_readable);
	return ret;
}

int kernel_on_tasks(struct consumerd *c, struct ky_reader *r, int *fds)
{
	struct ky_cons_kernel_tasks m;
	struct kernel_set *k;
	int ret = open_order(c, ky_cons_kernel_tasks_decode(r, &m), &m.set, &k);

	return ret > 0 ? ftrace_describe_tasks(k->sources, &m) : ret;
}

int kernel_on_threads(struct consumerd *c, struct ky_reader *r, int *fds)
{
	struct ky_cons_kernel_threads m;
	struct kernel_set *k;
	int ret = open_order(c, ky_cons_kernel_threads_decode(r, &m), &m.set, &k);

	return ret > 0 ? ftrace_add_threads(k->sources, &m) : ret;
}

int kernel_on_symbols(struct consumerd *c, struct ky_reader *r, int *fds)
{
	struct ky_cons_kernel_symbols m;
	struct kernel_set *k;

	if (ky_cons_kernel_symbols_decode(r, &m) < 0)
		return -EBADMSG;
	k = kernel_set_find(c, m.set);
	if (!k)
		return -EBADMSG;
	if (!k->sources) /* the rings are for snapshots */
		return 0;
	trace_set_symbols(k->trace, fds[0]);
	if (!k->trace->symbols)
		return 0;
	if (k->has_samples)
		perf_note_stacks(k->sources, &k->trace->symbols->seen);
	else
		ftrace_note_stacks(k->sources, &k->trace->symbols->seen);
	return 0;
}

int kernel_on_dump(struct consumerd *c, struct ky_reader *r, int *fds)
{
	struct ky_cons_kernel_dump m;
	struct kernel_set *k;
	int ret = open_order(c, ky_cons_kernel_dump_decode(r, &m), &m.set, &k);

	if (ret <= 0)
		return ret;
	ret = ftrace_dump(k->sources, &m);
	if (ret == -EAGAIN) {
		round_flush(c);
		ret = ftrace_dump(k->sources, &m);
	}
	if (ret == -EAGAIN) {
		ky_warning("%s: cannot write a part of the state dump to the disk: it is left out",
			k->like.name);
		ret = 0;
	}
	return ret;
}
