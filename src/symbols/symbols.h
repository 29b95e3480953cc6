/* SPDX-License-Identifier: MIT */
/*
 * Addresses in traces as functions and lines: "work+0x1c (demo.c:12)". The traces' state events say
 * which files each process had in memory (symbols/map.h), elfutils reads the files
 * (symbols/elf-file.h). Debugging information of another build is never used.
 *
 * Several threads may search at the same time.
 */
#ifndef SYMBOLS_SYMBOLS_H
#define SYMBOLS_SYMBOLS_H

#include "symbols/map.h"

#define KY_SYMBOL_MAX 1024 /* bytes of a result with its NUL; longer ones are cut */

struct ky_symbols;

/* An address of an event. */
struct ky_symbol_address {
	struct ky_process_id process;
	bool has_time;
	int64_t ns;
	uint64_t address;
	bool is_return; /* it is the one behind a call; the call is meant */
};

enum ky_symbol_form {
	KY_SYMBOL_PLACE, /* "inlined (a.h:3) in function+0x1c (b.c:12)", or "libc.so.6+0x1234" */
	KY_SYMBOL_STACK, /* "function;inlined", or "[libc.so.6]" */
};

/*
 * Reads the state events of the reader's traces. dirs: directories that files are looked for in
 * before the system; copied. Returns 0 or a negative errno. reader: borrowed.
 */
int ky_symbols_new(struct ky_symbols **ret_symbols, struct kymo_reader *reader,
	const char *const *dirs, size_t n_dirs);
void ky_symbols_free(struct ky_symbols *s);
/* Reads further state events, after a refresh of the reader; no other thread searches. */
int ky_symbols_refresh(struct ky_symbols *s);
/* Writes the text of an address. Returns its length; 0 if nothing is known of the address. */
size_t ky_symbols_find(struct ky_symbols *s, const struct ky_symbol_address *a,
	enum ky_symbol_form form, char text[KY_SYMBOL_MAX]);
/* Reports why addresses stayed numbers, one line for each reason, and forgets the reasons. */
void ky_symbols_report(struct ky_symbols *s, void (*warn)(void *arg, const char *text), void *arg);

/* True if fields of that name have addresses; *ret_is_return: those behind calls. */
bool ky_symbols_is_address(const char *field, bool *ret_is_return);

#endif
