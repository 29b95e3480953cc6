/* span: js:eval expect: (ast:free|nodes|malloc) */
#include "clock.h"
static void *worker(void *x)
{
	for (int i = 0; i < 500; i++) {
		int n = 20 + pick(40) + (pick(22) ? 0 : 4000);
		void **v = malloc((size_t)n * sizeof(*v));
		kymo_span_begin(js, eval, kymo_i32(nodes, n));
		busy(50);
		for (int k = 0; k < n; k++)
			v[k] = malloc(48);
		kymo_span_begin(ast, free);
		for (int k = 0; k < n; k++)
			free(v[k]);
		kymo_span_end(ast, free);
		kymo_span_end(js, eval);
		free(v);
		usleep(150);
	}
	return x;
}
int main(void)
{
	pthread_t t[2];
	start(t, 2, worker);
	finish(t, 2);
}
