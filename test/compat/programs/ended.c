/* SPDX-License-Identifier: MIT */
/* Also C++. */
#define _DEFAULT_SOURCE
#include <string.h>
#include <sys/mman.h>

#include "ended-tp.h"

#define PAGE 4096

int main(void)
{
	static const size_t lengths[] = {0, 4, 63, 64, 65, 150};
	char *memory = (char *)mmap(
		NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED || mprotect(memory + PAGE, PAGE, PROT_NONE))
		return 1;
	memset(memory, 'a', PAGE - 1);
	for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		const char *s = memory + PAGE - 1 - lengths[i];

		tracepoint(ended, array, s);
		tracepoint(ended, sequence, s, lengths[i] + 64);
		tracepoint(ended, sequence, s, 65537);
	}
	return 0;
}
