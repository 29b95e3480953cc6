/* span: rpc:encode expect: (it allocates|verbose = 1) */
#include "common.h"
static void *work(void *x)
{
	for (int i = 0; i < 500; i++) {
		int verbose = chance(.06);
		kymo_span_begin(rpc, encode, kymo_bool(verbose, verbose));
		spin(about(50));
		for (int k = verbose ? 1200 : 6; k > 0; k--) {
			char *p = malloc(40);
			snprintf(p, 40, "%d", k);
			free(p);
		}
		kymo_span_end(rpc, encode);
		snooze(exponential(300));
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
