/* SPDX-License-Identifier: MIT */
/*
 * The process and the name of each thread, by its number. Memory is used only for numbers that
 * occur. Entries stay when a thread exits: records of it may still be in a ring.
 */
#ifndef KERNEL_THREADS_H
#define KERNEL_THREADS_H

#include "base/util.h"

#define KY_KTHREADS (1u << 22) /* the kernel's numbers are less (PID_MAX_LIMIT) */

#define KY_KTHREAD_NAMES 3

struct ky_kthread {
	int32_t pid; /* 0: not known; negative: that of the thread with this number */
	/* The newest first: an event that is read later than a new name may be older than it. */
	struct {
		uint64_t since;
		char name[16];
	} names[KY_KTHREAD_NAMES];
};

struct ky_kthreads {
	struct ky_kthread *v;
	/* learns of new threads and names, and sets `until`; may be NULL */
	void (*update)(struct ky_kthreads *t);
	uint64_t until; /* what was recorded before this clock is known */
};

static inline const struct ky_kthread *ky_kthread_known(const struct ky_kthreads *t, int32_t tid)
{
	return (uint32_t)tid < KY_KTHREADS && t->v[tid].pid ? &t->v[tid] : NULL;
}

/* Returns the entry of a thread of an event with this clock, or NULL if it is not known. */
static inline const struct ky_kthread *ky_kthread_find(
	struct ky_kthreads *t, int32_t tid, uint64_t ts)
{
	if (ky_unlikely(ts >= t->until) && t->update)
		t->update(t);
	return ky_kthread_known(t, tid);
}

/* Returns the thread's process; the thread itself if that is not known. */
static inline int32_t ky_kthread_process(struct ky_kthreads *t, int32_t tid, uint64_t ts)
{
	const struct ky_kthread *known = ky_kthread_find(t, tid, ts);
	int32_t pid;

	if (!known)
		return tid;
	pid = known->pid;
	for (int i = 0; pid < 0 && i < 64; i++) {
		known = ky_kthread_known(t, -pid);
		pid = known ? known->pid : -pid;
	}
	return pid;
}

/* Returns the name that the thread had at a time, or the oldest one that is known. */
static inline const char *ky_kthread_name(const struct ky_kthread *t, uint64_t ts)
{
	size_t i = 0;

	while (ts < t->names[i].since && i + 1 < KY_KTHREAD_NAMES && *t->names[i + 1].name)
		i++;
	return t->names[i].name;
}

#endif
