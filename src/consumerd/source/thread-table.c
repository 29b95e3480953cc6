/* SPDX-License-Identifier: MIT */
#include "consumerd/source/thread-table.h"

#include <sys/mman.h>

#include "base/clock.h"
#include "kernel/page.h"

#define CLONE_THREAD 0x10000u

/* Reads all that the instance has recorded. */
static void update(struct ky_kthreads *threads)
{
	struct thread_table *t = ky_container_of(threads, struct thread_table, threads);

	threads->until = ky_clock_read(t->clock);
	for (uint32_t i = 0; i < t->n_cpus; i++)
		thread_table_read(t, i);
}

int thread_table_init(struct thread_table *t, uint32_t n_cpus, uint32_t clock)
{
	void *v = mmap(NULL, KY_KTHREADS * sizeof(*t->threads.v), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	*t = (struct thread_table){.threads = {.v = v == MAP_FAILED ? NULL : v, .update = update},
		.n_cpus = n_cpus,
		.clock = clock};
	t->fds = malloc(n_cpus * sizeof(*t->fds));
	if (!t->threads.v || !t->fds)
		return -ENOMEM;
	for (uint32_t i = 0; i < n_cpus; i++)
		t->fds[i] = -1;
	return 0;
}

void thread_table_deinit(struct thread_table *t)
{
	if (t->threads.v)
		munmap(t->threads.v, KY_KTHREADS * sizeof(*t->threads.v));
	free(t->fds);
	free(t->page);
}

int thread_table_describe(struct thread_table *t, uint32_t subbuf_size, struct ky_bytes tasks)
{
	uint8_t *page;

	if (tasks.len != sizeof(t->tasks) || subbuf_size < KY_KERNEL_SUBBUF_MIN ||
		subbuf_size > KY_KERNEL_SUBBUF_MAX)
		return -EBADMSG;
	page = malloc(subbuf_size + KY_KERNEL_SLACK);
	if (!page)
		return -ENOMEM;
	free(t->page);
	t->page = page;
	t->subbuf_size = subbuf_size;
	memcpy(&t->tasks, tasks.data, sizeof(t->tasks));
	return 0;
}

static struct ky_kthread *entry_of(struct thread_table *t, int32_t tid)
{
	return tid > 0 && (uint32_t)tid < KY_KTHREADS ? &t->threads.v[tid] : NULL;
}

int thread_table_add(struct thread_table *t, struct ky_bytes threads)
{
	const struct ky_kernel_thread *from = threads.data;

	if (threads.len % sizeof(*from))
		return -EBADMSG;
	for (uint32_t i = 0; i < threads.len / sizeof(*from); i++) {
		struct ky_kernel_thread thread;
		struct ky_kthread *to;

		memcpy(&thread, &from[i], sizeof(thread));
		to = entry_of(t, thread.tid);
		if (!to || thread.pid <= 0)
			return -EBADMSG;
		to->pid = thread.pid;
		memcpy(to->names[0].name, thread.name, sizeof(to->names[0].name));
	}
	return 0;
}

/* The records of a thread that has changed the CPU are not read in the order of time. */
static void add_name(struct ky_kthread *to, const uint8_t *name, uint64_t ts)
{
	size_t i = 0;

	while (i < KY_KTHREAD_NAMES && ts < to->names[i].since)
		i++;
	if (i == KY_KTHREAD_NAMES)
		return;
	memmove(&to->names[i + 1], &to->names[i],
		(KY_KTHREAD_NAMES - 1 - i) * sizeof(to->names[0]));
	to->names[i].since = ts;
	memcpy(to->names[i].name, name, sizeof(to->names[i].name));
	to->names[i].name[sizeof(to->names[i].name) - 1] = '\0';
}

/*
 * If the process of the thread that made a new one is not known yet, because another CPU's records
 * are still to be read, the new one refers to that thread.
 */
static void add_new(struct thread_table *t, uint64_t ts, const uint8_t *data)
{
	const struct ky_ktasks *at = &t->tasks;
	int32_t parent = (int32_t)ky_load32(data + 4);
	int32_t tid = (int32_t)ky_load32(data + at->newtask_pid);
	struct ky_kthread *to = entry_of(t, tid), *from = entry_of(t, parent);

	if (!to)
		return;
	add_name(to, data + at->newtask_comm, ts);
	to->pid = tid;
	if (ky_load64(data + at->newtask_flags) & CLONE_THREAD && from)
		to->pid = from->pid ? from->pid : -parent;
}

static void read_record(struct thread_table *t, uint64_t ts, const uint8_t *data, uint32_t len)
{
	const struct ky_ktasks *at = &t->tasks;
	uint16_t type = (uint16_t)(data[0] | data[1] << 8);
	struct ky_kthread *to;

	if (type == at->newtask && len >= at->newtask_pid + 4u && len >= at->newtask_comm + 16u &&
		len >= at->newtask_flags + 8u) {
		add_new(t, ts, data);
	} else if (type == at->rename && len >= at->rename_pid + 4u &&
		   len >= at->rename_comm + 16u) {
		to = entry_of(t, (int32_t)ky_load32(data + at->rename_pid));
		if (to)
			add_name(to, data + at->rename_comm, ts);
	} else if (ky_kmarker_read(&t->marker, data, len)) {
		t->marker.at = ts;
	}
}

static void walk_page(struct thread_table *t)
{
	const uint8_t *data;
	struct ky_kwalk w;
	uint32_t len;

	if (!ky_kwalk_open(&w, t->page, t->subbuf_size))
		return;
	while (ky_kwalk_next(&w, &data, &len))
		if (len >= 8)
			read_record(t, w.ts, data, len);
}

void thread_table_read(struct thread_table *t, uint32_t cpu)
{
	while (t->page && t->fds[cpu] >= 0 && read(t->fds[cpu], t->page, t->subbuf_size) > 0)
		walk_page(t);
}
