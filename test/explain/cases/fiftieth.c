/* span: mq:consume expect: each 50th */
#include "clock.h"
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	for (int i = 1; i <= 800; i++) {
		kymo_span_begin(mq, consume, kymo_i32(topic, pick(9)));
		busy(30 + pick(10));
		if (i % 50 == 0)
			usleep(1500);
		kymo_span_end(mq, consume);
		usleep(100);
	}
	return x;
}
int main(void)
{
	pthread_t t[16];

	start(t, 2, work);
	finish(t, 2);
}
