/* span: up:store expect: (grows with bytes|bytes ≥) */
#include "common.h"
static void *work(void *x)
{
	for (int i = 0; i < 600; i++) {
		size_t bytes = (size_t)(20000 * exp(1.2 * normal()));
		char *p;
		kymo_span_begin(up, store, kymo_u64(bytes, bytes), kymo_i32(part, i % 10));
		p = malloc(bytes);
		for (int k = 0; k < 6; k++) {
			memset(p, k + i, bytes);
			__asm__ volatile("" ::"r"(p) : "memory");
		}
		free(p);
		spin(about(30));
		kymo_span_end(up, store);
		snooze(exponential(250));
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
