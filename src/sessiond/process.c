/* SPDX-License-Identifier: MIT */
#include "sessiond/process.h"

#include <fcntl.h>

#include "sessiond/daemon.h"
#include "svc/log.h"

/*
 * Where the stack of the program that the process runs begins, proc(5): drawn by lot at each exec. 0: unknown, or not
 * for us to see.
 */
static uint64_t image_of(pid_t pid)
{
	unsigned long long start = 0;
	char path[32], text[1024];
	const char *p;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	ky_close(fd);
	text[n > 0 ? n : 0] = '\0';
	p = strrchr(text, ')');
	for (int field = 2; p && field < 28; field++)
		p = strchr(p + 1, ' ');
	if (p)
		sscanf(p, "%llu", &start);
	return start > 1 ? start : 0; /* 1 is told to who may not see it */
}

static void free_slots(struct process *p, const struct ring_set *set)
{
	int n;

	if (!set->made || set->mode != KY_SET_PER_THREAD || set->uid != p->user->uid)
		return;
	n = ring_memory_free_slots(&set->memory, &set->geometry, p->number);
	if (n < 0)
		ky_warning("rings of process %d stay taken: %s", (int)p->pid, strerror(-n));
	else if (n)
		ky_debug("process %d left %d rings", (int)p->pid, n);
}

/* A number that another one has too: nothing is known of its slots. */
static bool is_shared(const struct process *p)
{
	const struct process *other;

	ky_list_foreach (other, &p->daemon->processes, node)
		if (other != p && other->user == p->user && other->number == p->number)
			return true;
	return false;
}

/* It surely writes no ring any more. */
static void process_ended(struct process *p)
{
	const struct session *s;
	const struct channel *c;
	const struct ring_set *set;

	if (p->number && !is_shared(p))
		ky_list_foreach (s, &p->daemon->sessions, node)
			ky_list_foreach (c, &s->channels, node)
				ky_list_foreach (set, &c->sets, node)
					free_slots(p, set);
	p->number = 0;
	ky_watch_remove(&p->end);
	if (!p->n_apps)
		process_free(p);
}

static void pidfd_readable(struct ky_watch *w, uint32_t events)
{
	(void)events;
	process_ended(ky_container_of(w, struct process, end));
}

/* One that has this pid, but another number: it has executed another program since. */
static void replace(struct daemon *d, const struct user *u, pid_t pid)
{
	struct process *p, *tmp;

	ky_list_foreach_safe (p, tmp, &d->processes, node)
		if (pid && p->user == u && p->pid == pid && p->number)
			process_ended(p);
}

struct process *process_get(
	struct daemon *d, struct user *u, int socket, pid_t pid, uint32_t number)
{
	struct process *p;
	unsigned n = 0;

	ky_list_foreach (p, &d->processes, node) {
		if (p->user == u && p->pid == pid && p->number == number && number) {
			p->n_apps++;
			return p;
		}
		n += p->user == u;
	}
	replace(d, u, pid);
	p = number && n < d->user_apps_max ? calloc(1, sizeof(*p)) : NULL;
	if (!p)
		return NULL;
	ky_list_init(&p->node);
	p->daemon = d;
	p->user = user_get(&d->users, u->uid);
	p->pid = pid;
	p->number = number;
	p->n_apps = 1;
	p->image = image_of(pid);
	p->pidfd = ky_peer_pidfd(socket, pid);
	if (!p->user || p->pidfd < 0 ||
		ky_watch_add(&d->loop, &p->end, p->pidfd, EPOLLIN, pidfd_readable) < 0)
		return process_free(p);
	ky_list_append(&d->processes, &p->node);
	return p;
}

void process_hung_up(struct process *p)
{
	uint64_t image;

	if (!p || --p->n_apps)
		return;
	if (!p->number) {
		process_free(p);
		return;
	}
	image = image_of(p->pid);
	if (image && p->image && image != p->image)
		process_ended(p);
}

struct process *process_free(struct process *p)
{
	if (!p)
		return NULL;
	ky_watch_remove(&p->end);
	ky_close(p->pidfd);
	ky_list_remove(&p->node);
	user_unref(p->user);
	free(p);
	return NULL;
}
