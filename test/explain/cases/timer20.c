/* span: web:ws expect: every \d */
#include "clock.h"
static uint64_t start_us;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *work(void *x)
{
	int k = (int)(intptr_t)x;
	(void)k;

	uint64_t t0;
	pthread_mutex_lock(&m);
	if (!start_us)
		start_us = clock_us();
	pthread_mutex_unlock(&m);
	t0 = start_us;
	for (int i = 0; i < 2000; i++) {
		kymo_span_begin(web, ws, kymo_i32(room, pick(30)));
		busy(30 + pick(10));
		if ((clock_us() - t0) % 50000 < 1200)
			busy(900);
		kymo_span_end(web, ws);
		usleep(250);
	}
	return x;
}
int main(void)
{
	pthread_t t[16];

	start(t, 2, work);
	finish(t, 2);
}
