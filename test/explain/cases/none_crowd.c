/* span: svc:op expect: nothing */
#include "clock.h"
static void *w(void *x)
{
	for (int i = 0; i < 250; i++) {
		kymo_span_begin(svc, op, kymo_i32(shard, pick(8)));
		kymo_span_begin(svc, a);
		busy(60 + pick(20));
		kymo_span_end(svc, a);
		kymo_span_begin(svc, b);
		busy(60 + pick(20));
		kymo_span_end(svc, b);
		kymo_span_end(svc, op);
	}
	return x;
}
int main(void)
{
	pthread_t t[7];
	start(t, 7, w);
	finish(t, 7);
}
