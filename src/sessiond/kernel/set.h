/* SPDX-License-Identifier: MIT */
/* The data of the daemon's parts for kernel events. */
#ifndef SESSIOND_KERNEL_SET_H
#define SESSIOND_KERNEL_SET_H

#include "sessiond/kernel/instance.h"
#include "sessiond/kernel/probes.h"
#include "sessiond/model/contents.h"
#include "svc/loop.h"

#define KERNEL_WHY_MAX 512

struct kernel {
	struct env *env;
	struct tracefs fs;
	uint32_t daemon; /* D: in the names of its instances, random */
	struct observer observer;
	struct ky_list removals; /* struct removal (removal.c) */
	struct ky_timer removal_timer;
	struct ky_timer rest; /* disables the events of stopped sessions */
};

/* Of a kernel channel; it is channel->kernel. */
struct kernel_set {
	struct channel *channel;
	uint32_t number; /* in messages, from the same sequence as those of ring sets */
	uint32_t stream_id;
	struct registry *registry;
	struct instance main, tasks;   /* tasks: follows threads */
	struct ky_ktasks *task_fields; /* owned */
	uint64_t tracefile_size;       /* as the channel had them when the set was made */
	uint32_t tracefile_count;
	int memory_fd;			/* memory that outlives consumers (abi/kernel.h) */
	uint32_t dump_cpu;		/* the first online one */
	struct ky_list events;		/* struct kernel_event */
	uint32_t next_short, next_long; /* identifiers for the next events */
	bool fixed_used[31];
	uint32_t n_dumps;
	uint64_t dump_clock; /* of the last one */
	bool recording;
	struct tracker tracked; /* as the kernel has it */
	char *probes;		/* lines that define those of the group (probes.h); NULL: none */
	struct probes_files probe_files;
	bool may_map; /* a snapshot copies the mapped buffers while the kernel writes them */
	/* while a predecessor's session is taken over: numbers of inodes */
	uint64_t memory_file;
};

#endif
