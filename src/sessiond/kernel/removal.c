/* SPDX-License-Identifier: MIT */
#include "sessiond/kernel/removal.h"

#include <poll.h>

#include "svc/log.h"

#define PIECE_NS    (50 * KY_NS_PER_MS)
#define RETRY_NS    (20 * KY_NS_PER_MS)
#define RETRIES_MAX 100u
#define USED_NS	    (1000 * KY_NS_PER_MS) /* between tries if other programs use all that is left */

/* An instance with its probes, and the one that serves it. */
struct removal {
	struct ky_list node; /* in kernel->removals */
	struct instance main, tasks;
	struct probes_removal probes;
	unsigned n_tries;
	bool is_used; /* only probes are left that another program uses */
};

static void removal_free(struct removal *r)
{
	ky_list_remove(&r->node);
	instance_close(&r->main);
	instance_close(&r->tasks);
	ky_buf_deinit(&r->probes.lines);
	ky_buf_deinit(&r->probes.used);
	free(r);
}

/* Returns -EBUSY if a process has files of it open, else 0. */
static int remove_instance(const struct kernel *k, struct instance *i)
{
	if (*i->name && instance_remove(i, &k->fs) == -EBUSY)
		return -EBUSY;
	*i->name = '\0';
	return 0;
}

/* Returns 0 if nothing is left, -EAGAIN if the time was over before, or -EBUSY. */
static int remove_some(const struct kernel *k, struct removal *r, uint64_t until_ns)
{
	int ret;

	if (!probes_remove_some(&k->fs, r->main.dir, &r->probes, until_ns))
		return -EAGAIN;
	ret = remove_instance(k, &r->main);
	return remove_instance(k, &r->tasks) ? -EBUSY : ret;
}

static void try_removal(const struct kernel *k, struct removal *r, uint64_t until_ns)
{
	int ret = remove_some(k, r, until_ns);

	if (ret == -EAGAIN || (ret == -EBUSY && ++r->n_tries < RETRIES_MAX))
		return;
	if (ret == -EBUSY)
		ky_error(
			"cannot remove the tracefs instance %s, because a process has its files open: the next session daemon removes it",
			*r->main.name ? r->main.name : r->tasks.name);
	else if (probes_list_used(&r->probes)) {
		if (!r->is_used)
			ky_error(
				"cannot remove probe %.*s while another program uses it: it is removed when none does",
				(int)strcspn(r->probes.lines.data, "\n") - 2,
				(char *)r->probes.lines.data + 2);
		r->is_used = true;
		return;
	}
	removal_free(r);
}

static void try_removals(struct kernel *k, uint64_t until_ns)
{
	struct removal *r, *tmp;

	ky_list_foreach_safe (r, tmp, &k->removals, node)
		try_removal(k, r, until_ns);
}

/* Returns whether other programs use all that is left. */
static bool is_all_used(const struct kernel *k)
{
	const struct removal *r;

	ky_list_foreach (r, &k->removals, node)
		if (!r->is_used)
			return false;
	return true;
}

static void run_removals(struct ky_timer *t)
{
	struct kernel *k = ky_container_of(t, struct kernel, removal_timer);

	try_removals(k, ky_clock_ns(CLOCK_MONOTONIC) + PIECE_NS);
	if (!ky_list_empty(&k->removals))
		ky_timer_set(&k->env->loop, t, is_all_used(k) ? USED_NS : RETRY_NS);
}

void removals_run(struct kernel *k)
{
	run_removals(&k->removal_timer);
}

void removals_init(struct kernel *k)
{
	ky_list_init(&k->removals);
	ky_timer_init(&k->removal_timer, run_removals);
}

void removal_add(struct kernel *k, struct instance *main, struct instance *tasks)
{
	struct removal *r = calloc(1, sizeof(*r));

	if (!r) { /* the next session daemon removes them */
		instance_silence(main);
		instance_close(main);
		instance_close(tasks);
		return;
	}
	r->main = *main;
	r->tasks = *tasks;
	ky_list_append(&k->removals, &r->node);
	if (main->dir >= 0)
		instance_record(main, false);
	if (*main->name)
		probes_list_group(&k->fs, main->name, &r->probes);
}

void removal_add_orphans(struct kernel *k, int instances)
{
	struct removal *r = calloc(1, sizeof(*r));

	if (!r) /* the next session daemon removes them */
		return;
	instance_init(&r->main);
	instance_init(&r->tasks);
	ky_list_append(&k->removals, &r->node);
	probes_list_orphans(&k->fs, instances, &r->probes);
}

void removals_deinit(struct kernel *k)
{
	struct removal *r, *tmp;

	ky_timer_cancel(&k->removal_timer);
	/* Consumers that have just ended close their files in a moment. */
	while (try_removals(k, UINT64_MAX), !is_all_used(k))
		poll(NULL, 0, (int)(RETRY_NS / KY_NS_PER_MS));
	/* The next session daemon removes them. */
	ky_list_foreach_safe (r, tmp, &k->removals, node)
		removal_free(r);
}
