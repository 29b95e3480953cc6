/* SPDX-License-Identifier: MIT */
/*
 * Follows which process each thread belongs to, and its name. A tracefs instance of its own records
 * new and renamed threads; the session daemon sends those that existed before. The instance has the
 * daemon's markers, too.
 */
#ifndef CONSUMERD_SOURCE_THREAD_TABLE_H
#define CONSUMERD_SOURCE_THREAD_TABLE_H

#include "abi/kernel.h"
#include "kernel/marker.h"
#include "kernel/program.h"
#include "kernel/threads.h"
#include "proto/wire.h"

struct thread_table {
	struct ky_kthreads threads;
	struct ky_ktasks tasks; /* places in the records; newtask 0: not known */
	uint8_t *page;		/* owned: a sub-buffer */
	uint32_t subbuf_size;
	int *fds; /* owned array, borrowed descriptors: trace_pipe_raw of each CPU; -1: none */
	uint32_t n_cpus;
	uint32_t clock;		  /* enum ky_clock: of the records */
	struct ky_kmarker marker; /* the last one; the owner clears it */
};

/* Returns 0 or -ENOMEM. */
int thread_table_init(struct thread_table *t, uint32_t n_cpus, uint32_t clock);
void thread_table_deinit(struct thread_table *t);
/* Sets what the instance's records are like. Returns 0, -EBADMSG or -ENOMEM. */
int thread_table_describe(struct thread_table *t, uint32_t subbuf_size, struct ky_bytes tasks);
/* Adds threads: struct ky_kernel_thread each. Returns 0 or -EBADMSG. */
int thread_table_add(struct thread_table *t, struct ky_bytes threads);
/* Reads what the instance has recorded on a CPU: often enough, so that its buffer never fills. */
void thread_table_read(struct thread_table *t, uint32_t cpu);

#endif
