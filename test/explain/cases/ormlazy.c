/* span: blog:index expect: (orm:query|net:rt) */
#include "clock.h"
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	for (int i = 0; i < 350; i++) {
		kymo_span_begin(blog, index, kymo_i32(page, pick(60)));
		for (int n = pick(17) ? 1 : 25; n--;) {
			kymo_span_begin(orm, query);
			busy(8);
			kymo_span_begin(net, rt);
			busy(25);
			kymo_span_end(net, rt);
			kymo_span_end(orm, query);
		}
		kymo_span_end(blog, index);
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
