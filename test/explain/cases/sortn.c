/* span: rep:table expect: (grows with n|n ≥|n of) */
#include "common.h"
static int by(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}
static void *work(void *x)
{
	static __thread int v[60000];
	for (int i = 0; i < 400; i++) {
		int n = 200 + (int)(2000 * exponential(1));
		n = n > 60000 ? 60000 : n;
		for (int k = 0; k < n; k++)
			v[k] = below(1 << 30);
		kymo_span_begin(rep, table, kymo_i32(n, n), kymo_i32(cols, 1 + below(12)));
		kymo_span_begin(sort, run);
		qsort(v, (size_t)n, sizeof(*v), by);
		kymo_span_end(sort, run);
		kymo_span_end(rep, table);
	}
	return x;
}
int main(void)
{
	run_threads(2, work);
}
