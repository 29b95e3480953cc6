/* SPDX-License-Identifier: MIT */
/*
 * The one structure that the modules share which open traces (reader/reader.h), and their reports
 * of failures.
 */
#ifndef READER_STATE_H
#define READER_STATE_H

#include <stdarg.h>

#include "base/htab.h"
#include "reader/stream.h"

struct ky_trace_reader_options {
	/* A line about what is damaged or missing, without newline. May be NULL. */
	void (*warn)(void *arg, const char *text);
	void *arg;
	bool is_growing; /* the traces are being recorded: only whole packets are read */
	/* Returns KY_SHOW_ADDRESS or _RETURN if integers of that name are shown so. Or NULL. */
	enum ky_show (*show)(const void *show_arg, const char *name, unsigned base);
	const void *show_arg;
	bool names; /* the names of values that the trace's index has are shown too */
	/* Called with the bytes that were read from stream files, by any thread. May be NULL. */
	void (*read)(void *read_arg, size_t n);
	void *read_arg;
};

struct ky_trace_reader {
	struct ky_trace_reader_options options;
	struct ky_trace **traces;	 /* owned */
	struct ky_file *files;		 /* owned, until they belong to streams */
	struct ky_stream **streams;	 /* owned, by rank */
	struct ky_event_class **classes; /* owned; by index */
	size_t n_traces, n_files, n_streams, n_classes;
	/* owned: what the metadata reports about missing events, each text once */
	char **gaps;
	size_t n_gaps;
	size_t n_unreadable; /* files and directories that could not be read when it was opened */
	char **paths;	     /* owned: of the directories that were opened */
	size_t n_paths;
	struct ky_file *
		*known; /* owned, while directories are searched again: all files, by inode */
	size_t n_known;
	struct ky_htab searched; /* owned, while directories are searched: see reader/search.c */
	uint64_t generation;	 /* number of refreshes that found something new */
	bool has_changed;	 /* during a refresh */
	struct ky_files pool;
	pthread_mutex_t lock; /* protects the making of the index */
	char *why;	      /* while it is opened */
	size_t why_size;
};

/* Formats a line and passes it to o->warn. */
void ky_warn_to(const struct ky_trace_reader_options *o, const char *fmt, va_list ap);
/* Formats a line and passes it to the reader's `warn`. */
void ky_reader_warn(const struct ky_trace_reader *r, const char *fmt, ...) KY_PRINTF(2, 3);
/* Stores the first reason why there is nothing to read. Returns error. */
int ky_reader_fail(struct ky_trace_reader *r, int error, const char *fmt, ...) KY_PRINTF(3, 4);
/* Stores that there is no memory. Returns -ENOMEM. */
int ky_reader_fail_memory(struct ky_trace_reader *r);
/*
 * Appends a zeroed element to an array of n elements; array: its address. Returns the element, or
 * NULL without memory.
 */
void *ky_reader_grow(void *array, size_t *n, size_t size);

#endif
