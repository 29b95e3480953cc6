/* SPDX-License-Identifier: MIT */
/*
 * The files that processes had in memory, by address and time: from the state events of Kymo
 * (kymo_statedump:*, kymo_lib:*) and of LTTng-UST (lttng_ust_statedump:*, lttng_ust_lib:*,
 * lttng_ust_dl:*).
 *
 * CPU samples have the same of parts of files (kymo_lib:map). They say when a process begins with
 * the files of its parent (kymo_lib:fork) or with none (kymo_lib:exec).
 *
 * A file is in memory from the event that reports it until another file is reported at the same
 * addresses, the file is reported as unloaded, or a complete state dump no longer has it. State
 * dumps describe what was so before, and tracers notice files late: the first file at an address is
 * taken to have been there since the beginning.
 */
#ifndef SYMBOLS_MAP_H
#define SYMBOLS_MAP_H

#include <kymo/reader.h>

#include "base/htab.h"
#include "symbols/elf-file.h"

/* A process, as a trace identifies it. */
struct ky_process_id {
	const char *host; /* "" if it is not known */
	bool is_known;	  /* the events say their process */
	int64_t pid;
	uint64_t pid_ns; /* 0: not known */
};

struct ky_mapping {
	uint64_t begin, end; /* addresses */
	int64_t from_ns, to_ns;
	char *path; /* owned */
	uint8_t build_id[KY_BUILD_ID_MAX];
	size_t n_build_id;
	bool has_build_id; /* it has one; n_build_id is 0 until it is known */
	bool has_offset;   /* a part of the file: from this offset in it on */
	uint64_t offset;
	uint64_t n_dump;	     /* the last state dump that reported it */
	struct ky_symbol_file *file; /* set by symbols.c when the mapping is used first */
};

struct ky_map;

/* Makes a map without any file. reader: borrowed. Returns 0 or a negative errno. */
int ky_map_new(struct ky_map **ret_map, struct kymo_reader *reader);
void ky_map_free(struct ky_map *m);
/* Reads the state events, or those that are new after a refresh of the reader. 0 or -ENOMEM. */
int ky_map_read(struct ky_map *m);
/* Returns true if the traces have state events. */
bool ky_map_has_any(const struct ky_map *m);

/* Returns the number of times since the last call that files were left out: there are too many. */
uint64_t ky_map_take_left_out(struct ky_map *m);

/* The result of a search. */
enum ky_map_result {
	KY_MAP_FOUND,
	KY_MAP_NONE,
	KY_MAP_AMBIGUOUS, /* the process is not known, and several had different files there */
};

/*
 * Finds the file at an address. ns: NULL: at any time. *ret is borrowed until the next ky_map_read.
 */
enum ky_map_result ky_map_find(struct ky_map *m, const struct ky_process_id *process,
	const int64_t *ns, uint64_t address, struct ky_mapping **ret);

#endif
