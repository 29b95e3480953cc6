/* SPDX-License-Identifier: MIT */
#include "sessiond/peers/kept.h"

#include <fcntl.h>
#include <sys/syscall.h>

#include "sessiond/model/session.h"
#include "sessiond/model/trigger.h"
#include "svc/become.h"
#include "svc/tree.h"

int kept_add(struct kept *k, const char *output)
{
	char **grown = realloc(k->list, (k->n + 1) * sizeof(*grown));
	char *copy = strdup(output);

	if (grown)
		k->list = grown;
	if (!grown || !copy) {
		free(copy);
		return -ENOMEM;
	}
	k->list[k->n++] = copy;
	return 0;
}

uint64_t kept_forget(struct kept *k, uint64_t n_before, uint64_t n)
{
	n = n_before + n - KY_MIN(n_before + n, k->n_removed);
	n = KY_MIN(n, (uint64_t)k->n);
	if (!n)
		return 0;
	for (uint64_t i = 0; i < n; i++)
		free(k->list[i]);
	k->n -= (unsigned)n;
	memmove(k->list, k->list + n, k->n * sizeof(*k->list));
	k->n_removed += n;
	return n;
}

void kept_deinit(struct kept *k)
{
	for (unsigned i = 0; i < k->n; i++)
		free(k->list[i]);
	free(k->list);
	*k = (struct kept){0};
}

/* Returns whether the i oldest of k are removed, and more has to go. */
static bool is_beyond(const struct trigger_spec *spec, const struct kept *k, unsigned i)
{
	uint64_t bytes = 0;

	if (spec->keep_n && k->n - i > spec->keep_n)
		return true;
	for (unsigned j = i; spec->keep_bytes && j < k->n; j++)
		bytes += ky_tree_bytes(AT_FDCWD, k->list[j]);
	return bytes > spec->keep_bytes;
}

/* In the child: never removes the newest one. */
static void __attribute__((noreturn))
run_child(const struct kept *k, const struct trigger_spec *spec, const struct session *s)
{
	unsigned i = 0;

	ky_signals_reset();
	setsid();
	syscall(SYS_close_range, STDERR_FILENO + 1, ~0u, 0);
	if (ky_become(s->uid, s->gid) < 0)
		_exit(KEPT_FAILED);
	for (; i + 1 < k->n && i + 1 < KEPT_FAILED && is_beyond(spec, k, i); i++)
		if (ky_tree_remove(AT_FDCWD, k->list[i]) < 0)
			_exit(i ? (int)i : KEPT_FAILED);
	_exit((int)i);
}

pid_t kept_limit(const struct kept *k, const struct trigger_spec *spec, const struct session *s)
{
	pid_t pid = fork();

	if (!pid)
		run_child(k, spec, s);
	return pid < 0 ? -errno : pid;
}
