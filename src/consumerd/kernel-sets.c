/* SPDX-License-Identifier: MIT */
#include "consumerd/kernel-sets.h"

#include "consumerd/source/source.h"
#include "consumerd/stream/stream-set.h"

struct kernel_set *kernel_set_find(const struct consumerd *c, uint32_t id)
{
	struct kernel_set *k;

	ky_list_foreach (k, &c->kernel_sets, node)
		if (k->like.set == id)
			return k;
	return NULL;
}

static void close_fds(int *fds, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		fds[i] = ky_close(fds[i]);
}

struct kernel_set *kernel_set_free(struct kernel_set *k)
{
	for (uint32_t i = 0; k->cpus && i < k->n_cpus; i++) {
		ky_watch_remove(&k->cpus[i].events.watch);
		ky_watch_remove(&k->cpus[i].tasks.watch);
		close_fds(k->cpus[i].fds, N_CPU_FDS);
	}
	if (k->pending)
		k->pending->ops->free(k->pending);
	close_fds(k->fds, N_KERNEL_FDS);
	ky_list_remove(&k->node);
	free((void *)k->like.dir);
	free((void *)k->like.name);
	free(k->cpus);
	free(k);
	return NULL;
}

struct kernel_set *kernel_set_new(
	struct consumerd *c, const struct ky_cons_ring_set *like, uint32_t n_cpus)
{
	struct kernel_set *k = calloc(1, sizeof(*k));

	if (!k)
		return NULL;
	ky_list_append(&c->kernel_sets, &k->node);
	k->consumer = c;
	k->n_cpus = n_cpus;
	for (unsigned i = 0; i < N_KERNEL_FDS; i++)
		k->fds[i] = -1;
	k->cpus = calloc(n_cpus, sizeof(*k->cpus));
	for (uint32_t i = 0; k->cpus && i < n_cpus; i++) {
		k->cpus[i].events.set = k->cpus[i].tasks.set = k;
		for (unsigned n = 0; n < N_CPU_FDS; n++)
			k->cpus[i].fds[n] = -1;
	}
	k->like = *like;
	k->like.dir = strdup(like->dir);
	k->like.name = strdup(like->name);
	return k->cpus && k->like.dir && k->like.name ? k : kernel_set_free(k);
}

static void watch_again(struct kernel_waker *w)
{
	if (w->asleep) {
		w->asleep = false;
		ky_watch_modify(&w->watch, EPOLLIN);
	}
}

/* Returns true if the last look left records in the kernel, as they found no room. */
static bool has_more(const struct consumerd *c, const struct kernel_set *k)
{
	const struct stream_set *set;

	ky_list_foreach (set, &c->sets, node)
		if (set->sources == k->sources)
			return stream_set_has_more(set);
	return false;
}

void kernel_sets_watch(struct consumerd *c)
{
	struct kernel_set *k;

	ky_list_foreach (k, &c->kernel_sets, node) {
		/* Records that stay there would wake it again at once: it has the set's timer. */
		if (has_more(c, k))
			continue;
		for (uint32_t i = 0; i < k->n_cpus; i++) {
			watch_again(&k->cpus[i].events);
			watch_again(&k->cpus[i].tasks);
		}
	}
}

void kernel_sets_release(struct consumerd *c, uint32_t set)
{
	struct kernel_set *k = kernel_set_find(c, set);

	if (k)
		kernel_set_free(k);
}

static int send_set(struct consumerd *c, const struct kernel_set *k)
{
	uint8_t buf[64];
	int len = ky_cons_kernel_adopt_encode(&(struct ky_writer){.buf = buf, .cap = sizeof(buf)},
		&(struct ky_cons_kernel_adopt){.set = k->like.set});

	return ky_msg_conn_send(&c->conn, buf, len, k->fds, N_KERNEL_FDS);
}

static int send_cpu(struct consumerd *c, const struct kernel_set *k, uint32_t cpu)
{
	uint8_t buf[64];
	int len = ky_cons_kernel_adopt_cpu_encode(
		&(struct ky_writer){.buf = buf, .cap = sizeof(buf)},
		&(struct ky_cons_kernel_adopt_cpu){.set = k->like.set, .cpu = cpu});

	return ky_msg_conn_send(&c->conn, buf, len, k->cpus[cpu].fds, N_CPU_FDS);
}

int kernel_sets_send_all(struct consumerd *c, uint32_t *n_sets)
{
	const struct kernel_set *k;

	ky_list_foreach (k, &c->kernel_sets, node) {
		if (k->has_samples) /* of a command, which ends with its daemon */
			continue;
		if (send_set(c, k) == -EPERM)
			return -EPERM;
		for (uint32_t i = 0; i < k->n_cpus; i++)
			if (k->cpus[i].fds[0] >= 0 && send_cpu(c, k, i) == -EPERM)
				return -EPERM;
		++*n_sets;
	}
	return 0;
}

void kernel_sets_init(struct consumerd *c)
{
	ky_list_init(&c->kernel_sets);
}

void kernel_sets_deinit(struct consumerd *c)
{
	struct kernel_set *k, *next;

	ky_list_foreach_safe (k, next, &c->kernel_sets, node)
		kernel_set_free(k);
}
