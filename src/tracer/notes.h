/* SPDX-License-Identifier: MIT */
/* ELF notes of the objects in this process, as they lie in memory. */
#ifndef TRACER_NOTES_H
#define TRACER_NOTES_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tracer_note {
	uint32_t type, name_len, len; /* name_len: including its NUL */
	const char *name;
	const uint8_t *bytes;
};

/*
 * Calls look() with each note of the object until it returns true; then returns true itself. info:
 * from dl_iterate_phdr().
 */
bool tracer_notes_find(const struct dl_phdr_info *info,
	bool (*look)(const struct tracer_note *note, void *data), void *data);

#endif
