/* SPDX-License-Identifier: MIT */
/*
 * Finds out whether the program may lock its memory. mlockall() counts all that is mapped against
 * the program's limit, used or not. So rings of such a program do not grow, and those of threads
 * are mapped in parts (ring/parts.h).
 */
#ifndef TRACER_LOCKS_H
#define TRACER_LOCKS_H

#include <link.h>
#include <stdbool.h>

/* Returns true if this object calls mlockall() through the dynamic linker. */
bool tracer_object_locks(const struct dl_phdr_info *object);

#endif
