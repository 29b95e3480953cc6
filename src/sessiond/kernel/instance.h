/* SPDX-License-Identifier: MIT */
/*
 * A tracefs instance: the kernel's buffers of one channel, one for each CPU.
 *
 * Its directory is locked as long as any process holds the descriptor `dir`, so that no other
 * daemon takes it for a leftover (sweep.h). When the last descriptor of free_buffer is closed, the
 * kernel stops recording into it and frees its memory.
 */
#ifndef SESSIOND_KERNEL_INSTANCE_H
#define SESSIOND_KERNEL_INSTANCE_H

#include "abi/ring.h"
#include "sessiond/kernel/tracefs.h"

#define INSTANCES      "instances/"
#define INSTANCE_MAX   64
#define INSTANCE_TASKS "-tasks" /* behind the name of the instance that it serves */

struct instance_cpu {
	int raw, stats; /* trace_pipe_raw (not blocking), stats; -1: there is no such CPU */
};

struct instance {
	char name[INSTANCE_MAX]; /* "": it does not exist */
	int dir, free_buffer;	 /* -1: none */
	uint32_t n_cpus;
	struct instance_cpu *cpus; /* owned; n_cpus */
	uint32_t subbuf_size;	   /* bytes, with the head */
	uint64_t buffer_size;	   /* bytes for each CPU */
};

struct instance_spec {
	const char *name;
	enum ky_clock clock;
	uint32_t n_cpus, subbuf_size;
	uint64_t buffer_size;
	bool overwrite;
	bool follows; /* another one: neither locked nor freed on its own */
};

/* Sets it to one that does not exist. */
void instance_init(struct instance *i);
/*
 * Makes an instance that does not record yet, and checks that it stamps with the session's clock.
 * Returns 0, or -errno with one line in why; nothing is left then.
 */
int instance_make(struct instance *i, const struct tracefs *t, const struct instance_spec *spec,
	char why[TRACEFS_WHY_MAX]);
int instance_record(const struct instance *i, bool on);
/* Writes a marker with a reading of the clock (kernel/marker.h). Returns 0 or -errno. */
int instance_mark(const struct instance *i, enum ky_clock clock);
/*
 * Returns whether the instance still stamps with the clock. If another program has chosen another
 * one, writes its name, and chooses the right one again, which clears the buffers.
 */
bool instance_keep_clock(const struct instance *i, enum ky_clock clock, char *other, size_t size);
bool instance_is_recording(const struct instance *i);
/*
 * Opens an instance whose directory and free_buffer are open again, and the one that serves it, for
 * the files of CPUs that a predecessor's consumer hands over. Returns 0 or -errno.
 */
int instances_reopen(
	struct instance *main, struct instance *tasks, const struct tracefs *t, uint32_t n_cpus);
/*
 * Returns whether the kernel lets a reader map its buffers (Linux 6.10): then they can be copied
 * while it records.
 */
bool instance_can_map(const struct instance *i);
/* Forgets it, but leaves it to those who have its descriptors. */
void instance_close(struct instance *i);
/* Ends recording, and disables the events. Does nothing to one that is closed. */
void instance_silence(const struct instance *i);
/*
 * Ends recording, and removes it from the kernel, with its events and their filters. Returns 0 or
 * -errno: -EBUSY if another process has a file of it open. Then its directory stays open, and
 * locked if it was, and its own files are closed: call it again later.
 */
int instance_remove(struct instance *i, const struct tracefs *t);

#endif
