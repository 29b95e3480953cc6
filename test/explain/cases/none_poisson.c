/* span: lx:token expect: nothing */
#include "common.h"
static void *volatile sink;
static void *work(void *x)
{
	for (int i = 0; i < 600; i++) {
		int n = 0;
		kymo_span_begin(lx, token, kymo_i32(line, below(4000)));
		for (double t = exponential(1); t < 4; t += exponential(1))
			n++;
		for (int k = 0; k < n; k++) {
			sink = malloc(20);
			free(sink);
		}
		spin(90 * exp(.4 * normal()));
		kymo_span_end(lx, token);
		snooze(300);
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
