/* SPDX-License-Identifier: MIT */
#ifndef BASE_PROCESSORS_H
#define BASE_PROCESSORS_H

#include <sched.h>
#include <stddef.h>

/* Returns how many processors this process may use; 1 if that is not known. */
static inline size_t ky_count_processors(void)
{
	cpu_set_t cpus;

	return sched_getaffinity(0, sizeof(cpus), &cpus) ? 1 : (size_t)CPU_COUNT(&cpus);
}

#endif
