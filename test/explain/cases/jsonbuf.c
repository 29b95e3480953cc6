/* span: api:dump spans: nothing|itself expect: (allocates|malloc|realloc) */
#include "common.h"
static char *volatile sink;
static void *work(void *x)
{
	for (int i = 0; i < 300; i++) {
		int keys = chance(.06) ? 6000 : 12;
		char *s = malloc(16);
		kymo_span_begin(api, dump);
		spin(about(30));
		for (int k = 1; k <= keys; k++) {
			s = realloc(s, (size_t)k * 24);
			memset(s + k * 24 - 24, 'x', 24);
			sink = s;
		}
		spin(about(10));
		kymo_span_end(api, dump);
		free(s);
		snooze(600);
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
