/* span: tpl:expand expect: (alloc|malloc) spans: nothing */
#include "clock.h"
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	for (int i = 0; i < 300; i++) {
		int n = pick(16) ? 8 : 3000;
		kymo_span_begin(tpl, expand, kymo_i32(id, pick(100)));
		char *s = NULL;
		for (int j = 0; j < n; j++) {
			s = realloc(s, (size_t)(j + 1) * 16);
			s[j * 16] = 1;
		}
		free(s);
		busy(30);
		kymo_span_end(tpl, expand);
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
