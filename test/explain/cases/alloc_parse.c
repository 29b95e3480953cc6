/* span: doc:parse spans: (nothing recorded|doc:parse) expect: it allocates */
#include "common.h"
static void *work(void *x)
{
	for (int i = 0; i < 300; i++) {
		int n = chance(.05) ? 4000 : 6;
		kymo_span_begin(doc, parse);
		spin(about(60));
		for (int k = 0; k < n; k++) {
			char *p = malloc(64 + (size_t)below(200));
			*(volatile char *)p = 1;
			free(p);
		}
		spin(about(20));
		kymo_span_end(doc, parse);
		snooze(300);
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
