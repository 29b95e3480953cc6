/* SPDX-License-Identifier: MIT */
#include "sessiond/peers/process.h"

#include <fcntl.h>

#include "base/hash.h"
#include "base/small-file.h"
#include "sessiond/model/contents.h"
#include "sessiond/peers/peers.h"
#include "svc/log.h"
#include "svc/unix.h"

#define FIRST_LOOK_NS (10 * KY_NS_PER_MS)
#define LOOKS_MAX     10u /* each after twice the time: ten seconds, if others use the CPUs */

/*
 * Returns a hash of the vector that the kernel passed to the running program (auxv, proc(5)). It
 * has addresses that are chosen by chance at each exec. Returns 0 if the daemon may not see it, or
 * the process exits.
 */
static uint64_t image_of(pid_t pid)
{
	char path[32], auxv[1024];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/auxv", (int)pid);
	n = ky_read_text(AT_FDCWD, path, auxv, sizeof(auxv));
	return n > 0 ? ky_hash64_add(KY_HASH64_BASIS, auxv, (size_t)n) : 0;
}

static void free_slots(struct process *p, const struct ring_set *set)
{
	int n;

	if (!ring_set_is_made(set) || set->mode != KY_SET_PER_THREAD || set->uid != p->user->uid)
		return;
	n = ring_memory_free_slots(&set->memory, &set->geometry, p->number);
	if (n < 0)
		ky_warning(
			"cannot free the rings of process %d: %s; they stay in use until the session ends",
			(int)p->pid, strerror(-n));
	else if (n)
		ky_debug("process %d left %d rings", (int)p->pid, n);
}

/* A number that another one has too: nothing is known of its slots. */
static bool is_shared(const struct process *p)
{
	const struct process *other;

	ky_list_foreach (other, &p->env->peers->processes, node)
		if (other != p && other->user == p->user && other->number == p->number)
			return true;
	return false;
}

static bool is_of(const struct process *p, const struct ring_set *set)
{
	return ring_set_is_own(set) && set->uid == p->user->uid && set->pid == p->pid &&
	       set->process == p->number;
}

/* It surely writes no ring any more. */
static void process_ended(struct process *p)
{
	bool shared = is_shared(p);
	struct ring_set *set, *tmp;
	struct session *s;
	struct channel *c;

	ky_list_foreach (s, &p->env->sessions, node) {
		ky_list_foreach (c, &s->channels, node) {
			ky_list_foreach_safe (set, tmp, &c->sets, node) {
				if (p->number && is_of(p, set))
					ring_set_end(set);
				else if (p->number && !shared)
					free_slots(p, set);
			}
		}
	}
	p->number = 0;
	ky_list_remove(&p->node);
	ky_timer_cancel(&p->look);
	ky_watch_remove(&p->end);
	if (!p->n_apps)
		process_free(p);
}

static void pidfd_readable(struct ky_watch *w, uint32_t events)
{
	struct process *p = ky_container_of(w, struct process, end);

	(void)events;
	OBSERVE(p->env, process_ended, p);
	process_ended(p);
}

static bool may_have_buffers(const struct process *p)
{
	const struct session *s;
	const struct channel *c;
	const struct ring_set *set;

	ky_list_foreach (s, &p->env->sessions, node)
		ky_list_foreach (c, &s->channels, node)
			ky_list_foreach (set, &c->sets, node)
				if (is_of(p, set) ||
					(ring_set_is_made(set) && set->uid == p->user->uid &&
						set->mode == KY_SET_PER_THREAD))
					return true;
	return false;
}

static void look_later(struct process *p)
{
	ky_timer_set(&p->env->loop, &p->look, FIRST_LOOK_NS << p->n_looks++);
}

/* A process closes its connection some moments before it exits, or runs another program. */
static void look_for_exec(struct process *p)
{
	uint64_t image = image_of(p->pid);

	if (image && p->image && image != p->image)
		process_ended(p);
	else if (p->n_apps)
		p->n_looks = 0; /* it has connected again */
	else if (p->n_looks < LOOKS_MAX)
		look_later(p);
	else if (!may_have_buffers(p))
		process_free(p);
}

static void look_again(struct ky_timer *t)
{
	look_for_exec(ky_container_of(t, struct process, look));
}

/* One that has this pid, but another number: it has executed another program since. */
static void replace(struct env *e, const struct user *u, pid_t pid)
{
	struct process *p, *tmp;

	ky_list_foreach_safe (p, tmp, &e->peers->processes, node)
		if (pid && p->user == u && p->pid == pid && p->number)
			process_ended(p);
}

/* Makes a watched process. Returns NULL with errno if it cannot be watched. */
static struct process *process_new(struct env *e, uid_t uid, int socket, pid_t pid)
{
	struct process *p = calloc(1, sizeof(*p));
	int ret;

	if (!p)
		return NULL;
	ky_list_init(&p->node);
	ky_timer_init(&p->look, look_again);
	p->env = e;
	p->user = user_get(&e->users, uid);
	p->pid = pid;
	p->image = image_of(pid);
	p->pidfd = ky_peer_pidfd(socket, pid);
	ret = p->user ? KY_MIN(p->pidfd, 0) : -ENOMEM;
	if (!ret)
		ret = ky_watch_add(&e->loop, &p->end, p->pidfd, EPOLLIN, pidfd_readable);
	if (!ret) {
		ky_list_append(&e->peers->processes, &p->node);
		return p;
	}
	process_free(p);
	errno = -ret;
	return NULL;
}

struct process *process_get(
	struct env *e, const struct user *u, pid_t pid, uint32_t number, int socket)
{
	struct process *p;
	unsigned n = 0;

	ky_list_foreach (p, &e->peers->processes, node) {
		if (p->user == u && p->pid == pid && p->number == number && number) {
			p->n_apps++;
			return p;
		}
		n += p->user == u;
	}
	replace(e, u, pid);
	p = number && n < e->peers->user_apps_max ? process_new(e, u->uid, socket, pid) : NULL;
	if (!p)
		return NULL;
	p->number = number;
	p->n_apps = 1;
	return p;
}

bool process_restore(struct env *e, const struct ring_set *set)
{
	struct process *p;

	ky_list_foreach (p, &e->peers->processes, node)
		if (is_of(p, set))
			return true;
	if (!set->pid) /* the predecessor also saw only its connection, which comes again */
		return true;
	p = process_new(e, set->uid, -1, set->pid);
	if (!p)
		return errno != ESRCH;
	p->number = set->process;
	if (!set->image || !p->image || p->image == set->image)
		return true;
	process_free(p);
	return false;
}

void process_hung_up(struct process *p)
{
	if (!p || --p->n_apps)
		return;
	p->n_looks = 0;
	if (p->number)
		look_later(p); /* most have exited by then */
	else
		process_free(p);
}

void processes_forget(struct env *e)
{
	struct process *p, *tmp;

	ky_list_foreach_safe (p, tmp, &e->peers->processes, node)
		if (!p->n_apps && !may_have_buffers(p))
			process_free(p);
}

struct process *process_free(struct process *p)
{
	if (!p)
		return NULL;
	ky_timer_cancel(&p->look);
	ky_watch_remove(&p->end);
	ky_close(p->pidfd);
	ky_list_remove(&p->node);
	user_unref(p->user);
	free(p);
	return NULL;
}
