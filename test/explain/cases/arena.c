/* span: alloc:node expect: (the first \d+ of|arena:map) */
#include "common.h"
static void *work(void *x)
{
	size_t size = 24u << 20;
	char *arena = malloc(size);
	snooze((double)(intptr_t)x * 60000);
	for (int i = 0; i < 200; i++) {
		kymo_span_begin(alloc, node);
		if (i < 6)
			memset(arena + (size_t)i * (size / 6), 1, size / 6);
		spin(about(60));
		kymo_span_end(alloc, node);
		snooze(200);
	}
	free(arena);
	return x;
}
int main(void)
{
	run_threads(6, work);
}
