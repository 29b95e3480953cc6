/* span: ast:build expect: (alloc|malloc) spans: nothing */
#include "clock.h"
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	for (int i = 0; i < 350; i++) {
		int n = pick(17) ? 12 : 2500;
		void **v;
		kymo_span_begin(ast, build, kymo_i32(file, pick(900)));
		v = calloc((size_t)n, sizeof(*v));
		for (int j = 0; j < n; j++)
			v[j] = malloc(24 + (size_t)pick(40));
		for (int j = 0; j < n; j++)
			free(v[j]);
		free(v);
		busy(30);
		kymo_span_end(ast, build);
		usleep(200);
	}
	return x;
}
int main(void)
{
	pthread_t t[16];

	start(t, 2, work);
	finish(t, 2);
}
