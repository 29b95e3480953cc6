/* span: http:req expect: first */
#include "common.h"
static void *work(void *x)
{
	snooze(exponential(3000));
	for (int i = 0; i < 60; i++) {
		kymo_span_begin(http, req, kymo_i32(path, below(50)));
		if (i == 0) {
			char *p = malloc(6 << 20);
			memset(p, 1, 6 << 20);
			free(p);
			snooze(2500);
		}
		spin(about(70));
		kymo_span_end(http, req);
		snooze(200);
	}
	return x;
}
int main(void)
{
	for (int r = 0; r < 6; r++)
		run_threads(4, work);
}
