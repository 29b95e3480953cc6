/* span: doc:build expect: (it allocates|parts ≥|grows with parts) */
#include "common.h"
static void *work(void *x)
{
	for (int i = 0; i < 500; i++) {
		int parts = chance(.05) ? 900 : 5 + below(5);
		char *p = NULL;
		kymo_span_begin(doc, build);
		spin(about(40));
		for (int k = 1; k <= parts; k++) {
			p = realloc(p, (size_t)k * 16);
			p[k] = 1;
		}
		free(p);
		kymo_span_end(doc, build);
		snooze(exponential(300));
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
